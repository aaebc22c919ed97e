"""Two servers that stream the same frames: the real one, and a bare Starlette generator.

Publishing stands in the process that serves, so a figure holds the whole path: one publish, many
queues, one send for each piece. Both are orderable through a pipe.
"""

import asyncio
import socket
import tempfile
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from server.process import cpu_s
from towline_agent.testing import ScriptedProvider
from towline_protocol import Envelope, MessageId, SessionId, TextDelta, encode, encode_event
from towline_server import OWNER
from towline_server.main import uvicorn_config
from towline_server.stream import hub
from towline_server.testing import AppClient, open_test_app

__all__ = ["DIGITS", "MARK", "host"]

BURST: Final = 10
"""Frames that are published before the others have their turn."""
PIECE: Final = 64 * 1024
DIGITS: Final = 20
"""How many digits the text of a frame has: the time of its publishing, in nanoseconds."""
_MANY: Final = 1000  # readers of one session: the limit of 16 is not what is measured

_FRAME: Final = encode_event(
    encode(
        Envelope(
            session=SessionId("ses_0"),
            time="2026-01-01T00:00:00.000Z",
            event=TextDelta(message=MessageId("msg_0"), block=0, at=0, text="?"),
        )
    )
)
_HEAD, _TAIL = _FRAME.split(b"?")
MARK: Final = _FRAME.count(b"{")
"""How often this byte stands in a frame: one byte is never cut by the network."""


class _Floor:
    """The least that does the same: a deque and an event for each reader."""

    def __init__(self) -> None:
        self.queues: list[tuple[deque[bytes], asyncio.Event]] = []

    def publish(self, frame: bytes) -> None:
        for queue, bell in self.queues:
            queue.append(frame)
            bell.set()

    async def follow(self) -> AsyncIterator[bytes]:
        queue: deque[bytes] = deque()
        bell = asyncio.Event()
        self.queues.append((queue, bell))
        while True:
            await bell.wait()
            bell.clear()
            while queue:
                parts: list[bytes] = []
                size = 0
                while queue and size < PIECE:
                    size += len(queue[0])
                    parts.append(queue.popleft())
                yield b"".join(parts)


class _Served(NamedTuple):
    """What is streamed, and how to ask for it."""

    config: uvicorn.Config
    publish: Callable[[bytes], None]
    request: bytes
    """A whole request."""


@asynccontextmanager
async def _floor() -> AsyncGenerator[_Served]:
    floor = _Floor()

    async def stream(request: Request) -> StreamingResponse:
        del request
        return StreamingResponse(floor.follow(), media_type="text/event-stream")

    config = uvicorn.Config(
        Starlette(routes=[Route("/", stream)]),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    yield _Served(config, floor.publish, b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")


@asynccontextmanager
async def _ours() -> AsyncGenerator[_Served]:
    """A session of the whole app, with all that stands between it and a reader."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(hub, "MAX_READERS", _MANY):
        async with open_test_app(ScriptedProvider(), root=Path(folder)) as built:
            session = await AppClient(built).create()
            log = (await built.sessions.get(OWNER, session)).log
            request = (
                f"GET /api/sessions/{session}/events HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                f"authorization: Bearer {built.token}\r\n\r\n"
            )
            yield _Served(uvicorn_config(built.app), log.hub.publish, request.encode())


def host(pipe: Connection, listener: socket.socket, kind: str) -> None:
    """Serve, say how to ask, and take orders until killed."""
    asyncio.run(_host(pipe, listener, kind))


async def _host(pipe: Connection, listener: socket.socket, kind: str) -> None:
    async with _ours() if kind == "ours" else _floor() as served:
        server = uvicorn.Server(served.config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        pipe.send(served.request)
        loop = asyncio.get_running_loop()
        while True:
            order, *arguments = await loop.run_in_executor(None, pipe.recv)
            if order == "burst":
                await _burst(served.publish, *arguments)
            elif order == "pace":
                await _pace(served.publish, *arguments)
            elif order == "stop":
                break
            pipe.send(cpu_s())
        server.should_exit = True
        await serving


def _stamped() -> bytes:
    return b"%s%020d%s" % (_HEAD, time.monotonic_ns(), _TAIL)


async def _burst(publish: Callable[[bytes], None], frames: int) -> None:
    """As fast as it goes."""
    for _ in range(frames // BURST):
        for _ in range(BURST):
            publish(_stamped())
        await asyncio.sleep(0)


async def _pace(publish: Callable[[bytes], None], frames: int, rate: int) -> None:
    """So many a second, each at its own time or as soon as there is a turn."""
    began = time.monotonic()
    done = 0
    while done < frames:
        due = min(frames, int((time.monotonic() - began) * rate) + 1)
        for _ in range(due - done):
            publish(_stamped())
        done = due
        await asyncio.sleep(max(0.0, began + done / rate - time.monotonic()))

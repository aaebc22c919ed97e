"""Frames delivered a second: the session stream against a bare Starlette generator.

Both servers push the same small frames to the same number of readers over loopback and join what
waits into pieces of up to 64 KiB. Publishing stands in the same process as serving, so the figure
holds the whole path: one publish, many queues, one send for each piece. Frames come in bursts, and
the next window begins when every reader has all of the last one: no queue overflows.
"""

import asyncio
import multiprocessing
import socket
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from towline_protocol import (
    Envelope,
    MessageId,
    SessionId,
    TextDelta,
    encode,
    encode_event,
)
from towline_server.stream.hub import Hub
from towline_server.stream.pump import EventStream

READERS = 16
WINDOWS = 10
FRAMES = 2_000
"""In a window; less than a session's queue holds."""
BURST = 10
ROUNDS = 9
PIECE = 64 * 1024

FRAME = encode_event(
    encode(
        Envelope(
            session=SessionId("ses_0"),
            time="2026-01-01T00:00:00.000Z",
            event=TextDelta(message=MessageId("msg_0"), block=0, at=0, text="word "),
        )
    )
)


MARK = FRAME.count(b"{")
"""How often this byte stands in a frame: one byte is never cut by the network."""


class Floor:
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


async def nothing() -> AsyncIterator[bytes]:
    for piece in ():
        yield piece


async def serve(kind: str, listener: socket.socket, pipe: Connection) -> None:
    hub = Hub()
    floor = Floor()

    async def stream(request: Request) -> object:
        if kind == "floor":
            return StreamingResponse(floor.follow(), media_type="text/event-stream")
        return EventStream(_started(hub), nothing())  # type: ignore[arg-type]

    app = Starlette(routes=[Route("/", stream)])  # type: ignore[arg-type]
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    publish = floor.publish if kind == "floor" else hub.publish
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, pipe.recv):
        for _ in range(FRAMES // BURST):
            for _ in range(BURST):
                publish(FRAME)
            await asyncio.sleep(0)
    await serving


def _started(hub: Hub) -> object:
    subscriber = hub.join()
    subscriber.start()
    return subscriber


def run_server(kind: str, listener: socket.socket, pipe: Connection) -> None:
    asyncio.run(serve(kind, listener, pipe))


class Reader:
    """One connection that counts what it gets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def open(self) -> None:
        self._writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await self._reader.readuntil(b"\r\n\r\n")

    async def take_window(self) -> None:
        left = FRAMES * MARK
        while left > 0:
            data = await self._reader.read(1 << 18)
            if not data:
                raise ConnectionError("The server cut a reader: the figure would be wrong.")
            left -= data.count(b"{")

    def close(self) -> None:
        self._writer.close()


async def one_round(port: int, go: Callable[[], None]) -> float:
    """Deliveries a second; `go` has the server publish a window."""
    readers = [Reader(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(READERS)]
    for reader in readers:
        await reader.open()
    await asyncio.sleep(0.2)  # all of them wait for frames now
    began = time.perf_counter()
    for _ in range(WINDOWS):
        go()
        await asyncio.gather(*[reader.take_window() for reader in readers])
    took = time.perf_counter() - began
    for reader in readers:
        reader.close()
    return READERS * WINDOWS * FRAMES / took


def measure(kind: str) -> float:
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=run_server, args=(kind, listener, theirs), daemon=True
    )
    process.start()
    try:
        return asyncio.run(one_round(listener.getsockname()[1], lambda: ours.send(True)))
    finally:
        process.kill()  # it serves for ever
        process.join()
        listener.close()


def main() -> None:
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        floor.append(measure("floor"))
        ours.append(measure("ours"))
    ratio = statistics.median(a / b for a, b in zip(ours, floor, strict=True))
    a, b = statistics.median(ours), statistics.median(floor)
    print(f"bare Starlette generator  {b:12,.0f} deliveries a second")
    print(f"session stream            {a:12,.0f} deliveries a second")
    print(f"ratio                     {ratio:12.2f}")


if __name__ == "__main__":
    main()

"""Frames delivered a second: the session stream against a bare Starlette generator.

Both servers push the same small frames to the same number of readers over loopback and join what
waits into pieces of up to 64 KiB. Publishing stands in the same process as serving, so the figure
holds the whole path: one publish, many queues, one send for each piece.
"""

import asyncio
import multiprocessing
import socket
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator
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
FRAMES = 20_000
BURST = 10
ROUNDS = 5
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
    while await loop.run_in_executor(None, pipe.recv) == "go":
        for _ in range(FRAMES // BURST):
            for _ in range(BURST):
                publish(FRAME)
            await asyncio.sleep(0)
    server.should_exit = True
    server.force_exit = True
    await serving


def _started(hub: Hub) -> object:
    subscriber = hub.join()
    subscriber.start()
    return subscriber


def run_server(kind: str, listener: socket.socket, pipe: Connection) -> None:
    asyncio.run(serve(kind, listener, pipe))


async def read(port: int, ready: asyncio.Semaphore, total: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    ready.release()
    while total > 0:
        data = await reader.read(1 << 18)
        if not data:
            break
        total -= data.count(b"\n\n")
    writer.close()


async def one_round(port: int, pipe: Connection) -> float:
    ready = asyncio.Semaphore(0)
    readers = [asyncio.create_task(read(port, ready, FRAMES)) for _ in range(READERS)]
    for _ in range(READERS):
        await ready.acquire()
    await asyncio.sleep(0.2)
    began = time.perf_counter()
    pipe.send("go")
    await asyncio.gather(*readers)
    return READERS * FRAMES / (time.perf_counter() - began)


def measure(kind: str) -> float:
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=run_server, args=(kind, listener, theirs)
    )
    process.start()
    port = listener.getsockname()[1]
    rate = asyncio.run(one_round(port, ours))
    ours.send("stop")
    process.join()
    listener.close()
    return rate


def main() -> None:
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        floor.append(measure("floor"))
        ours.append(measure("ours"))
    a, b = statistics.median(ours), statistics.median(floor)
    print(f"bare Starlette generator  {b:12,.0f} deliveries a second")
    print(f"session stream            {a:12,.0f} deliveries a second")
    print(f"ratio                     {a / b:12.2f}")


if __name__ == "__main__":
    main()

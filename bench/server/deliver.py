"""Frames delivered a second, to few and to many readers; and how late they come at a given pace.

Frames come in bursts, and the next window begins when every reader has all of the last one: no
queue overflows. The serving process is the bottleneck, so the figure is for each second of its CPU
time: what else runs on the machine does not count.
"""

import asyncio
import gc
import re
import socket
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from figure import Goal, compare, show

from server.host import DIGITS, MARK, host
from server.process import ask, taking_orders

__all__ = ["show_deliveries", "show_lag"]

READERS: Final = (1, 10, 200)
FRAMES: Final = 2_000
"""In a window; less than a session's queue holds."""
DELIVERIES: Final = 400_000
"""About what each process delivers, but no fewer windows than two and no more than 20."""
RATE: Final = 2_000
"""Events a second for the lag."""
LAG_READERS: Final = 10
_STAMP: Final = re.compile(rb"\d{%d}" % DIGITS)


class _Delivered(NamedTuple):
    cpu: float
    """Deliveries for each CPU second of the server."""
    wall: float
    """Deliveries a second."""


class _Reader:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def open(self, request: bytes) -> None:
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"A reader was refused: {head!r}")

    async def settle(self) -> None:
        """Read past what a stream begins with."""
        try:
            while True:
                async with asyncio.timeout(0.3):
                    await self._read()
        except TimeoutError:
            return

    async def take_window(self) -> None:
        left = FRAMES * MARK
        while left > 0:
            left -= (await self._read()).count(b"{")

    async def take_stamps(self, count: int) -> list[int]:
        """How many nanoseconds after its publishing each frame was here."""
        late: list[int] = []
        rest = b""
        while len(late) < count:
            rest += await self._read()
            now = time.monotonic_ns()
            end = 0
            for found in _STAMP.finditer(rest):
                late.append(now - int(found[0]))
                end = found.end()
            rest = rest[end:]
        return late

    async def _read(self) -> bytes:
        data = await self._reader.read(1 << 18)
        if not data:
            raise SystemExit("The server cut a reader: the figure would be wrong.")
        return data

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def _attached(port: int, request: bytes, count: int) -> AsyncGenerator[list[_Reader]]:
    readers = [_Reader(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(count)]
    for reader in readers:
        await reader.open(request)
    await asyncio.gather(*[reader.settle() for reader in readers])
    gc.collect()
    gc.disable()
    try:
        yield readers
    finally:
        gc.enable()
        for reader in readers:
            reader.close()


async def _deliver(pipe: Connection, port: int, request: bytes, count: int) -> _Delivered:
    windows = min(20, max(2, DELIVERIES // (count * FRAMES)))
    async with _attached(port, request, count) as readers:
        began, cpu = time.perf_counter(), ask(pipe, "cpu")
        for _ in range(windows):
            pipe.send(("burst", FRAMES))
            await asyncio.gather(*[reader.take_window() for reader in readers])
            ask(pipe)
        cpu = ask(pipe, "cpu") - cpu
        took = time.perf_counter() - began
    number = count * windows * FRAMES
    return _Delivered(number / cpu, number / took)


async def _lag(pipe: Connection, port: int, request: bytes, seconds: float) -> float:
    """The 99th percentile of milliseconds from publishing to a reader."""
    frames = int(RATE * seconds)
    async with _attached(port, request, LAG_READERS) as readers:
        pipe.send(("pace", frames, RATE))
        late = await asyncio.gather(*[reader.take_stamps(frames) for reader in readers])
        ask(pipe)
    return statistics.quantiles([ns for each in late for ns in each], n=100)[-1] / 1e6


@asynccontextmanager
async def _serving(kind: str) -> AsyncGenerator[tuple[Connection, int, bytes]]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    with listener, taking_orders(host, listener, kind) as pipe:
        yield pipe, listener.getsockname()[1], ask(pipe)


def _delivered(kind: str, count: int) -> _Delivered:
    async def run() -> _Delivered:
        async with _serving(kind) as (pipe, port, request):
            return await _deliver(pipe, port, request, count)

    return asyncio.run(run())


def _late(kind: str, seconds: float) -> float:
    async def run() -> float:
        async with _serving(kind) as (pipe, port, request):
            return await _lag(pipe, port, request, seconds)

    return asyncio.run(run())


def show_deliveries(*, quick: bool) -> None:
    """Measure and print the deliveries."""
    for count in READERS:
        walls: dict[str, list[float]] = {"ours": [], "floor": []}

        def once(kind: str, count: int = count, walls: dict[str, list[float]] = walls) -> float:
            found = _delivered(kind, count)
            walls[kind].append(found.wall)
            return found.cpu

        ours, floor, ratio = compare(
            3 if quick else 7, lambda once=once: once("ours"), lambda once=once: once("floor")
        )
        label = f"deliveries to {count} reader{'s' if count > 1 else ''}"
        goal = Goal(0.5, least=True)
        show(label, "a CPU second", ours, floor=floor, ratio=ratio, goal=goal)
        a, b = statistics.median(walls["ours"]), statistics.median(walls["floor"])
        show("  the same by the clock", "a second", a, floor=b, ratio=a / b)


def show_lag(*, quick: bool) -> None:
    """Measure and print the lag."""
    seconds = 2.0 if quick else 5.0
    ours, floor, ratio = compare(
        3 if quick else 7, lambda: _late("ours", seconds), lambda: _late("floor", seconds)
    )
    label = f"publish to client, p99, {RATE:,} events/s"
    show(label, "ms", ours, floor=floor, ratio=ratio, goal=Goal(3))

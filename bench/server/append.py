"""Durable appends a second, with few and with many sessions that wait for theirs.

The floor is plain `sqlite3` on the same disk: as many writers wait, a thread takes all that waits
into one transaction, and the loop hears of the whole batch at once. It writes one row an append; a
session's append also keeps the row of the session list in step.
"""

import asyncio
import queue
import sqlite3
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from figure import Goal, compare, show

from server.process import cpu_s, fresh
from towline_agent import mint_now
from towline_protocol import Envelope, Notice, SessionId, encode
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import open_store

__all__ = ["show_appends"]

WAITING: Final = (1, 10, 100)
_TIME: Final = "2026-01-01T00:00:00.000Z"

_Append = Callable[[int, int], Awaitable[None]]
"""Appends the event of that number to the log of that writer."""


def _data(writer: int, seq: int) -> bytes:
    event = Notice(code="bench", message="a line of some words, as long as events often are")
    return encode(Envelope(seq=seq, session=SessionId(f"ses_{writer}"), time=_TIME, event=event))


async def _count(append: _Append, writers: int, seconds: float) -> tuple[float, float]:
    """Appends a second of all writers, and CPU microseconds for each."""
    until = time.perf_counter() + seconds

    async def write(writer: int) -> int:
        seq = 0
        while time.perf_counter() < until:
            seq += 1
            await append(writer, seq)
        return seq

    began, cpu = time.perf_counter(), cpu_s()
    done = sum(await asyncio.gather(*[write(writer) for writer in range(writers)]))
    return done / (time.perf_counter() - began), (cpu_s() - cpu) / done * 1e6


async def _ours(folder: Path, writers: int, seconds: float) -> tuple[float, float]:
    store = await open_store(folder, mint=mint_now)

    async def append(writer: int, seq: int) -> None:
        session = SessionId(f"ses_{writer}")
        summary = SessionRow(
            id=session, user="owner", agent="assistant", model="acme/one", mode="ask",
            created_ms=0, updated_ms=seq,
        )  # fmt: skip
        rows = (StoredRow(seq, None, seq, _data(writer, seq)),)
        await append_and_wait(
            store, Append(session=session, first_seq=seq, rows=rows, summary=summary)
        )

    try:
        return await _count(append, writers, seconds)
    finally:
        await store.close()


class _Floor:
    """The least that shares commits."""

    def __init__(self, file: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[tuple[object, ...], asyncio.Future[None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._write, args=(file,))
        self._thread.start()

    async def append(self, writer: int, seq: int) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        row = (f"ses_{writer}", seq, None, seq, _data(writer, seq), None)
        self._jobs.put((row, done))
        await done

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _write(self, file: Path) -> None:
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(
            "CREATE TABLE events (session TEXT, seq INTEGER, turn TEXT, time_ms INTEGER,"
            " data BLOB, private BLOB, PRIMARY KEY (session, seq)) WITHOUT ROWID"
        )
        while (job := self._jobs.get()) is not None:
            jobs = [job]
            while not self._jobs.empty():
                more = self._jobs.get()
                if more is None:
                    self._jobs.put(None)
                    break
                jobs.append(more)
            connection.execute("BEGIN IMMEDIATE")
            for row, _ in jobs:
                connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(self._tell, [done for _, done in jobs])
        connection.close()

    @staticmethod
    def _tell(done: list[asyncio.Future[None]]) -> None:
        for each in done:
            each.set_result(None)


async def _floor(folder: Path, writers: int, seconds: float) -> tuple[float, float]:
    floor = _Floor(folder / "floor.db")
    try:
        return await _count(floor.append, writers, seconds)
    finally:
        floor.close()


def measure(kind: str, writers: int, seconds: float) -> tuple[float, float]:
    """Appends a second and CPU microseconds for each, in this process."""
    run = _ours if kind == "ours" else _floor
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder), writers, seconds))


def show_appends(*, quick: bool) -> None:
    """Measure and print the appends."""
    seconds = 1.0 if quick else 2.0
    turns = 3 if quick else 7
    for writers in WAITING:
        cpu: dict[str, list[float]] = {"ours": [], "floor": []}

        def once(kind: str, writers: int = writers, cpu: dict[str, list[float]] = cpu) -> float:
            rate, cost = fresh(measure, kind, writers, seconds)
            cpu[kind].append(cost)
            return rate

        ours, floor, ratio = compare(turns, partial(once, "ours"), partial(once, "floor"))
        label = f"durable appends, {writers} session{'s' if writers > 1 else ''} waiting"
        show(label, "a second", ours, floor=floor, ratio=ratio, goal=Goal(0.5, least=True))
        a, b = (sorted(cpu[kind])[turns // 2] for kind in ("ours", "floor"))
        show("  their CPU", "µs each", a, floor=b, ratio=a / b)

"""What a server costs does not depend on what is stored: not its start, not a turn."""

import sqlite3
import time
import tracemalloc
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import SessionId
from towline_server.store.records import Append, StoredRow
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app

ROW = (
    "INSERT INTO sessions (id, user, agent, model, mode, title, created_ms, updated_ms, last_seq, "
    "pending, queued, closed) VALUES (?, 'owner', 'a', 'a/b', 'ask', ?, 0, ?, 9, 0, 0, 0)"
)


async def _fill(store: SqliteStore, count: int) -> None:
    rows = [(f"ses_{n:05}", f"Session {n}", n) for n in range(count)]

    def insert(connection: sqlite3.Connection) -> None:
        connection.executemany(ROW, rows)

    await store.write(insert)


async def _start(store: SqliteStore, root: Path) -> tuple[float, int]:
    """Seconds until a server stands, and the bytes that are left of it then."""
    tracemalloc.start()
    began = time.perf_counter()
    try:
        async with open_test_app(ScriptedProvider(), root=root, store=store) as built:
            took_s = time.perf_counter() - began
            assert built.sessions.live == ()
            return took_s, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.rules("C6", "S35")
async def test_a_start_reads_no_log_that_is_at_rest_and_costs_the_same_with_ten_thousand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_memory_store(mint=mint_now)
    reads: list[SessionId] = []

    async def read(session: SessionId, *, after: int, upto: int, limit: int = 0) -> list[StoredRow]:
        del after, upto, limit
        reads.append(session)
        return []

    monkeypatch.setattr(store, "read", read)
    await _fill(store, 10)
    await _start(store, tmp_path)  # what is made but once is no part of the comparison
    _, few = await _start(store, tmp_path)
    await store.write(lambda connection: connection.execute("DELETE FROM sessions"))
    await _fill(store, 10_000)
    took_s, many = await _start(store, tmp_path)
    await store.close()
    assert reads == []
    assert took_s < 1
    assert many - few < 64 * 1024


@pytest.mark.rules("S35")
async def test_a_turn_writes_no_more_and_reads_nothing_however_long_its_session_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def note(phase: str, appends: tuple[Append, ...]) -> None:
        if phase == "before":
            written.extend(len(row.data) for append in appends for row in append.rows)

    store = await open_memory_store(mint=mint_now, on_commit=note)
    reads: list[SessionId] = []
    read = store.read

    async def count(session: SessionId, *, after: int, upto: int) -> list[StoredRow]:
        reads.append(session)
        return await read(session, after=after, upto=upto)

    turns = 60
    costs: list[tuple[int, int]] = []
    provider = ScriptedProvider(*["well"] * turns)
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as wire:
            await wire.until(lambda: wire.ids == [1])
            monkeypatch.setattr(store, "read", count)
            for number in range(1, turns + 1):
                del written[:]
                seen = len(wire.pieces)
                await client.prompt(session, f"say {number:02}")
                await wire.until(
                    lambda seen=seen: b"turn_completed" in b"".join(wire.pieces[seen:])
                )
                costs.append((len(written), sum(written)))
            assert reads == []
            monkeypatch.undo()
    await store.close()
    assert len({rows for rows, _ in costs}) == 1
    sizes = [size for _, size in costs[1:]]  # the first one also gives the session its title
    assert max(sizes) - min(sizes) <= 8 * costs[0][0]  # longer numbers, and nothing else

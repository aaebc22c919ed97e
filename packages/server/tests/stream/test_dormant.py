"""A long log of a session that is not in memory: it is read at once, and loaded behind that."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import pytest

from towline_agent import TextPiece, mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    Envelope,
    Notice,
    Problem,
    Reset,
    SessionCreated,
    SessionId,
    decode_frame,
    encode,
)
from towline_server import OWNER, BuiltApp
from towline_server.sessions.live import MAX_LIVE
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

SESSION: Final = SessionId("ses_long")
LAST: Final = 1000
TIME: Final = "2026-01-31T09:05:00.250Z"


def _row(seq: int, event: Any) -> StoredRow:
    return StoredRow(
        seq, None, seq, encode(Envelope(seq=seq, session=SESSION, time=TIME, event=event))
    )


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store with one session, whose log is long."""
    store = await open_memory_store(mint=mint_now)
    made = SessionCreated(agent="towline", model="scripted/scripted", mode="ask")
    notices = [_row(seq, Notice(code="n", message="x")) for seq in range(2, LAST + 1)]
    summary = SessionRow(
        id=SESSION, user=OWNER, agent=made.agent, model=made.model, mode=made.mode, created_ms=1,
        updated_ms=LAST,
    )  # fmt: skip
    rows = (_row(1, made), *notices)
    await append_and_wait(store, Append(session=SESSION, first_seq=1, rows=rows, summary=summary))
    yield store
    await store.close()


class Gate:
    """Lets no session be loaded until it is opened."""

    def __init__(self, built: BuiltApp, monkeypatch: pytest.MonkeyPatch) -> None:
        self.met = asyncio.Event()
        self.open = asyncio.Event()
        get = built.sessions.get

        async def wait_and_get(*arguments: Any, **facts: Any) -> Any:
            self.met.set()
            await self.open.wait()
            return await get(*arguments, **facts)

        monkeypatch.setattr(built.sessions, "get", wait_and_get)


@pytest.fixture
async def built(tmp_path: Path, store: SqliteStore) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        yield built


@pytest.fixture
def gate(built: BuiltApp, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(built, monkeypatch)


@pytest.mark.rules("C2.10", "C3.2", "C3.3", "C5.16")
async def test_what_is_stored_is_read_before_the_session_is_loaded(
    built: BuiltApp, gate: Gate
) -> None:
    client = AppClient(built)
    async with client.follow(SESSION, query="after=3&reader=phone") as wire:
        await wire.until(lambda: bool(wire.ids) and wire.ids[-1] == LAST)
        assert built.sessions.live == ()
        assert [event.event for event in wire.events[:2]] == ["hello", ""]
        gate.open.set()
        await client.prompt(SESSION, "Hi")
        await client.until(SESSION, ran(1))
        (session,) = built.sessions.live
        assert session.log.hub.readers == 1
        await wire.until(lambda: wire.ids[-1] == session.last_seq)
        assert wire.ids == list(range(4, session.last_seq + 1))
        assert sum(event.event == "hello" for event in wire.events) == 1
        async with client.follow(SESSION, query=f"after={LAST}&reader=phone") as again:
            await again.until(lambda: bool(again.ids))
            assert session.log.hub.readers == 1
    assert session.log.hub.readers == 0


async def test_a_reader_that_leaves_before_the_load_takes_no_place(
    built: BuiltApp, gate: Gate
) -> None:
    client = AppClient(built)
    async with client.follow(SESSION) as wire, asyncio.timeout(10):
        await gate.met.wait()
        wire.gone.set()
        for _ in range(10):  # the disconnect is seen
            await asyncio.sleep(0)
        gate.open.set()
    (session,) = built.sessions.live
    assert session.log.hub.readers == 0


@pytest.mark.rules("C3.6")
async def test_a_server_that_drains_while_it_loads_sends_the_reader_away(
    built: BuiltApp, gate: Gate
) -> None:
    async with AppClient(built).follow(SESSION) as wire, asyncio.timeout(10):
        await gate.met.wait()
        built.streams.drain()
        gate.open.set()
        await wire.until(lambda: wire.ended)
    last = wire.events[-1]
    assert isinstance(decode_frame(last.event, last.data), Reset)
    assert wire.ids == list(range(1, LAST + 1))


@pytest.mark.rules("C2.2")
async def test_of_a_log_that_cannot_be_loaded_the_stream_ends_and_who_comes_back_is_told_why(
    built: BuiltApp, store: SqliteStore
) -> None:
    await store.write(
        lambda c: c.execute("UPDATE events SET data = ? WHERE seq = ?", (b"{", LAST - 1)).rowcount
    )
    client = AppClient(built)
    async with client.follow(SESSION) as wire:
        await wire.until(lambda: wire.ended)
    assert wire.ids[-1] == LAST
    reply = await client.ask("GET", f"/api/sessions/{SESSION}/events?after={LAST}")
    assert reply.status == 500
    assert "cannot be read" in reply.read(Problem).detail


@pytest.mark.rules("C6")
async def test_a_ninth_long_one_is_refused_before_it_is_read(
    tmp_path: Path, store: SqliteStore
) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider(*[[TextPiece(0, "a"), gate]] * MAX_LIVE)
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        for _ in range(MAX_LIVE):
            session = await client.create()
            await client.prompt(session, "go")
            await client.until(session, lambda view: bool(view.open_messages))
        reply = await client.ask("GET", f"/api/sessions/{SESSION}/events")
        assert (reply.status, reply.read(Problem).reason) == (429, "session_limit")

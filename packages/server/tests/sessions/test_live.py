"""How many sessions of a user are live, and which one makes room (C6)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from towline_agent import TextPiece, mint_now
from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import (
    CreateSession,
    Envelope,
    Notice,
    Problem,
    SessionCreated,
    SessionId,
    SessionInfo,
    SessionList,
    Text,
    encode,
)
from towline_server import OWNER
from towline_server.build import BuiltApp
from towline_server.sessions import live
from towline_server.sessions.live import MAX_LIVE
from towline_server.sessions.recovery import Loaded, load
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran, sign_in

TIME: Final = "2026-01-31T09:05:00.250Z"


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store that outlives the servers on it."""
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


def _live(built: BuiltApp) -> set[SessionId]:
    return {session.log.session for session in built.sessions.live}


def _limited(reply: Reply) -> None:
    problem = reply.read(Problem)
    assert (reply.status, problem.code) == (429, "capacity_exceeded"), reply.body
    assert (problem.scope, problem.reason) == ("limit", "session_limit")
    assert int(reply.headers["retry-after"]) >= 1


@pytest.mark.rules("C6")
async def test_opening_a_ninth_session_unloads_the_idlest(tmp_path: Path) -> None:
    clock = FakeClock(held=True)
    async with open_test_app(ScriptedProvider(), root=tmp_path, clock=clock) as built:
        client = AppClient(built)
        made: list[SessionId] = []
        for _ in range(MAX_LIVE):
            made.append(await client.create())
            clock.advance(1)
        await client.view(made[0])  # now the second one is the idlest
        clock.advance(1)
        made.append(await client.create())
        assert MAX_LIVE == 8
        assert _live(built) == {*made} - {made[1]}
        await client.view(made[1])
        assert _live(built) == {*made} - {made[2]}


@pytest.mark.rules("C2.4", "C2.10", "C6")
@pytest.mark.parametrize("how", ["read", "run"])
async def test_a_ninth_is_refused_only_while_all_are_busy(
    store: SqliteStore, tmp_path: Path, how: str
) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        dormant = await client.create()
    gate = asyncio.Event()
    provider = ScriptedProvider(*[[TextPiece(0, "a"), gate]] * MAX_LIVE, *["well"] * 9)
    async with (
        open_test_app(provider, root=tmp_path, store=store) as built,
        AsyncExitStack() as stack,
    ):
        client = AppClient(built)
        made = [await client.create() for _ in range(MAX_LIVE)]
        for session in made:
            if how == "run":
                await client.prompt(session, "go")
                await client.until(session, lambda view: bool(view.open_messages))
            else:
                wire = await stack.enter_async_context(client.follow(session))
                await wire.take(1)
        rows = (await client.ask("GET", "/api/sessions")).read(SessionList).sessions
        assert {row.id for row in rows if row.live} == {*made}
        _limited(await client.ask("POST", "/api/sessions", CreateSession()))
        _limited(await client.ask("GET", f"/api/sessions/{dormant}/events"))
        _limited(await client.prompt(dormant, "hello"))
        assert (await client.view(dormant)).queue == ()  # what is read alone is not live
        assert (await client.prompt(made[0], "more", when="queue")).status == 202
        async with client.follow(made[0]) as reader:
            await reader.take(1)
        other = await sign_in(built, "other")
        assert (await other.ask("POST", "/api/sessions", CreateSession())).status == 201
        gate.set()
        await stack.aclose()
        await client.until(made[0], ran(2 if how == "run" else 1))
        for session in made[1:] if how == "run" else ():
            await client.until(session, ran(1))
        assert (await client.prompt(dormant, "hello")).status == 202
        await client.until(dormant, ran(1))


@pytest.mark.rules("C6")
async def test_of_many_that_begin_at_once_no_more_than_eight_run(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider(*[[TextPiece(0, "a"), gate]] * 20)
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        new = CreateSession(prompt=(Text(text="go"),))
        replies = await asyncio.gather(
            *(client.ask("POST", "/api/sessions", new) for _ in range(20))
        )
        made = [reply.read(SessionInfo).id for reply in replies if reply.status == 201]
        refused = [reply for reply in replies if reply.status != 201]
        assert len(made) == MAX_LIVE
        for reply in refused:
            _limited(reply)
        gate.set()
        for session in made:
            await client.until(session, ran(1))


@pytest.mark.rules("C5.4", "C6")
async def test_a_start_takes_up_all_that_was_cut_however_many_they_are(
    store: SqliteStore, tmp_path: Path
) -> None:
    count = MAX_LIVE + 3
    provider = ScriptedProvider(*[[TextPiece(0, "a"), asyncio.Event()]] * count)
    async with open_test_app(provider, root=tmp_path, store=store, live_sessions=count) as built:
        client = AppClient(built)
        new = CreateSession(prompt=(Text(text="go"),))
        made = [await client.create(new) for _ in range(count)]
        for session in made:
            await client.until(session, lambda view: bool(view.open_messages))
    async with open_test_app(
        ScriptedProvider(*["well"] * count), root=tmp_path, store=store
    ) as built:
        client = AppClient(built)
        for session in made:
            row = (await client.ask("GET", f"/api/sessions/{session}")).read(SessionInfo)
            assert row.live or row.turn is None
        for session in made:
            view = await client.view(session)
            if view.turn is not None:
                await client.until(session, ran(1))
        assert (await client.ask("POST", "/api/sessions", CreateSession())).status == 201
        assert len(built.sessions.live) <= MAX_LIVE


@pytest.mark.rules("C6")
async def test_a_session_that_is_about_to_begin_does_not_make_room(tmp_path: Path) -> None:
    async with open_test_app(
        ScriptedProvider(*["well"] * 40), root=tmp_path, live_sessions=2
    ) as built:
        client = AppClient(built)
        sessions = [await client.create() for _ in range(6)]
        taken = dict.fromkeys(sessions, 0)
        for _ in range(3):
            replies = await asyncio.gather(*(client.prompt(s, "go") for s in sessions))
            assert {reply.status for reply in replies} <= {202, 429}
            for session, reply in zip(sessions, replies, strict=True):
                if reply.status == 202:  # what was acknowledged is answered
                    taken[session] += 1
                    await client.until(session, ran(taken[session]))
        assert sum(taken.values()) >= 6
        await client.create()
        assert len(built.sessions.live) <= 2


async def test_a_look_at_a_row_loads_nothing(store: SqliteStore, tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        session = await AppClient(built).create()
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        await client.ask("GET", f"/api/sessions/{session}")
        await client.ask("POST", f"/api/sessions/{session}/read", b'{"seq":1}')
        await client.ask("GET", "/api/sessions?search=x")
        assert built.sessions.live == ()


@pytest.mark.rules("C2.10")
async def test_a_long_log_is_loaded_in_pieces_between_which_others_have_their_turn(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, last = SessionId("ses_long"), 3000
    await append_and_wait(store, _long_log(session, last))
    turns = 0
    pieces: list[tuple[int, int]] = []

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def load_piece(rows: list[StoredRow], loaded: Loaded) -> Loaded:
        pieces.append((len(rows), turns))
        return load(rows, loaded)

    monkeypatch.setattr(live, "load", load_piece)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        other = asyncio.create_task(take_turns())
        async with asyncio.timeout(10):
            found = await built.sessions.get(OWNER, session)
        other.cancel()
    assert found.last_seq == last
    assert found.view().notices[-1].message == f"{last}"
    sizes, when = zip(*pieces, strict=True)
    assert sum(sizes) == last
    assert max(sizes) <= 1024  # some 10 ms of work
    assert sorted(set(when)) == list(when)


def _long_log(session: SessionId, last: int) -> Append:
    made = SessionCreated(agent="towline", model="scripted/scripted", mode="ask")
    notices = (Notice(code="n", message=f"{seq}") for seq in range(2, last + 1))
    rows = tuple(
        StoredRow(
            seq, None, seq, encode(Envelope(seq=seq, session=session, time=TIME, event=event))
        )
        for seq, event in enumerate((made, *notices), 1)
    )
    summary = SessionRow(
        id=session, user=OWNER, agent=made.agent, model=made.model, mode=made.mode, created_ms=1,
        updated_ms=last,
    )  # fmt: skip
    return Append(session=session, first_seq=1, rows=rows, summary=summary)

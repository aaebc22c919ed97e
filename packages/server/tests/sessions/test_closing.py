"""The end of a session: closed, deleted, and what a crash in between leaves."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from towline_agent import TextPiece, mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    TERMINAL_EVENTS,
    CloseSession,
    CreateSession,
    PermissionResolved,
    Problem,
    PromptWithdrawn,
    SessionClosed,
    SessionDeleted,
    SessionId,
    SessionInfo,
    SessionList,
    ToolEnded,
    TurnCancelled,
    UpdateSession,
    parse_time,
)
from towline_server.sessions import runner
from towline_server.store import tombstones
from towline_server.store.records import Append
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran

_DAY_S = 24 * 3600


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store that outlives the servers on it."""
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


async def _close(client: AppClient, session: str, reason: str = "done") -> Reply:
    return await client.ask("POST", f"/api/sessions/{session}/close", CloseSession(reason=reason))


async def _delete(client: AppClient, session: str, key: str | None = None) -> Reply:
    headers = {"idempotency-key": key}
    return await client.ask("DELETE", f"/api/sessions/{session}", headers=headers)


async def _events(store: SqliteStore) -> int:
    return await store.query(lambda c: c.execute("SELECT count(*) FROM events").fetchone()[0])


def _gone(reply: Reply, reason: str) -> None:
    problem = reply.read(Problem)
    assert (reply.status, problem.code, problem.reason) == (410, "gone", reason)


@pytest.mark.rules("C1.20", "C1.23", "C2.10", "C3.7")
@pytest.mark.parametrize("state", ["idle", "speaks", "runs", "asks"])
async def test_a_close_ends_what_runs_takes_back_what_waits_and_is_the_last_event(
    tmp_path: Path, state: str
) -> None:
    @tool(name="wait", effect="write")
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    script = [[TextPiece(0, "a"), asyncio.Event()]] if state == "speaks" else [call("wait")]
    mode = "ask" if state == "asks" else "auto"
    async with open_test_app(
        ScriptedProvider(*script), root=tmp_path, tools=[wait], mode=mode
    ) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(title="One"))
        if state != "idle":
            await client.prompt(session, "go")
            await client.until(
                session,
                lambda view: bool(
                    view.permissions
                    if state == "asks"
                    else view.open_messages or any(c.started for c in view.open_calls)
                ),
            )
            await client.prompt(session, "waits", when="queue")
            await client.prompt(session, "steers", when="steer")
        async with client.follow(session) as reader:
            await reader.take(1)
            row = (await _close(client, session)).read(SessionInfo)
            await reader.until(lambda: reader.ended)
        assert (row.closed, row.live, row.turn, row.queued, row.pending) == (
            True,
            False,
            None,
            0,
            0,
        )
        log = [e.event for e in await client.log(session)]
        view = await client.view(session)
    assert log[-1] == SessionClosed(reason="done")
    assert view.closed == "done"
    assert (view.turn, view.open_calls, view.permissions, view.queue) == (None, (), (), ())
    ends = [event for event in log if isinstance(event, TERMINAL_EVENTS)]
    if state == "idle":
        assert ends == []
        return
    (end,) = ends
    assert isinstance(end, TurnCancelled)
    assert (end.by, end.reason) == ("owner", "done")
    assert len([event for event in log if isinstance(event, PromptWithdrawn)]) == 2
    if state != "speaks":
        assert len([event for event in log if isinstance(event, ToolEnded)]) == 1
    if state == "asks":
        assert len([event for event in log if isinstance(event, PermissionResolved)]) == 1


@pytest.mark.rules("C2.10", "C3.7")
async def test_a_closed_session_is_read_renamed_and_put_away_but_never_prompted(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "hello")
        await client.until(session, ran(1))
        await _close(client, session)
        before = await client.log(session)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        for path, body in (("prompts", None), ("retry", None), ("queue/resume", None)):
            reply = (
                await client.prompt(session, "again")
                if path == "prompts"
                else await client.ask("POST", f"/api/sessions/{session}/{path}", body)
            )
            _gone(reply, "closed")
        path = f"/api/sessions/{session}"
        _gone(await client.ask("PATCH", path, UpdateSession(mode="ask")), "closed")
        _gone(await client.ask("PATCH", path, UpdateSession(model="acme/two")), "closed")
        async with client.follow(session) as reader:
            await reader.until(lambda: reader.ended)
            assert reader.ids == [e.seq for e in before]
        change = UpdateSession(title="Kept", archived=True, labels=("old",))
        row = (await client.ask("PATCH", path, change)).read(SessionInfo)
        assert (row.title, row.archived, row.closed) == ("Kept", True, True)
        again = await _close(client, session, "another reason")
        assert again.read(SessionInfo).closed
        view = await client.view(session)
        assert (view.closed, view.title) == ("done", "Kept")
        assert len(await client.log(session)) == len(before) + 1


@pytest.mark.rules("C2.5", "C2.10")
async def test_a_session_that_many_close_at_once_is_closed_once(tmp_path: Path) -> None:
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, lambda view: bool(view.open_messages))
        replies = await asyncio.gather(*(_close(client, session) for _ in range(9)))
        assert {reply.status for reply in replies} == {200}
        log = [e.event for e in await client.log(session)]
    assert len([event for event in log if isinstance(event, SessionClosed)]) == 1
    assert len([event for event in log if isinstance(event, TERMINAL_EVENTS)]) == 1


@pytest.mark.rules("C2.10")
async def test_a_prompt_that_comes_while_a_session_is_closed_is_refused_or_taken_back(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, lambda view: bool(view.open_messages))
        replies = await asyncio.gather(
            client.prompt(session, "before"),
            _close(client, session),
            client.prompt(session, "after"),
        )
        before, closed, after = (reply.status for reply in replies)
        assert closed == 200
        assert {before, after} <= {202, 410}
        log = [e.event for e in await client.log(session)]
    withdrawn = [event for event in log if isinstance(event, PromptWithdrawn)]
    assert len(withdrawn) == [before, after].count(202)
    assert isinstance(log[-1], SessionClosed)
    assert len(provider.requests) == 1


@pytest.mark.rules("C2.10")
@pytest.mark.parametrize("state", ["dormant", "idle", "runs", "closed"])
async def test_a_deleted_session_is_gone_for_a_day_then_unknown_and_nothing_of_it_is_kept(
    store: SqliteStore, tmp_path: Path, state: str
) -> None:
    clock = FakeClock(held=True)
    session = await _with_a_session(store, tmp_path)
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path, store=store, clock=clock) as built:
        client = AppClient(built)
        if state != "dormant":
            await client.view(session)
        if state == "closed":
            await _close(client, session)
        if state == "runs":
            await client.prompt(session, "go")
            await client.until(session, lambda view: bool(view.open_messages))
        reply = await _delete(client, session)
        assert reply.status == 200, reply.body
        until = parse_time(reply.read(SessionDeleted).until)
        assert until == clock.now_ms() + _DAY_S * 1000
        assert built.sessions.live == ()
        assert await _events(store) == 0
        await _everything_is(client, session, 410)
        assert (await client.ask("GET", "/api/sessions")).read(SessionList).sessions == ()
        clock.advance(_DAY_S)
        await _everything_is(client, session, 404)
        assert await store.write(partial(tombstones.prune, now_ms=clock.now_ms())) == 1


async def _with_a_session(store: SqliteStore, root: Path) -> SessionId:
    async with open_test_app(ScriptedProvider("well"), root=root, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "hello")
        await client.until(session, ran(1))
    return session


async def _everything_is(client: AppClient, session: str, status: int) -> None:
    """Each way to a session that is gone."""
    path = f"/api/sessions/{session}"
    for method, tail, body in (
        ("GET", "", None),
        ("GET", "/view", None),
        ("GET", "/events", None),
        ("PATCH", "", UpdateSession(title="x")),
        ("POST", "/read", b'{"seq":1}'),
        ("POST", "/close", CloseSession()),
        ("POST", "/prompts", b'{"content":[{"type":"text","text":"x"}]}'),
        ("DELETE", "", None),
    ):
        reply = await client.ask(method, path + tail, body)
        assert reply.status == status, (method, tail, reply.body)


@pytest.mark.rules("C2.10", "C3.7")
async def test_readers_of_a_deleted_session_are_told_that_it_closed_and_come_to_an_end(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as one, client.follow(session) as two:
            for reader in (one, two):
                await reader.take(1)
            await _delete(client, session)
            for reader in (one, two):
                await reader.until(lambda reader=reader: reader.ended)
                assert b'"type":"session_closed","reason":"deleted"' in b"".join(reader.pieces)


@pytest.mark.rules("C2.5")
async def test_a_deletion_that_is_sent_again_is_answered_alike_and_one_without_a_key_is_gone(
    store: SqliteStore, tmp_path: Path
) -> None:
    session = await _with_a_session(store, tmp_path)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        first, *others = await asyncio.gather(*(_delete(client, session, "k") for _ in range(5)))
        assert first.status == 200
        assert {reply.body for reply in others} == {first.body}
        _gone(await _delete(client, session), "deleted")
        _gone(await _delete(client, session, "another"), "deleted")


@pytest.mark.rules("C2.10")
async def test_a_start_after_a_crash_in_the_middle_of_a_deletion_finishes_it(
    store: SqliteStore, tmp_path: Path
) -> None:
    session = await _with_a_session(store, tmp_path)
    kept = await _with_a_session(store, tmp_path)
    bury = partial(tombstones.bury, session=session, user="owner", now_ms=FakeClock().now_ms())
    assert await store.write(bury)  # and here its machine was turned off
    before = await _events(store)
    clock = FakeClock(held=True)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store, clock=clock) as built:
        client = AppClient(built)
        _gone(await client.ask("GET", f"/api/sessions/{session}"), "deleted")
    assert await store.query(tombstones.unfinished) == []
    assert 0 < await _events(store) < before
    assert [row.id for row in await store.sessions(user="owner")] == [kept]


@pytest.mark.rules("C2.10")
async def test_a_session_is_loaded_by_nobody_while_it_is_deleted(
    store: SqliteStore, tmp_path: Path
) -> None:
    session = await _with_a_session(store, tmp_path)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        path = f"/api/sessions/{session}/view"
        looks = [client.ask("GET", path) for _ in range(5)]
        later = [client.ask("GET", path) for _ in range(5)]
        replies = await asyncio.gather(*looks, _delete(client, session), *later)
        assert replies[5].status == 200
        assert {reply.status for reply in replies} <= {200, 410}
        assert built.sessions.live == ()
        assert await _events(store) == 0


@pytest.mark.rules("C1.20", "C1.21", "C1.23")
async def test_a_turn_that_does_not_stop_is_cut_off_and_still_has_its_one_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_STOP_S", 0.05)
    stubborn = asyncio.Event()

    @tool(name="wait", effect="write")
    async def wait() -> str:
        """Wait, whatever is said."""
        try:
            await stubborn.wait()
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(0.2, stubborn.set)
            await stubborn.wait()
            raise
        return "never"

    async with open_test_app(ScriptedProvider(call("wait")), root=tmp_path, tools=[wait]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, lambda v: any(c.started for c in v.open_calls))
        assert (await _close(client, session)).read(SessionInfo).closed
        log = [e.event for e in await client.log(session)]
    assert len([event for event in log if isinstance(event, TERMINAL_EVENTS)]) == 1
    assert len([event for event in log if isinstance(event, ToolEnded)]) == 1
    assert log[-1] == SessionClosed(reason="done")


@pytest.mark.rules("C1.20", "C1.21")
async def test_a_close_ends_a_turn_that_nobody_has_taken_up(
    store: SqliteStore, tmp_path: Path
) -> None:
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, lambda view: bool(view.open_messages))
    sessions_start = "UPDATE sessions SET turn = NULL, queued = 0"
    await store.write(lambda c: c.execute(sessions_start).rowcount)  # so that no start finds it
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        await built.sessions.drain(1)  # no turn is taken up any more
        await built.sessions.close_session("owner", session, reason="done")
        log = [e.event for e in await AppClient(built).log(session)]
    (end,) = [event for event in log if isinstance(event, TERMINAL_EVENTS)]
    assert isinstance(end, TurnCancelled)
    assert (await store.sessions(user="owner"))[0].turn is None


@pytest.mark.rules("C1.3", "C2.10")
async def test_a_close_that_cannot_be_kept_is_told_and_can_be_tried_again(
    tmp_path: Path,
) -> None:
    full = False

    def hook(phase: str, batches: tuple[Append, ...]) -> None:
        if full and phase == "before" and batches:
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    store = await open_memory_store(mint=mint_now, on_commit=hook)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        full = True
        for end in (_delete, _close):  # the second one loads it anew
            assert (await end(client, session)).status == 503
        full = False
        assert (await client.view(session)).closed is None
        assert (await _close(client, session)).status == 200
        assert (await _delete(client, session)).status == 200
    await store.close()

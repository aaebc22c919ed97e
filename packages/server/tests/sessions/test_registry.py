"""Which sessions are in memory, and when they come and go."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from towline_agent import TextPiece, mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import CreateSession, SessionId, SessionView, TurnResumed, block_text
from towline_server.build import BuiltApp
from towline_server.sessions.live import IDLE_S
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store that outlives the servers on it."""
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


async def _pass(clock: FakeClock, seconds: float) -> None:
    """Let the time pass, and whoever waited for it have his turn."""
    clock.advance(seconds)
    for _ in range(50):
        await asyncio.sleep(0)


async def _leave_a_turn_open(store: SqliteStore, root: Path) -> SessionId:
    """A session with an open turn that no start finds: only a request takes it up."""
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()])
    async with open_test_app(provider, root=root, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
    await store.write(
        lambda connection: (
            connection.execute(
                "UPDATE sessions SET turn = NULL, queued = 0 WHERE id = ?", (session,)
            ).rowcount
        )
    )
    return session


@pytest.mark.rules("C2.10", "C5.4")
async def test_however_many_ask_for_a_dormant_session_it_is_taken_up_once(
    store: SqliteStore, tmp_path: Path
) -> None:
    session = await _leave_a_turn_open(store, tmp_path)
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        assert built.sessions.live == ()
        await asyncio.gather(*(client.view(session) for _ in range(20)))
        assert len(built.sessions.live) == 1
        await client.until(session, ran(1))
        log = await client.log(session)
    assert len([e for e in log if isinstance(e.event, TurnResumed)]) == 1


@pytest.mark.parametrize("turns", [1, 3, 5, 10])
async def test_who_stops_waiting_for_a_load_does_not_stop_the_others(
    store: SqliteStore, tmp_path: Path, turns: int
) -> None:
    session = await _leave_a_turn_open(store, tmp_path)
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        first = asyncio.create_task(client.view(session))
        second = asyncio.create_task(client.view(session))
        for _ in range(turns):
            await asyncio.sleep(0)
        first.cancel()
        assert (await second).session == session
        await client.until(session, ran(1))


@pytest.mark.rules("C6")
async def test_an_idle_session_leaves_memory_and_comes_back_as_it_was(tmp_path: Path) -> None:
    clock = FakeClock(held=True)
    async with open_test_app(ScriptedProvider("one", "two"), root=tmp_path, clock=clock) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        before = await client.until(session, ran(1))
        await _pass(clock, IDLE_S - 1)
        assert len(built.sessions.live) == 1
        await _pass(clock, IDLE_S)
        assert built.sessions.live == ()
        assert await client.view(session) == before
        assert len(built.sessions.live) == 1
        await client.prompt(session, "second")
        await client.until(session, ran(2))


@pytest.mark.rules("C6")
async def test_a_session_that_is_read_or_runs_does_not_leave_memory(tmp_path: Path) -> None:
    clock = FakeClock(held=True)
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "a"), gate])
    async with open_test_app(provider, root=tmp_path, clock=clock) as built:
        client = AppClient(built)
        read, runs, idle = [await client.create() for _ in range(3)]
        await client.prompt(runs, "first")
        async with client.follow(read) as reader:
            await reader.until(lambda: reader.ids == [1])
            for _ in range(3):
                await _pass(clock, IDLE_S)
            assert _live(built) == {read, runs}
            assert not reader.ended
        gate.set()
        await client.until(runs, ran(1))
        for _ in range(3):
            await _pass(clock, IDLE_S)
        assert _live(built) == set()
        assert (await client.view(idle)).session == idle


def _live(built: BuiltApp) -> set[SessionId]:
    return {session.log.session for session in built.sessions.live}


@pytest.mark.rules("C5.14")
async def test_no_turn_begins_while_the_server_shuts_down_and_none_is_lost(
    store: SqliteStore, tmp_path: Path
) -> None:
    cut = await _leave_a_turn_open(store, tmp_path)
    provider = ScriptedProvider()
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        late = await client.create()
        await built.sessions.drain(1)
        assert (await client.prompt(late, "second")).status == 202  # it came just before the end
        new = await client.create()
        assert (await client.prompt(new, "third")).status == 202
        assert (await client.view(cut)).turn is not None
        for _ in range(50):
            await asyncio.sleep(0)
    assert provider.requests == []
    provider = ScriptedProvider("well", "well", "well")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        for session in (late, new, cut):
            view = await client.until(session, ran(1))
            assert block_text(view.messages[-1].content) == "well"


async def test_a_server_that_ends_in_the_middle_of_everything_leaves_no_task_behind(
    tmp_path: Path,
) -> None:
    @tool(name="wait")
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    before = asyncio.all_tasks()
    script = [[TextPiece(0, "a"), asyncio.Event()], call("wait"), call("wait")]
    async with open_test_app(ScriptedProvider(*script), root=tmp_path, tools=[wait]) as built:
        client = AppClient(built)
        for met in (_speaks, _runs):
            session = await client.create()
            await client.prompt(session, "go")
            await client.until(session, met)
        asks = await client.create(CreateSession(mode="ask"))
        await client.prompt(asks, "go")
        await client.until(asks, lambda view: bool(view.permissions))
        async with client.follow(asks) as reader:
            await reader.take(1)
            built.streams.drain()
            await built.sessions.close()
            await reader.until(lambda: reader.ended)
    assert asyncio.all_tasks() == before


def _speaks(view: SessionView) -> bool:
    return bool(view.open_messages)


def _runs(view: SessionView) -> bool:
    return any(call.status == "in_progress" for call in view.open_calls)

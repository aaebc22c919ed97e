"""A store that refuses to commit: nothing of it is shown, and the session comes back."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from towline_agent import Model, Piece, Request, StepResult, TextPiece, mint_now, tool
from towline_agent.testing import ScriptedProvider, call, say
from towline_protocol import (
    CreateSession,
    Problem,
    Text,
    ToolEnded,
    TurnFailed,
    TurnStarted,
    block_text,
)
from towline_server.errors import StoreFull
from towline_server.store.records import Append
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

PATIENCE_S = 10


class Disk:
    """Makes a store whose disk is full when it is told so."""

    def __init__(self) -> None:
        self.full = False

    def on_commit(self, phase: str, appends: tuple[Append, ...]) -> None:
        if self.full and phase == "before" and appends:
            raise StoreFull("The disk is full. Make room.", retry_after_s=30.0)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def store(disk: Disk) -> AsyncGenerator[SqliteStore]:
    store = await open_memory_store(mint=mint_now, on_commit=disk.on_commit)
    yield store
    await store.close()


class Speaker:
    """A provider that speaks until it is cut, once, and then briefly."""

    model = Model(provider="scripted", id="speaker")

    def __init__(self) -> None:
        self.spoke = asyncio.Event()
        self.cut = asyncio.Event()

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        del request
        if self.cut.is_set():
            return say("well")
        on_piece(TextPiece(0, "and then"))
        self.spoke.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cut.set()
        raise AssertionError("nobody ends the wait")

    async def models(self) -> tuple[str, ...]:
        return ()

    async def aclose(self) -> None:
        pass


@pytest.mark.rules("C1.3", "C1.4", "C2.4")
async def test_a_prompt_that_cannot_be_kept_is_not_taken_and_the_next_one_is(
    disk: Disk, store: SqliteStore, tmp_path: Path
) -> None:
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as reader:
            await reader.until(lambda: reader.ids == [1])
            disk.full = True
            answer = await client.prompt(session, "first", key="k")
            await reader.until(lambda: reader.ended)  # it comes back with its cursor
            assert reader.ids == [1]
        assert answer.status == 503
        assert answer.headers["retry-after"] == "30"
        problem = answer.read(Problem)
        assert (problem.code, problem.scope, problem.retry) == (
            "store_full",
            "store",
            "same_request",
        )
        assert (await client.view(session)).queue == ()  # it can still be read
        disk.full = False
        assert (await client.prompt(session, "first", key="k")).status == 202
        await client.until(session, ran(1))
        log = await client.log(session)
    assert [envelope.seq for envelope in log] == list(range(1, len(log) + 1))


async def test_a_session_that_cannot_be_kept_is_not_there(
    disk: Disk, store: SqliteStore, tmp_path: Path
) -> None:
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        disk.full = True
        new = CreateSession(prompt=(Text(text="first"),))
        assert (await client.ask("POST", "/api/sessions", new)).status == 503
        disk.full = False
        assert b'"sessions":[]' in (await client.ask("GET", "/api/sessions")).body
        assert built.sessions.live == ()


@pytest.mark.rules("C1.3", "C1.20", "C1.21", "S11")
async def test_a_turn_on_a_full_disk_stops_and_fails_when_there_is_room_again(
    disk: Disk, store: SqliteStore, tmp_path: Path
) -> None:
    speaker = Speaker()
    async with open_test_app(speaker, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as reader:
            await client.prompt(session, "speak")
            await reader.until(lambda: b"and then" in b"".join(reader.pieces))
            disk.full = True
            assert (await client.prompt(session, "what?")).status == 503
            await reader.until(lambda: reader.ended)
            seen = reader.ids
        async with asyncio.timeout(PATIENCE_S):
            await speaker.cut.wait()  # nobody pays for an answer that cannot be kept
        for _ in range(2):  # each look loads it, and the turn's end still finds no room
            assert (await client.view(session)).last_turn is None
        disk.full = False
        view = await client.until(session, ran(1))
        assert view.fault is not None
        assert view.fault.code == "store_full"
        await client.prompt(session, "speak again")
        await client.until(session, ran(2))
        log = await client.log(session)
    assert seen == [envelope.seq for envelope in log][: len(seen)]
    assert [type(e.event) for e in log].count(TurnStarted) == 2
    (failed,) = [e.event for e in log if isinstance(e.event, TurnFailed)]
    assert failed.fault.scope == "store"


@pytest.mark.rules("C5.5", "C5.7")
async def test_a_tool_that_runs_when_the_disk_is_full_is_stopped_and_ends_unknown(
    disk: Disk, store: SqliteStore, tmp_path: Path
) -> None:
    began, may_leave = asyncio.Event(), asyncio.Event()

    @tool(name="change")
    async def change() -> str:
        """Change it."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await may_leave.wait()
        return "never"

    provider = ScriptedProvider(call("change"), "I see")
    async with open_test_app(provider, root=tmp_path, store=store, tools=[change]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "change it")
        async with asyncio.timeout(PATIENCE_S):
            await began.wait()
        disk.full = True
        assert (await client.prompt(session, "what?")).status == 503
        disk.full = False
        looking = asyncio.create_task(client.view(session))
        for _ in range(2000):
            await asyncio.sleep(0)
        assert not looking.done()  # the session does not come back beside its old turn
        may_leave.set()
        await looking
        await client.until(session, ran(1))
        await client.prompt(session, "and now?")
        view = await client.until(session, ran(2))
        log = await client.log(session)
    assert [e.event.status for e in log if isinstance(e.event, ToolEnded)] == ["unknown"]
    assert block_text(view.messages[-1].content) == "I see"

"""A turn that nobody watches: it goes on, or is interrupted after a while."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import QuestionResolved, TurnCancelled, TurnCompleted, block_text
from towline_server.auth.reserved_name import SERVER
from towline_server.build import BuiltApp
from towline_server.sessions.recovery import ORPHANED
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

AFTER_S = 30.0


class Alone:
    """A session in which a turn runs until it is told to end."""

    def __init__(self, built: BuiltApp, clock: FakeClock, gate: asyncio.Event) -> None:
        self.built = built
        self.client = AppClient(built)
        self.clock = clock
        self.gate = gate
        self.session = ""

    async def begin(self, until: bytes = b"step_started") -> None:
        self.session = await self.client.create()
        async with self.client.follow(self.session) as wire:
            await self.client.prompt(self.session, "go")
            await wire.until(lambda: until in b"".join(wire.pieces))

    async def pass_on(self, seconds: float) -> None:
        """Let time pass, and everybody take note."""
        for _ in range(50):
            await asyncio.sleep(0)
        self.clock.advance(seconds)
        for _ in range(50):
            await asyncio.sleep(0)

    async def runs(self) -> bool:
        view = await self.client.view(self.session)
        return view.turn is not None

    async def ends(self) -> list[TurnCancelled | TurnCompleted]:
        await self.client.until(self.session, ran(1))
        log = await self.client.log(self.session)
        return [e.event for e in log if isinstance(e.event, TurnCancelled | TurnCompleted)]


@asynccontextmanager
async def _alone(tmp_path: Path, after_s: float | None) -> AsyncGenerator[Alone]:
    gate = asyncio.Event()
    clock = FakeClock(held=True)
    provider = ScriptedProvider([gate], "next")
    async with open_test_app(provider, root=tmp_path, clock=clock, orphan_turn_s=after_s) as built:
        alone = Alone(built, clock, gate)
        await alone.begin()
        yield alone


@pytest.mark.rules("C5.13", "C5.16", "S29")
async def test_a_turn_goes_on_when_every_client_has_left_and_its_end_is_kept(
    tmp_path: Path,
) -> None:
    async with _alone(tmp_path, None) as alone:
        await alone.pass_on(100_000)
        assert await alone.runs()
        alone.gate.set()
        (end,) = await alone.ends()
    assert isinstance(end, TurnCompleted)


@pytest.mark.rules("C5.13", "C5.16", "S29")
async def test_where_it_is_wished_a_turn_that_nobody_watches_is_interrupted(
    tmp_path: Path,
) -> None:
    async with _alone(tmp_path, AFTER_S) as alone:
        await alone.client.prompt(alone.session, "and then?")
        await alone.pass_on(AFTER_S - 1)
        assert await alone.runs()
        await alone.pass_on(1)
        view = await alone.client.until(alone.session, lambda view: view.last_turn is not None)
        assert [block_text(queued.content) for queued in view.queue] == ["and then?"]  # it is held
        log = await alone.client.log(alone.session)
        (end,) = [e.event for e in log if isinstance(e.event, TurnCancelled | TurnCompleted)]
        assert isinstance(end, TurnCancelled)
        assert (end.by, end.reason) == (SERVER, ORPHANED)
        await alone.client.prompt(alone.session, "I am back")
        await alone.client.until(alone.session, lambda view: len(view.queue) < 2)


@pytest.mark.rules("C5.13", "C5.16", "S29")
async def test_a_reader_that_comes_in_time_keeps_the_turn_and_the_time_begins_anew(
    tmp_path: Path,
) -> None:
    async with _alone(tmp_path, AFTER_S) as alone:
        await alone.pass_on(AFTER_S - 1)
        async with alone.client.follow(alone.session) as wire:
            await wire.take(1)
            await alone.pass_on(10 * AFTER_S)
            assert await alone.runs()
        await alone.pass_on(AFTER_S - 1)
        assert await alone.runs()
        alone.gate.set()
        (end,) = await alone.ends()
    assert isinstance(end, TurnCompleted)


@pytest.mark.rules("C1.23", "C5.13", "S29")
async def test_what_an_interrupted_turn_waits_for_is_settled_and_its_queue_stays_held(
    tmp_path: Path,
) -> None:
    clock = FakeClock(held=True)
    store = await open_memory_store(mint=mint_now)
    question = call("ask_user", items=[{"prompt": "Which?"}])
    provider = ScriptedProvider(question)
    async with open_test_app(
        provider, root=tmp_path, clock=clock, store=store, orphan_turn_s=AFTER_S
    ) as built:
        alone = Alone(built, clock, asyncio.Event())
        await alone.begin(until=b"question_asked")
        await alone.client.prompt(alone.session, "and then?")
        await alone.pass_on(AFTER_S)
        view = await alone.client.until(alone.session, lambda view: view.last_turn is not None)
        assert (view.questions, view.open_calls) == ((), ())
        log = await alone.client.log(alone.session)
    assert [e.event.by for e in log if isinstance(e.event, QuestionResolved)] == ["cancel"]
    second = ScriptedProvider("never")
    async with open_test_app(
        second, root=tmp_path, store=store, clock=clock, orphan_turn_s=AFTER_S
    ) as built:
        view = await AppClient(built).view(alone.session)
        assert (len(view.queue), view.turn, second.requests) == (1, None, [])
    await store.close()

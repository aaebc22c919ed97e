"""A question that a restart cut: asked again, answered meanwhile, or ended with its turn."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from towline_agent import AuthenticationFailed, mint_now
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    Envelope,
    Event,
    QuestionAsked,
    QuestionResolved,
    SessionId,
    SessionView,
    ToolEnded,
    ToolResult,
    TurnFailed,
    TurnResumed,
    block_text,
    parse_time,
)
from towline_server import Connect, Connection
from towline_server.auth.reserved_name import SERVER
from towline_server.build import BuiltApp
from towline_server.sessions.deadline import BLIP_S
from towline_server.sessions.recovery import MAX_ATTEMPTS
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

GRACE_S = 60.0
ASK = call("ask_user", items=[{"prompt": "Which?", "options": ["this", "that"]}])
THAT = {"item_1": ["option_2"]}


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store that outlives the servers on it."""
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


@asynccontextmanager
async def _up(
    store: SqliteStore,
    root: Path,
    provider: ScriptedProvider,
    *,
    clock: FakeClock | None = None,
    connect: Connect | None = None,
) -> AsyncGenerator[tuple[AppClient, BuiltApp]]:
    """One life of a server; it ends without a drain, as if its machine had been turned off."""
    async with open_test_app(
        provider, root=root, store=store, clock=clock, connect=connect
    ) as built:
        yield AppClient(built), built


async def _begin(client: AppClient) -> SessionId:
    session = await client.create()
    await client.prompt(session, "go")
    await client.until(session, _asked)
    return session


def _asked(view: SessionView) -> bool:
    return bool(view.questions)


def _of(log: list[Envelope], *kinds: type[Event]) -> list[Event]:
    return [envelope.event for envelope in log if isinstance(envelope.event, kinds)]


def _told(provider: ScriptedProvider) -> str:
    (result,) = provider.requests[0].messages[-1].content
    assert isinstance(result, ToolResult)
    return block_text(result.content)


async def _take_note(built: BuiltApp) -> None:
    """Let everything come to where it waits, over a few commits."""
    for _ in range(10):
        for _ in range(20):
            await asyncio.sleep(0)
        for session in built.sessions.live:
            await session.log.settle()


@pytest.mark.rules("C5.5", "C5.8", "S20")
async def test_an_open_question_is_asked_again_with_its_id_and_its_turn_goes_on(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with _up(store, tmp_path, ScriptedProvider(ASK)) as (client, _):
        session = await _begin(client)
        await client.prompt(session, "and then?")  # it is not blocked by the question
        (before,) = (await client.view(session)).questions
    second = ScriptedProvider("done", "that too")
    async with _up(store, tmp_path, second) as (client, _):
        view = await client.until(session, lambda view: view.turn is not None and _asked(view))
        assert [one.question for one in view.questions] == [before.question]
        assert (await client.answer_question(session, before.question, THAT)).status == 200
        view = await client.until(session, ran(2))
        log = await client.log(session)
    assert _told(second) == "Which?\n→ that"
    assert len(_of(log, QuestionResolved)) == len(_of(log, ToolEnded)) == 1
    assert {one.question for one in _of(log, QuestionAsked) if isinstance(one, QuestionAsked)} == {
        before.question
    }


@pytest.mark.rules("C5.8", "C5.9", "S20")
async def test_time_in_which_no_server_ran_does_not_count(
    store: SqliteStore, tmp_path: Path
) -> None:
    clock = FakeClock(held=True)
    async with _up(store, tmp_path, ScriptedProvider(ASK), clock=clock) as (client, built):
        session = await _begin(client)
        await _take_note(built)
        clock.advance(BLIP_S)  # the reader of `_begin` has left
        await _take_note(built)
        clock.advance(20)
        await client.prompt(session, "and then?")
    clock.advance(100_000)
    second = ScriptedProvider("done", "that too")
    async with _up(store, tmp_path, second, clock=clock) as (client, built):
        left_s = -1.0
        async with asyncio.timeout(20):
            while left_s < 0:  # until the turn asks again; a reader would stop the clock
                await _take_note(built)
                (again,) = (await client.view(session)).questions
                assert again.expires_at is not None
                left_s = (parse_time(again.expires_at) - clock.now_ms()) / 1000
        assert left_s == GRACE_S - BLIP_S - 20
        clock.advance(left_s)
        async with asyncio.timeout(20):
            while (await client.view(session)).questions:  # for the same reason
                await _take_note(built)
        await client.until(session, ran(2))
    assert "Decide yourself" in _told(second)


@pytest.mark.rules("C5.8", "C5.10", "S20")
async def test_an_answer_that_comes_before_the_question_is_asked_again_counts(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with _up(store, tmp_path, ScriptedProvider(ASK)) as (client, _):
        session = await _begin(client)
        (question,) = (await client.view(session)).questions
    go = asyncio.Event()
    second = ScriptedProvider("done")

    async def connect(model: str) -> Connection:
        del model
        await go.wait()
        return Connection(second)

    async with _up(store, tmp_path, second, connect=connect) as (client, _):
        unfit = await client.answer_question(session, question.question, {"item_1": []})
        assert unfit.status == 422
        answered = await client.answer_question(session, question.question, THAT, key="k")
        assert answered.status == 200, answered.body
        go.set()
        await client.until(session, ran(1))
        log = await client.log(session)
        again = await client.answer_question(session, question.question, THAT, key="k")
        assert (again.status, again.body) == (200, answered.body)
    assert _told(second) == "Which?\n→ that"
    assert len(_of(log, QuestionAsked)) >= 1
    assert len(_of(log, QuestionResolved)) == 1


@pytest.mark.rules("C1.23", "C5.4", "S17")
async def test_a_turn_that_is_given_up_takes_its_question_back(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with _up(store, tmp_path, ScriptedProvider(ASK)) as (client, _):
        session = await _begin(client)
        (question,) = (await client.view(session)).questions

    async def refuse(model: str) -> Connection:
        raise AuthenticationFailed(f"There is no key for {model!r} any more; add one.")

    async with _up(store, tmp_path, ScriptedProvider(), connect=refuse) as (client, _):
        view = await client.until(session, ran(1))
        late = await client.answer_question(session, question.question, THAT)
        log = await client.log(session)
    assert (view.questions, view.open_calls) == ((), ())
    assert late.status == 410
    ends = _of(log, QuestionResolved, TurnFailed)
    assert [type(event) for event in ends] == [QuestionResolved, TurnFailed]
    assert isinstance(ends[0], QuestionResolved)
    assert ends[0].by == SERVER


@pytest.mark.rules("C5.4", "C5.8", "S20")
async def test_a_turn_that_only_waits_for_a_person_outlives_any_number_of_restarts(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with _up(store, tmp_path, ScriptedProvider(ASK)) as (client, _):
        session = await _begin(client)
    for resumed in range(1, MAX_ATTEMPTS + 3):
        async with _up(store, tmp_path, ScriptedProvider()) as (client, _):
            async with asyncio.timeout(10):
                while len(_of(await client.log(session), TurnResumed)) < resumed:
                    view = await client.view(session)
            view = await client.view(session)
            assert view.turn is not None
            assert view.turn.attempt == 1
    async with _up(store, tmp_path, ScriptedProvider("done")) as (client, _):
        view = await client.until(session, lambda view: view.turn is not None and _asked(view))
        (question,) = view.questions
        await client.answer_question(session, question.question, THAT)
        view = await client.until(session, ran(1))
    assert view.last_turn is not None
    assert view.last_turn.outcome == "completed"


@pytest.mark.rules("C5.8", "C5.14", "S20")
async def test_a_question_does_not_hold_the_stop_of_the_server_up_and_readers_gone_by_it_never_left(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with _up(store, tmp_path, ScriptedProvider(ASK)) as (client, built):
        session = await client.create()
        async with client.follow(session) as wire:
            await client.prompt(session, "go")
            await wire.until(lambda: b"question_asked" in b"".join(wire.pieces))
            before = len(await client.log(session))
            built.streams.drain()
            async with asyncio.timeout(5):  # far below the grace
                await built.sessions.drain(60)
    row = await store.session(session)
    assert row is not None
    assert (row.last_seq, row.pending) == (before, 1)

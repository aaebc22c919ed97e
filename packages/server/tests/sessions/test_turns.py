"""Turns of one session: queued, steered, stopped, given up."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from towline_agent import (
    Model,
    Piece,
    Request,
    StepResult,
    TextPiece,
    tool,
)
from towline_agent.testing import ScriptedProvider, call, say
from towline_protocol import (
    TERMINAL_EVENTS,
    CreateSession,
    Envelope,
    Problem,
    PromptAccepted,
    PromptDelivered,
    SessionView,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnStarted,
    UsageError,
    block_text,
)
from towline_server import Connection
from towline_server.sessions.inbox import MAX_INBOX
from towline_server.testing import AppClient, open_test_app, ran

PATIENCE_S = 10


def _of(log: list[Envelope], *kinds: type) -> list[Envelope]:
    return [envelope for envelope in log if isinstance(envelope.event, kinds)]


def _said(view: SessionView) -> list[str]:
    return [f"{m.role}: {block_text(m.content)}" for m in view.messages if m.role != "mark"]


@pytest.mark.rules("C2.11", "S24")
async def test_prompts_to_a_busy_session_wait_and_run_in_order(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "one"), gate], "two", "three")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        places = [(await client.prompt(session, text)).read(PromptAccepted) for text in ("b", "c")]
        assert [place.position for place in places] == [0, 1]
        gate.set()
        view = await client.until(session, ran(3))
        assert _said(view) == [
            "user: first",
            "assistant: one",
            "user: b",
            "assistant: two",
            "user: c",
            "assistant: three",
        ]
        log = await client.log(session)
    assert len(_of(log, TurnStarted)) == len(_of(log, TurnCompleted)) == 3


@pytest.mark.rules("C2.11", "S24")
async def test_a_steer_goes_into_the_running_turn_even_during_its_last_step(tmp_path: Path) -> None:
    gate, last = asyncio.Event(), asyncio.Event()
    provider = ScriptedProvider([gate, call("look")], [TextPiece(0, "seen"), last], "and that")
    async with open_test_app(provider, root=tmp_path, tools=[_look]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "look")
        await client.until(session, lambda view: view.turn is not None and view.turn.step == 1)
        await client.prompt(session, "mind the step", when="steer")
        gate.set()
        await client.until(session, lambda view: bool(view.open_messages))
        await client.prompt(session, "mind the gap", when="steer")
        last.set()
        await client.until(session, ran(3))
        log = await client.log(session)
    hows = [e.event.how for e in log if isinstance(e.event, PromptDelivered)]
    assert hows == ["started", "steered", "steered"]
    assert [m.role for m in provider.requests[1].messages][-3:] == ["assistant", "tool", "user"]
    assert len(_of(log, TurnStarted)) == 1


@pytest.mark.rules("C2.3", "C2.11", "S24")
async def test_a_prompt_that_must_run_at_once_is_refused_while_another_one_runs_or_waits(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    async with open_test_app(ScriptedProvider([gate, TextPiece(0, "a")], "b"), root=tmp_path) as b:
        client = AppClient(b)
        session = await client.create()
        answers = await asyncio.gather(
            *(client.prompt(session, text, when="reject") for text in ("one", "two"))
        )
        assert sorted(answer.status for answer in answers) == [202, 409]
        refused = next(answer for answer in answers if answer.status == 409).read(Problem)
        assert (refused.code, refused.reason) == ("conflict", "turn_active")
        gate.set()
        await client.until(session, ran(1))
        assert (await client.prompt(session, "three", when="reject")).status == 202


@pytest.mark.rules("C2.4", "C6")
async def test_an_inbox_that_is_full_says_when_to_come_back(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_test_app(ScriptedProvider([gate]), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: view.turn is not None)
        for number in range(MAX_INBOX):
            assert (await client.prompt(session, f"{number}")).status == 202
        full = await client.prompt(session, "one too many")
        assert full.status == 429
        assert full.headers["retry-after"] == "5"
        problem = full.read(Problem)
        assert (problem.code, problem.retry) == ("capacity_exceeded", "same_request")


@pytest.mark.rules("C2.11", "S28")
async def test_a_stop_holds_the_queue_until_the_next_prompt(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "long"), gate], "two", "three")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        view = await client.until(session, lambda view: bool(view.open_messages))
        assert view.turn is not None
        await client.prompt(session, "second")
        assert await client.interrupt(session, TurnId("trn_other")) is None
        assert await client.interrupt(session) == view.turn.id
        view = await client.until(session, lambda view: view.last_turn is not None)
        assert len(view.queue) == 1
        assert view.turn is None
        assert await client.interrupt(session) is None
        await client.prompt(session, "third")
        view = await client.until(session, ran(3))
        log = await client.log(session)
    assert len(_of(log, TurnCancelled)) == 1
    assert [line for line in _said(view) if line.startswith("user")] == [
        "user: first",
        "user: second",
        "user: third",
    ]


@pytest.mark.rules("C1.23", "A4.23", "S17", "S28")
async def test_a_stop_in_an_open_request_denies_it_and_a_late_answer_is_told_so(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(call("change"), "well")
    async with open_test_app(provider, root=tmp_path, tools=[_change], mode="ask") as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "change it")
        view = await client.until(session, lambda view: bool(view.permissions))
        await client.interrupt(session)
        stopped = await client.until(session, ran(1))
        assert stopped.permissions == ()
        assert [call.status for call in stopped.calls] == ["cancelled"]
        late = await client.answer(session, view.permissions[0], "allow_once")
        assert late.status == 410
        assert late.read(Problem).reason == "expired"
        await client.prompt(session, "go on")
        again = await client.until(session, ran(2))
        assert _said(again)[-1] == "assistant: well"
        log = await client.log(session)
    assert len(_of(log, *TERMINAL_EVENTS)) == 2


class _Slow:
    """Connects when it is told to; until then a turn is about to begin."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self._provider = provider

    async def connect(self, model: str) -> Connection:
        del model
        self.asked.set()
        await self.go.wait()
        return Connection(self._provider)


@pytest.mark.rules("C1.20", "C1.21", "S28")
async def test_a_stop_reaches_a_turn_that_is_about_to_begin(tmp_path: Path) -> None:
    provider = ScriptedProvider("never")
    slow = _Slow(provider)
    async with open_test_app(provider, root=tmp_path, connect=slow.connect) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        async with asyncio.timeout(PATIENCE_S):
            await slow.asked.wait()
        stopped = await client.interrupt(session)
        assert stopped is not None
        slow.go.set()
        view = await client.until(session, lambda view: view.last_turn is not None)
        assert view.last_turn is not None
        assert (view.last_turn.id, view.last_turn.outcome) == (stopped, "cancelled")
        assert view.queue == ()
        assert provider.requests == []


async def test_a_model_that_is_slow_to_come_holds_up_no_session_whose_model_is_there(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider("one", "two")
    slow = _Slow(provider)
    slow.go.set()
    async with open_test_app(provider, root=tmp_path, connect=slow.connect) as built:
        client = AppClient(built)
        quick = await client.create()
        await client.prompt(quick, "first")
        await client.until(quick, ran(1))
        slow.go.clear()
        slow.asked.clear()
        other = await client.create(CreateSession(model="slow/one"))
        await client.prompt(other, "first")
        async with asyncio.timeout(PATIENCE_S):
            await slow.asked.wait()
        await client.prompt(quick, "second")
        await client.until(quick, ran(2))


class _Lawless:
    """A provider that breaks its word: it raises."""

    model = Model(provider="scripted", id="lawless")

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        del request
        on_piece(TextPiece(0, "before it"))
        if self._errors:
            raise self._errors.pop(0)
        return say("before it all went well")

    async def models(self) -> tuple[str, ...]:
        return ()

    async def aclose(self) -> None:
        pass


@pytest.mark.rules("C1.20", "C1.21", "C1.22", "S11")
@pytest.mark.parametrize("error", [UsageError("This cannot be asked."), RuntimeError("a bug")])
async def test_a_provider_that_raises_ends_the_turn_and_not_the_session(
    tmp_path: Path, error: Exception
) -> None:
    async with open_test_app(_Lawless(error), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.prompt(session, "second")
        view = await client.until(session, ran(2))
        log = await client.log(session)
    assert view.open_messages == ()
    assert [type(envelope.event) for envelope in _of(log, *TERMINAL_EVENTS)] == [
        TurnFailed,
        TurnCompleted,
    ]


@pytest.mark.rules("C1.20", "C1.21")
@pytest.mark.parametrize(
    ("error", "code"), [(UsageError("No such model."), "invalid_request"), (OSError(), "internal")]
)
async def test_a_model_that_cannot_be_had_fails_the_turn_and_says_why(
    tmp_path: Path, error: Exception, code: str
) -> None:
    async def connect(model: str) -> Connection:
        del model
        raise error

    async with open_test_app(ScriptedProvider(), root=tmp_path, connect=connect) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        view = await client.until(session, lambda view: view.last_turn is not None)
        assert view.fault is not None
        assert view.fault.code.startswith(code)
        assert _said(view) == ["user: first"]
        assert view.queue == ()


@tool(name="look", effect="read")
async def _look() -> str:
    """Look."""
    return "a step"


@tool(name="change")
async def _change() -> str:
    """Change it."""
    return "changed"

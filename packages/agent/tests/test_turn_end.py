"""Each way in which a turn ends."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from towline_agent.errors import (
    AbortTurn,
    AuthenticationFailed,
    ContextOverflow,
    ProviderUnavailable,
    ResponseMalformed,
)
from towline_agent.plan import Plan
from towline_agent.providers.base import (
    Model,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
)
from towline_agent.testing import ScriptedHost, ScriptedProvider, call, scripted_plan
from towline_agent.tools.function import tool
from towline_protocol import (
    TERMINAL_EVENTS,
    Limits,
    Text,
    Thinking,
    ToolCall,
    TowlineError,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    Usage,
)

PRICED = Model(provider="scripted", id="priced", price_input=1.0, price_output=2.0)


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there."


def broken(*, streamed: bool = False, usage: Usage | None = None) -> StepFailed:
    error = AuthenticationFailed("The key is wrong; set another one.")
    return StepFailed(error=error, streamed=streamed, usage=usage or Usage())


def answer(*blocks: Text | Thinking | ToolCall, stop_reason: str = "end_turn") -> StepAnswer:
    return StepAnswer(content=blocks, stop_reason=stop_reason, usage=Usage(input=10, output=5))


def _looks(count: int) -> list[StepAnswer]:
    return [call("look", at=f"{number} " * 4000) for number in range(count)]


def too_long() -> StepFailed:
    return StepFailed(error=ContextOverflow("Too long.", reason="context_overflow"))


@tool(effect="read")
async def abort() -> str:
    """End the turn."""
    raise AbortTurn("The disk is on fire; leave the house.")


class RaisingProvider(ScriptedProvider):
    """Breaks its promise: says a word and raises."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        on_piece(TextPiece(0, "Well"))
        raise self._error


def check_end(host: ScriptedHost) -> None:
    """One terminal event, the last of all, settled; nothing open; a restart would say the same."""
    ends = [event for event in host.events if isinstance(event, TERMINAL_EVENTS)]
    assert ends == [host.events[-1]]
    assert host.settled == len(host.events)
    assert host.loose_ids() == set()
    assert host.fold().messages() == host.transcript.messages()


WAYS: dict[str, tuple[Callable[[], Plan], str]] = {
    "stop": (lambda: scripted_plan(ScriptedProvider("Hello.")), "end_turn"),
    "stop after calls": (
        lambda: scripted_plan(ScriptedProvider(call("look", at="a"), "There."), look),
        "end_turn",
    ),
    "refusal": (
        lambda: scripted_plan(
            ScriptedProvider(answer(Text(text="No."), stop_reason="refusal")),
        ),
        "refusal",
    ),
    "refusal without words": (
        lambda: scripted_plan(ScriptedProvider(answer(stop_reason="refusal"))),
        "refusal",
    ),
    "token limit": (
        lambda: scripted_plan(ScriptedProvider(answer(Text(text="He"), stop_reason="max_tokens"))),
        "max_tokens",
    ),
    "token limit while thinking": (
        lambda: scripted_plan(
            ScriptedProvider(answer(Thinking(text="hm"), stop_reason="max_tokens"))
        ),
        "max_tokens",
    ),
    "tool error": (
        lambda: scripted_plan(ScriptedProvider(call("look", on="a"), "I see."), look),
        "end_turn",
    ),
    "abort": (lambda: scripted_plan(ScriptedProvider(call("abort")), abort), "rejected"),
    "step limit": (
        lambda: scripted_plan(
            ScriptedProvider(call("look", at="a"), "So far."), look, limits=Limits(max_steps=1)
        ),
        "max_steps",
    ),
    "step limit without hand-over": (
        lambda: scripted_plan(
            ScriptedProvider(call("look", at="a")),
            look,
            limits=Limits(max_steps=1),
            hand_over=False,
        ),
        "max_steps",
    ),
    "hand-over that fails": (
        lambda: scripted_plan(
            ScriptedProvider(call("look", at="a"), broken()), look, limits=Limits(max_steps=1)
        ),
        "max_steps",
    ),
    "budget of tokens": (
        lambda: scripted_plan(
            ScriptedProvider(call("look", at="a")), look, limits=Limits(max_tokens=15)
        ),
        "budget",
    ),
    "budget of money": (
        lambda: scripted_plan(
            ScriptedProvider(call("look", at="a"), model=PRICED),
            look,
            limits=Limits(max_cost=0.00002),
        ),
        "budget",
    ),
    "wall time": (
        lambda: scripted_plan(ScriptedProvider([asyncio.Event()]), limits=Limits(wall_s=0.01)),
        "time_limit",
    ),
    "provider error": (lambda: scripted_plan(ScriptedProvider(broken())), "provider_auth"),
    "provider error in mid-answer": (
        lambda: scripted_plan(ScriptedProvider([TextPiece(0, "We"), broken(streamed=True)])),
        "provider_auth",
    ),
    "no room": (
        lambda: scripted_plan(ScriptedProvider(too_long())),
        "provider_context_overflow",
    ),
    "room that is made": (
        lambda: scripted_plan(
            ScriptedProvider(*_looks(7), too_long(), "They looked.", "There."), look
        ),
        "end_turn",
    ),
    "empty answers": (lambda: scripted_plan(ScriptedProvider(answer(), "")), "provider_malformed"),
    "fault of ours": (
        lambda: scripted_plan(RaisingProvider(ZeroDivisionError("secret"))),
        "internal_error",
    ),
    "timeout of the provider's own": (
        lambda: scripted_plan(RaisingProvider(TimeoutError()), limits=Limits(wall_s=60.0)),
        "internal_error",
    ),
    "provider that raises its error": (
        lambda: scripted_plan(RaisingProvider(ProviderUnavailable("It is down."))),
        "provider_unavailable",
    ),
    "provider that cancels itself": (
        lambda: scripted_plan(RaisingProvider(asyncio.CancelledError())),
        "internal_error",
    ),
}


@pytest.mark.rules("C1.20", "C1.21", "C1.22", "C1.23", "S11")
@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_ends_once_and_its_end_is_the_last_event(way: str) -> None:
    make, expected = WAYS[way]
    host = ScriptedHost()
    end = await host.run(make())
    check_end(host)
    assert end.event == host.events[-1]
    match end.event:
        case TurnCompleted(stop_reason=reason):
            assert reason == expected
            assert end.error is None
        case TurnFailed(fault=fault):
            assert fault.code == expected
            assert "secret" not in fault.message
            assert end.error is not None
        case TurnCancelled():
            pytest.fail("nobody stopped it")
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.rules("R51")
async def test_two_answers_of_nothing_in_a_row_end_the_turn() -> None:
    silent = answer(Thinking(text="hm"), Text(text=" \n"))
    provider = ScriptedProvider(silent, call("look", at="a"), silent, silent, "never said")
    host = ScriptedHost()
    end = await host.run(scripted_plan(provider, look))
    assert len(provider.requests) == 4
    assert isinstance(end.error, ResponseMalformed)
    assert isinstance(end.event, TurnFailed)
    assert "answered nothing" in end.event.fault.message


async def test_the_exception_behind_a_failure_is_handed_on() -> None:
    error = ZeroDivisionError("by zero")
    end = await ScriptedHost().run(scripted_plan(RaisingProvider(error)))
    assert end.error is error


class BrokenHost(ScriptedHost):
    """Its store breaks at the n-th settle and stays broken."""

    def __init__(self, at: int, **facts: Any) -> None:
        super().__init__(**facts)
        self._left = at

    async def settle(self) -> None:
        self._left -= 1
        if self._left <= 0:
            raise TowlineError("The disk is full; make room.")
        await super().settle()


@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_a_store_that_breaks_leaves_the_turn_as_its_exception(at: int) -> None:
    host = BrokenHost(at)
    with pytest.raises(TowlineError, match="disk is full"):
        await host.run(scripted_plan(ScriptedProvider(call("look", at="a"), "Done."), look))
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_call_does_not_run_when_its_start_is_not_durable() -> None:
    ran: list[str] = []

    @tool
    async def write() -> str:
        """Write."""
        ran.append("write")
        return "ok"

    with pytest.raises(TowlineError, match="disk is full"):
        await BrokenHost(2).run(scripted_plan(ScriptedProvider(call("write"), "Done."), write))
    assert ran == []

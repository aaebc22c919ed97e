"""What a summary of the conversation costs, told with it."""

import pytest

from towline_agent.context.compact import Compactor
from towline_agent.plan import Plan
from towline_agent.providers.base import Model, Request, StepResult
from towline_agent.testing import ScriptedHost, ScriptedProvider, say, scripted_plan
from towline_protocol import (
    CallId,
    Compacted,
    Message,
    MessageEnded,
    MessageId,
    PromptDelivered,
    Text,
    ToolCall,
    ToolEnded,
    TurnStarted,
    Usage,
)

SPENT = Usage(input=9_000, output=100)


def plan_of(price: float | None) -> Plan:
    model = Model(provider="p", id="small", window=10_000, price_input=price, price_output=price)
    return scripted_plan(ScriptedProvider(model=model))


def long_conversation(plan: Plan) -> ScriptedHost:
    """Six long results, and the prompts before them."""
    earlier = tuple(Message(role, (Text(text="y" * 12_000),)) for role in ("user", "assistant") * 2)
    host = ScriptedHost("Go.", earlier=earlier)
    host.emit(TurnStarted(prompt=host.prompt, model="p/small", limits=plan.limits))
    host.emit(PromptDelivered(prompt=host.prompt, turn=host.turn, how="started"))
    return host


@pytest.mark.rules("A4.48", "A4.49")
@pytest.mark.parametrize(("price", "cost"), [(1_000.0, 9.1), (None, None)])
async def test_a_summary_is_told_with_what_it_used_and_cost(
    price: float | None, cost: float | None
) -> None:
    plan = plan_of(price)
    host = long_conversation(plan)

    async def ask(request: Request) -> StepResult:
        del request
        return say("They talked.", usage=SPENT)

    assert await Compactor(plan).make_room(host, ask) is None
    (event,) = [event for event in host.events if isinstance(event, Compacted)]
    assert event.summary is not None
    assert (event.model, event.usage, event.cost) == ("p/small", SPENT, cost)


async def test_results_that_are_cut_cost_nothing() -> None:
    plan = plan_of(1.0)
    host = ScriptedHost("Go.")
    host.emit(TurnStarted(prompt=host.prompt, model="p/small", limits=plan.limits))
    host.emit(PromptDelivered(prompt=host.prompt, turn=host.turn, how="started"))
    for number in range(8):
        call = CallId(f"call_{number}")
        asked = ToolCall(id=call, name="look", arguments="{}")
        host.emit(MessageEnded(message=MessageId(f"msg_{number}"), content=(asked,)))
        told = (Text(text="x" * 5_000),)
        host.emit(ToolEnded(call=call, status="completed", content=told))

    async def ask(request: Request) -> StepResult:
        raise AssertionError(request.model)

    assert await Compactor(plan).make_room(host, ask) is None
    (event,) = [event for event in host.events if isinstance(event, Compacted)]
    assert (event.model, event.usage, event.cost) == (None, None, None)

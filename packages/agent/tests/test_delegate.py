"""Agents that work for another one in the same process."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_agent.agent import Agent
from towline_agent.delegate import AGENTS_AT_ONCE, EXPLORE, GENERAL, SubAgent, Tally
from towline_agent.errors import QuotaExhausted
from towline_agent.limits import Spent
from towline_agent.providers.base import Model, StepAnswer, StepFailed
from towline_agent.testing import ScriptedProvider, call, say
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext
from towline_protocol import (
    DENY,
    Event,
    Limits,
    PermissionRequested,
    Text,
    ToolEnded,
    ToolProgress,
    ToolResult,
    Usage,
    UsageError,
    block_text,
)


def spawn(prompt: str = "Look.", agent: str = "general") -> StepAnswer:
    return call("spawn_agent", prompt=prompt, agent=agent)


def both(*answers: StepAnswer) -> StepAnswer:
    """One answer with the calls of several."""
    content = tuple(block for answer in answers for block in answer.content)
    return msgspec.structs.replace(answers[0], content=content)


def dear(answer: StepAnswer) -> StepAnswer:
    """An answer that uses 110 tokens."""
    return msgspec.structs.replace(answer, usage=Usage(input=100, output=10))


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


@tool(effect="write")
def change() -> str:
    """Change something."""
    return "changed"


async def events_of(agent: Agent) -> list[Event]:
    async with agent.stream("Go.") as events:
        return [event async for event in events]


def ends(events: Sequence[Event]) -> list[str]:
    return [block_text(event.content) for event in events if isinstance(event, ToolEnded)]


@pytest.mark.rules("A4.61", "D5", "A5.T16")
async def test_a_task_is_done_by_an_agent_of_its_own() -> None:
    provider = ScriptedProvider(spawn("Find it."), call("look"), "It is there.", "Found.")
    events = await events_of(Agent(provider, tools=[look], agents=[GENERAL]))
    assert ends(events) == ["It is there."]
    (progress,) = [event.text for event in events if isinstance(event, ToolProgress)]
    assert progress == "general: look"
    lead, first, second, last = provider.requests
    assert [block_text(message.content) for message in first.messages] == ["Find it."]
    assert "You are general." in first.system
    assert [spec.name for spec in lead.tools] == ["look", "spawn_agent"]
    assert [spec.name for spec in first.tools] == ["look"]  # and cannot spawn itself
    assert len(second.messages) == 3
    assert "Found." not in repr(last.messages)


@pytest.mark.rules("A4.61")
async def test_an_agent_that_only_reads_gets_no_tool_that_does_more() -> None:
    provider = ScriptedProvider(spawn(agent="explore"), "Nothing.", "Done.")
    await events_of(Agent(provider, tools=[look, change], agents=[EXPLORE, GENERAL]))
    assert [spec.name for spec in provider.requests[1].tools] == ["look"]


@pytest.mark.rules("D5")
async def test_what_an_agent_wants_to_do_is_asked_in_its_name() -> None:
    asked: list[PermissionRequested] = []

    async def decide(request: PermissionRequested) -> str:
        asked.append(request)
        return "allow_session" if len(asked) == 1 else DENY

    provider = ScriptedProvider(
        spawn(), call("change"), call("change"), "I did.", call("change"), "Done."
    )
    agent = Agent(provider, tools=[change], agents=[GENERAL], mode="ask", answer=decide)
    events = await events_of(agent)
    (request,) = asked  # the second time, and for the first agent, the rule counts
    assert request.title == "general: change"
    assert ends(events) == ["I did.", "changed"]


@pytest.mark.rules("A5.44", "A4.61")
@pytest.mark.parametrize(
    ("mode", "told"), [("plan", "the mode 'plan'"), ("accept_edits", "Nobody"), ("ask", "Nobody")]
)
async def test_an_agent_may_do_no_more_than_the_one_that_it_works_for(
    tmp_path: Path, mode: str, told: str
) -> None:
    escapes = [call("shell", command="touch b.txt"), call("shell", command="cat .env")]
    (tmp_path / ".env").write_text("KEY=hidden")
    provider = ScriptedProvider(spawn(), *escapes, spawn("Again."), "No.", "Done.")
    agent = Agent(provider, tools=builtin_tools(), agents=[GENERAL], mode=mode, root=str(tmp_path))
    await events_of(agent)
    results = [
        block_text(block.content)
        for request in provider.requests
        for message in request.messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]
    assert any(told in result for result in results), results
    assert any("no tool 'spawn_agent'" in result for result in results), results
    assert not any("hidden" in result for result in results)
    assert os.listdir(tmp_path) == [".env"]  # noqa: PTH208 - one look at a small folder


@pytest.mark.rules("D5", "A4.8", "A4.48")
async def test_what_an_agent_uses_counts_in_the_turn() -> None:
    answers = [spawn(), call("look"), say("It is there."), say("Found.")]
    provider = ScriptedProvider(*map(dear, answers))
    result = await Agent(provider, tools=[look], agents=[GENERAL]).run("Go.")
    assert result.usage == Usage(input=400, output=40)
    assert result.steps == 2


@pytest.mark.rules("D5", "A4.8")
async def test_the_bounds_of_the_turn_hold_for_its_agents() -> None:
    answers = [spawn(), call("look"), call("look"), call("look")]
    provider = ScriptedProvider(*map(dear, answers))
    limits = Limits(max_tokens=250)
    agent = Agent(provider, tools=[look], agents=[GENERAL], limits=limits)
    events = await events_of(agent)
    assert ends(events) == ["The agent ended without an answer.\n[it stopped early: budget]"]
    assert len(provider.requests) == 3


@pytest.mark.rules("D5")
async def test_an_agent_has_bounds_of_its_own() -> None:
    hasty = SubAgent(name="hasty", description="x", instructions="", limits=Limits(max_steps=1))
    provider = ScriptedProvider(spawn(agent="hasty"), call("look"), "I got nowhere.", "Done.")
    events = await events_of(Agent(provider, tools=[look], agents=[hasty]))
    assert ends(events) == ["I got nowhere.\n[it stopped early: max_steps]"]


@pytest.mark.rules("D5")
async def test_agents_asked_for_together_work_together_but_few_at_once() -> None:
    at_work, most = 0, 0
    enough = asyncio.Event()

    @tool(effect="read")
    async def wait(context: ToolContext) -> str:
        """Wait until as many work as may."""
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if at_work == AGENTS_AT_ONCE:
            enough.set()
        await enough.wait()
        at_work -= 1
        return f"waited in {context.workspace.root}"

    number = AGENTS_AT_ONCE + 2
    provider = _ByWords(
        {"Go.": both(*[spawn("Wait.") for _ in range(number)]), "Wait.": call("wait")}
    )
    async with asyncio.timeout(20):
        events = await events_of(Agent(provider, tools=[wait], agents=[GENERAL]))
    assert most == AGENTS_AT_ONCE
    assert ends(events) == ["Done."] * number


@pytest.mark.rules("D5", "A4.23")
async def test_a_cancel_reaches_the_agent() -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def hang() -> str:
        """Hang."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return ""

    provider = ScriptedProvider(spawn(), call("hang"))
    task = asyncio.create_task(Agent(provider, tools=[hang], agents=[GENERAL]).run("Go."))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert gone.is_set()


@pytest.mark.rules("D5", "A4.16")
async def test_an_agent_that_fails_ends_its_call_and_no_more(tmp_path: Path) -> None:
    provider = ScriptedProvider(spawn(), StepFailed(error=QuotaExhausted("No credit.")), "I go on.")
    agent = Agent(provider, agents=[GENERAL], root=str(tmp_path))
    events = await events_of(agent)
    assert ends(events) == ["The agent failed: No credit."]
    assert provider.requests[-1].messages[-1].role == "tool"


def test_a_tally_tells_each_token_once() -> None:
    told: list[tuple[Usage, float | None]] = []
    tally = Tally(lambda usage, cost: told.append((usage, cost)))
    first = Spent(usage=Usage(input=5, output=1), cost=0.5, known_cost=0.5)
    tally.reach(first)
    tally.reach(first)
    tally.reach(Spent(usage=Usage(input=3), cost=0.1, known_cost=0.1))
    assert told == [(Usage(input=5, output=1), 0.5)]
    told.clear()
    unknown = Spent(usage=Usage(input=9, output=2), cost=None, known_cost=0.75)
    tally.reach(unknown)
    tally.reach(unknown)
    assert told == [(Usage(input=4, output=1), 0.25), (Usage(), None)]
    told.clear()
    tally.reach(Spent(usage=Usage(input=9, output=2), cost=None, known_cost=1.75))
    assert told == [(Usage(), 1.0)]  # what is known goes on to count


PRICED = Model(provider="scripted", id="dear", price_input=1e6, price_output=0.0)
"""A dollar for each token that goes in."""


class _Counting(ScriptedProvider):
    """A sub-agent that calls a tool over and over, for a dollar each time but the first."""

    async def step(self, request: Any, on_piece: Any) -> Any:
        self.requests.append(request)
        if not request.system.startswith("You are general."):
            free = spawn() if len(self.requests) == 1 else say("Done.")
            return msgspec.structs.replace(free, usage=Usage(output=1))
        counted = Usage() if len(self.requests) == 2 else Usage(input=1)
        return msgspec.structs.replace(call("look", n=len(self.requests)), usage=counted)


@pytest.mark.rules("A4.8", "D5")
async def test_a_request_that_nobody_counted_lifts_no_budget_of_the_agent_above() -> None:
    @tool(effect="read")
    def look(n: int) -> str:
        """Look."""
        return str(n)

    provider = _Counting(model=PRICED)
    agent = Agent(provider, tools=[look], agents=[GENERAL], limits=Limits(max_cost=3.0))
    result = await agent.run("Go.")
    assert (result.stop_reason, result.cost, result.usage.input) == ("budget", None, 3)


class _Hanging(ScriptedProvider):
    """A sub-agent whose request never ends."""

    async def step(self, request: Any, on_piece: Any) -> Any:
        if request.system.startswith("You are general."):
            await asyncio.Event().wait()
        return await super().step(request, on_piece)


@pytest.mark.rules("A4.49", "D5")
@pytest.mark.parametrize(("price", "cost"), [(1.0, None), (0.0, 0.0)])
async def test_a_request_cut_with_the_call_has_an_unknown_cost_unless_it_is_free(
    price: float, cost: float | None
) -> None:
    model = Model(provider="scripted", id="m", price_input=price, price_output=price)
    asks = msgspec.structs.replace(spawn(), usage=Usage(input=1))
    provider = _Hanging(asks, model=model)
    agent = Agent(provider, agents=[GENERAL], limits=Limits(wall_s=0.05))
    result = await agent.run("Go.")
    assert (result.stop_reason, result.cost) == ("time_limit", cost)


class _ByWords(ScriptedProvider):
    """Answers by the first words of the conversation, then says that it is done."""

    def __init__(self, answers: dict[str, StepAnswer]) -> None:
        super().__init__()
        self._answers = answers

    async def step(self, request: Any, on_piece: Any) -> Any:
        if len(request.messages) == 1:
            return self._answers[block_text(request.messages[0].content)]
        return StepAnswer(content=(Text(text="Done."),), stop_reason="end_turn", usage=Usage())


@pytest.mark.parametrize(
    "agents", ["explore", EXPLORE, [Agent(ScriptedProvider())], [EXPLORE, "general"], None]
)
def test_agents_that_are_none_are_refused_before_a_run(agents: Any) -> None:
    with pytest.raises(UsageError, match=r"'agents' can't be .*give a list such as `\[EXPLORE\]`"):
        Agent(ScriptedProvider(), agents=agents)


def test_two_agents_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="Two agents are called 'explore'"):
        Agent(ScriptedProvider(), agents=[EXPLORE, EXPLORE])

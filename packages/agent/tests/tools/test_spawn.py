"""Handing a task to another agent."""

import asyncio
from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.errors import AbortTurn, ToolDenied, ToolInputInvalid
from towline_agent.testing import ScriptedHost, ScriptedProvider, call, scripted_plan
from towline_agent.tools.spawn import AgentRunner, make_spawn_agent
from towline_protocol import ToolEnded, block_text

AGENTS = {"reader": "Reads files.", "writer": "Writes files."}


def runner(answer: str | Exception) -> tuple[AgentRunner, list[tuple[str, str | None]]]:
    asked: list[tuple[str, str | None]] = []

    async def run(prompt: str, agent: str | None) -> str:
        asked.append((prompt, agent))
        if isinstance(answer, Exception):
            raise answer
        return answer

    return run, asked


async def ended(run: AgentRunner, **arguments: Any) -> ToolEnded:
    """How a call of the tool ends in a turn."""
    host = ScriptedHost()
    spawn = make_spawn_agent(run, AGENTS if "agent" in arguments else None)
    await host.run(
        scripted_plan(ScriptedProvider(call("spawn_agent", **arguments), "Done."), spawn)
    )
    return next(event for event in host.events if isinstance(event, ToolEnded))


@pytest.mark.rules("A4.61", "D20")
async def test_a_task_goes_to_the_runner_and_its_answer_comes_back() -> None:
    run, asked = runner("Found it.")
    end = await ended(run, prompt="Find the fault.", agent="reader")
    assert (end.status, block_text(end.content)) == ("completed", "Found it.")
    assert asked == [("Find the fault.", "reader")]


@pytest.mark.rules("A4.61")
async def test_a_runner_that_is_not_async_is_told_of() -> None:
    def at_once(_prompt: str, _agent: str | None) -> Any:
        return "Found it."

    end = await ended(at_once, prompt="Find the fault.")
    assert (end.status, end.is_error) == ("failed", True)
    assert "'Found it.' at once; make it an `async def`" in block_text(end.content)


@pytest.mark.rules("A4.61")
async def test_an_agent_may_be_given_another_one() -> None:
    inner = Agent(ScriptedProvider("Lisbon."))

    async def run(prompt: str, agent: str | None) -> str:
        return (await inner.run(prompt)).final_message

    provider = ScriptedProvider(call("spawn_agent", prompt="Which city?"), "It is Lisbon.")
    result = await Agent(provider, tools=[make_spawn_agent(run)]).run("Ask around.")
    assert result.final_message == "It is Lisbon."
    (_, _, told, _) = result.messages
    assert "Lisbon." in repr(told)


@pytest.mark.rules("A4.61")
def test_the_tool_names_the_agents_to_choose_from() -> None:
    run, _ = runner("")
    alone, many = make_spawn_agent(run), make_spawn_agent(run, AGENTS)
    assert alone.name == many.name == "spawn_agent"
    assert alone.effect == "own"
    assert list(alone.parameters["properties"]) == ["prompt"]
    assert many.parameters["properties"]["agent"]["enum"] == ["reader", "writer"]
    assert "- writer: Writes files." in many.description
    with pytest.raises(ToolInputInvalid, match="cook"):
        many.check('{"prompt": "Bake.", "agent": "cook"}')
    with pytest.raises(ToolInputInvalid, match="agent"):
        alone.check('{"prompt": "Bake.", "agent": "reader"}')


async def test_an_agent_that_says_nothing_is_told_as_that() -> None:
    end = await ended(runner(" \n")[0], prompt="Look.")
    assert block_text(end.content) == "The agent ended without an answer."


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AbortTurn("The disk is full."), "The agent failed: The disk is full."),
        (ToolDenied("Two levels are enough."), "Two levels are enough."),
        (RuntimeError("secret"), "spawn_agent failed with RuntimeError."),
    ],
)
async def test_a_failure_of_the_other_agent_ends_its_turn_alone(
    error: Exception, words: str
) -> None:
    end = await ended(runner(error)[0], prompt="Look.")
    assert (end.status, end.is_error, block_text(end.content)) == ("failed", True, words)


def test_a_person_sees_who_is_asked_for_what() -> None:
    spawn = make_spawn_agent(runner("")[0], AGENTS)
    assert spawn.title is not None
    assert spawn.title({"prompt": "Read\n it.", "agent": "reader"}) == "Ask reader: Read it."
    assert spawn.title({"prompt": "x" * 99}) == f"Hand over: {'x' * 80}…"


async def test_a_task_that_takes_too_long_is_cut() -> None:
    cancelled = asyncio.Event()

    async def run(prompt: str, agent: str | None) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return prompt

    host = ScriptedHost()
    script = ScriptedProvider(call("spawn_agent", prompt="Wait."), "Done.")
    await host.run(scripted_plan(script, make_spawn_agent(run, timeout_s=0.01)))
    end = next(event for event in host.events if isinstance(event, ToolEnded))
    assert block_text(end.content) == "spawn_agent took longer than 0.01 s."
    assert cancelled.is_set()

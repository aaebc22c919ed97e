"""Agents that are run from code that does not await."""

import threading
from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.errors import AuthenticationFailed
from towline_agent.providers.base import StepFailed
from towline_agent.testing import FakeClock, ScriptedProvider, call, counted_ids
from towline_agent.tools.function import tool
from towline_protocol import UsageError


def agent(provider: ScriptedProvider, *tools: Any) -> Agent:
    return Agent(provider, tools=tools, clock=FakeClock(), mint=counted_ids())


@pytest.mark.rules("A4.51")
async def test_it_runs_without_await_inside_a_running_loop_too() -> None:
    threads: list[str] = []

    @tool(effect="read")
    async def where() -> str:
        """Say in which thread this runs."""
        threads.append(threading.current_thread().name)
        return "here"

    for _ in range(2):
        one = agent(ScriptedProvider(call("where"), "Done."), where)
        assert one.run_sync("Where?").final_message == "Done."
    assert threads == ["towline-run-sync"] * 2


@pytest.mark.rules("A4.51")
def test_it_runs_without_a_loop_and_raises_what_a_run_raises() -> None:
    assert agent(ScriptedProvider("Hi.")).run_sync("Hi").final_message == "Hi."
    refused = StepFailed(error=AuthenticationFailed("The key is wrong."))
    with pytest.raises(AuthenticationFailed):
        agent(ScriptedProvider(refused)).run_sync("Hi")
    daemons = [t for t in threading.enumerate() if t.name == "towline-run-sync"]
    assert [thread.daemon for thread in daemons] == [True]


@pytest.mark.rules("A4.51")
def test_a_blocking_tool_may_run_another_agent_without_await() -> None:
    def ask_other(question: str) -> str:
        """Ask another agent."""
        return agent(ScriptedProvider(f"You ask: {question}")).run_sync(question).final_message

    provider = ScriptedProvider(call("ask_other", question="Why?"), "I see.")
    result = agent(provider, ask_other).run_sync("Ask.")
    assert "You ask: Why?" in str(result.messages)


def test_an_async_tool_that_would_wait_for_its_own_loop_is_told_so() -> None:
    errors: list[Exception] = []

    @tool(effect="read")
    async def nested() -> str:
        """Run another agent and wait for it."""
        try:
            return agent(ScriptedProvider("Hi.")).run_sync("Hi").final_message
        except UsageError as error:
            errors.append(error)
            raise

    agent(ScriptedProvider(call("nested"), "Done."), nested).run_sync("Nest.")
    (error,) = errors
    assert "await run" in str(error)

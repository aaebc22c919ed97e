"""What an agent of the library is held to beside its own rules."""

from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.permissions.doubt import Allowed
from towline_agent.permissions.policy import Policy
from towline_agent.permissions.rules import parse_rule
from towline_agent.testing import FakeClock, ScriptedProvider, call, counted_ids
from towline_agent.tools.function import tool
from towline_protocol import PermissionRequested, UsageError


@pytest.mark.rules("A5.48", "A5.70")
async def test_a_policy_and_a_judge_stand_behind_an_agents_own_rules() -> None:
    @tool
    async def write(at: str) -> str:
        """Write."""
        return at

    async def judge(allowed: Allowed) -> str | None:
        return "It looks odd." if '"odd"' in allowed.arguments else None

    asked: list[str | None] = []

    async def answer(request: PermissionRequested) -> str:
        asked.append(request.reason)
        return "deny"

    denied = Policy(user=(parse_rule('deny write({"at": "far"})'),))
    for at, reason in (("near", []), ("odd", ["It looks odd."]), ("far", [])):
        asked.clear()
        made = Agent(
            ScriptedProvider(call("write", at=at), "Done."),
            tools=[write],
            clock=FakeClock(),
            mint=counted_ids(),
            policy=lambda: denied,
            judge=judge,
            answer=answer,
        )
        result = await made.run("Go.")
        assert asked == reason
        told = str(result.messages)
        assert ("Denied by rule" in told) is (at == "far")


@pytest.mark.rules("A5.70")
@pytest.mark.parametrize(
    ("value", "words"), [(None, "async def"), (True, "reason as text"), ("half \ud800", "")]
)
async def test_a_judge_that_is_none_asks_and_the_log_says_how_to_mend_it(
    value: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    async def write() -> str:
        """Write."""
        return "written"

    async def judge(_: Allowed) -> Any:
        return value

    def at_once(_: Allowed) -> Any:
        return value

    made = Agent(
        ScriptedProvider(call("write"), "Done."),
        tools=[write],
        judge=at_once if value is None else judge,
    )
    result = await made.run("Go.")
    assert "Nobody is there to allow it" in str(result.messages)
    assert words in caplog.text
    assert "\ud800" not in str(result.messages)


@pytest.mark.rules("A4.59")
async def test_a_policy_that_is_none_is_told_to_whoever_runs_it() -> None:
    @tool
    async def write() -> str:
        """Write."""
        return "written"

    nothing: Any = {}.copy
    made = Agent(ScriptedProvider(call("write"), "Done."), tools=[write], policy=nothing)
    with pytest.raises(UsageError, match=r"'policy' gave \{\}; return a `Policy`"):
        await made.run("Go.")

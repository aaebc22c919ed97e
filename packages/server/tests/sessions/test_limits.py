"""Bounds that a prompt asks for."""

from pathlib import Path

import pytest

from towline_agent import tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    Limits,
    PromptAdmitted,
    SendPrompt,
    SessionView,
    Text,
    TurnCompleted,
    TurnStarted,
)
from towline_server.testing import AppClient, open_test_app, ran


@tool(effect="read")
async def look() -> str:
    """Look round."""
    return "nothing"


@pytest.mark.rules("A4.8")
async def test_a_prompt_brings_the_bounds_of_its_own_turn_and_of_no_other(tmp_path: Path) -> None:
    provider = ScriptedProvider(call("look"), "handed over", call("look"), "well")
    async with open_test_app(provider, root=tmp_path, tools=[look]) as built:
        client = AppClient(built)
        session = await client.create()
        path = f"/api/sessions/{session}/prompts"
        bounded = SendPrompt(content=(Text(text="go"),), limits=Limits(max_steps=1))
        assert (await client.ask("POST", path, bounded)).status == 202
        await client.until(session, ran(1))
        assert (await client.prompt(session, "again")).status == 202
        view: SessionView = await client.until(session, ran(2))
        events = [envelope.event for envelope in await client.log(session)]
    admitted = [event.limits for event in events if isinstance(event, PromptAdmitted)]
    started = [event.limits for event in events if isinstance(event, TurnStarted)]
    reasons = [event.stop_reason for event in events if isinstance(event, TurnCompleted)]
    assert admitted == [Limits(max_steps=1), None]
    assert started == [Limits(max_steps=1), Limits()]
    assert reasons == ["max_steps", "end_turn"]
    assert view.turn is None


@pytest.mark.parametrize(
    "limits", [Limits(max_steps=0), Limits(wall_s=-1.0), Limits(max_tokens=0), Limits(max_cost=0.0)]
)
async def test_bounds_in_which_nothing_can_run_are_refused(tmp_path: Path, limits: Limits) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        body = SendPrompt(content=(Text(text="go"),), limits=limits)
        reply = await client.ask("POST", f"/api/sessions/{session}/prompts", body)
        assert reply.status == 400
        assert b"limits." in reply.body
        view = await client.until(session, lambda view: True)
        assert not view.queue

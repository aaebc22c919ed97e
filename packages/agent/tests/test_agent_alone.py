"""A run in its caller's own task: what others' code does there stays away from the caller."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.providers.base import Piece, Request, StepResult
from towline_agent.providers.credential import KeyCredential
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.testing import ScriptedProvider, ScriptedTransport, call
from towline_agent.tools.function import tool
from towline_protocol import TextDelta


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


class Deaf(ScriptedProvider):
    """Swallows a cancel, and breaks then."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        self.started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        raise ZeroDivisionError


class Moody(ScriptedProvider):
    """Cancels the task that it runs in."""

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return await super().step(request, on_piece)


@pytest.mark.rules("A4.28")
async def test_a_run_goes_its_way_in_a_task_that_was_cancelled_before() -> None:
    async def run() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        provider = ScriptedProvider(call("look", at="it"), "Seen.")
        return (await Agent(provider, tools=[look]).run("Look.")).final_message

    running = asyncio.create_task(run())
    await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(5):
        assert await running == "Seen."


async def test_a_provider_that_cancels_its_own_task_does_not_cancel_the_caller() -> None:
    with pytest.raises(RuntimeError, match="cancelled from within"):
        await Agent(Moody("Hello.")).run("Hi.")
    me = asyncio.current_task()
    assert me is not None
    assert not me.cancelling()


@pytest.mark.rules("A4.28", "S28")
async def test_a_cancel_that_a_provider_swallows_still_cancels_the_run() -> None:
    provider = Deaf()
    running = asyncio.create_task(Agent(provider).run("Hi."))
    async with asyncio.timeout(5):
        await provider.started.wait()
        running.cancel()
        await asyncio.wait({running})
    assert running.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    "given", [{}, {"transport": ScriptedTransport()}, {"api_key": KeyCredential("k")}]
)
def test_only_a_provider_without_code_of_others_needs_no_task(given: dict[str, Any]) -> None:
    assert OpenAIChat("m", base_url="http://127.0.0.1:1/v1", **given).is_ours == (not given)


def test_a_provider_that_others_have_changed_is_not_ours() -> None:
    class Changed(OpenAIChat):
        pass

    assert not Changed("m").is_ours


async def test_a_run_that_nobody_follows_comes_to_the_same_as_one_that_is_followed() -> None:
    def make() -> Agent:
        return Agent(ScriptedProvider(call("look", at="it"), "Seen."), tools=[look])

    alone = await make().run("Look.")
    async with make().stream("Look.") as events:
        deltas = [event async for event in events if isinstance(event, TextDelta)]
    assert deltas
    assert events.result is not None
    assert events.result.final_message == alone.final_message
    assert events.result.usage == alone.usage
    assert [m.role for m in events.result.messages] == [m.role for m in alone.messages]
    assert events.result.messages[-1] == alone.messages[-1]

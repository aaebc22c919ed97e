"""Tools, providers and stores that treat a cancel badly."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from towline_agent.errors import ProviderUnavailable
from towline_agent.providers.base import (
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
)
from towline_agent.testing import (
    ScriptedHost,
    ScriptedProvider,
    call,
    scripted_plan,
)
from towline_agent.tools.function import tool
from towline_protocol import (
    ToolCall,
    ToolEnded,
    ToolResult,
    ToolStarted,
    TowlineError,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    block_text,
)


async def check_left_well(host: ScriptedHost) -> None:
    """Nothing is open, no task is left, and the history takes a new prompt."""
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert host.loose_ids() == set()
    history = host.transcript.messages()
    assert host.fold().messages() == history
    provider = ScriptedProvider("On we go.")
    await ScriptedHost("Go on.", earlier=history).run(scripted_plan(provider))
    (request,) = provider.requests
    assert block_text(request.messages[-1].content) == "Go on."
    for before, after in zip(request.messages, request.messages[1:], strict=False):
        calls = [block.id for block in before.content if isinstance(block, ToolCall)]
        results = [block.call for block in after.content if isinstance(block, ToolResult)]
        assert calls == results


class StoppedProvider(ScriptedProvider):
    """Is stopped after a piece."""

    def __init__(self, host: ScriptedHost, piece: Piece, *, deaf: bool = False) -> None:
        super().__init__()
        self._host = host
        self._piece = piece
        self._deaf = deaf

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        on_piece(self._piece)
        self._host.stop()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self._deaf:
                raise
        return StepFailed(error=ProviderUnavailable("The line is cut."), streamed=True)


@pytest.mark.rules("A4.28", "S28")
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("effect", ["read", "write"])
async def test_a_tool_that_swallows_a_stop_does_not_keep_the_turn_going(
    effect: str, calls: int
) -> None:
    heard: list[str] = []

    @tool(effect=effect)
    async def deaf() -> str:
        """Hear no cancel."""
        if heard:
            return "ran after the stop"
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        heard.append("cancel")
        return "done all the same"

    content = call("deaf").content * calls
    provider = ScriptedProvider(StepAnswer(content=content, stop_reason="tool_calls"), "never said")
    host = ScriptedHost()
    turn = asyncio.create_task(host.run(scripted_plan(provider, deaf)))
    async with asyncio.timeout(5):
        await host.wait_for(ToolStarted)
        await asyncio.sleep(0)
        host.stop()
        end = await turn
    assert isinstance(end.event, TurnCancelled)
    assert len(provider.requests) == 1
    results = [block_text(e.content) for e in host.events if isinstance(e, ToolEnded)]
    assert results[0] == "done all the same"
    assert "ran after the stop" not in results
    await check_left_well(host)


@pytest.mark.rules("A4.28")
async def test_a_store_that_fails_during_a_stop_does_not_swallow_it() -> None:
    class Failing(ScriptedHost):
        async def settle(self) -> None:
            if isinstance(self.events[-1], ToolStarted):
                self.stop()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise TowlineError("The disk was full for a moment.") from None
            await super().settle()

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        return "seen"

    host = Failing()
    end = await host.run(scripted_plan(ScriptedProvider(call("look")), look))
    assert isinstance(end.event, TurnCancelled)
    await check_left_well(host)


@pytest.mark.rules("A4.28", "S28")
async def test_a_provider_that_swallows_a_stop_does_not_keep_the_turn_going() -> None:
    host = ScriptedHost()
    end = await host.run(scripted_plan(StoppedProvider(host, TextPiece(0, "We"), deaf=True)))
    assert isinstance(end.event, TurnCancelled)
    await check_left_well(host)


async def test_a_tool_that_cancels_itself_has_failed_and_the_turn_goes_on() -> None:
    @tool(effect="write")
    async def moody() -> str:
        """Await something that was cancelled."""
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        return await gone

    @tool(effect="read")
    async def moody_read() -> str:
        """Await something that was cancelled."""
        raise asyncio.CancelledError

    provider = ScriptedProvider(call("moody"), call("moody_read"), "So be it.")
    host = ScriptedHost()
    end = await host.run(scripted_plan(provider, moody, moody_read))
    assert isinstance(end.event, TurnCompleted)
    assert [event.status for event in host.events if isinstance(event, ToolEnded)] == [
        "failed",
        "failed",
    ]


async def break_late() -> None:
    """A group whose task breaks while it is left: Python 3.11 counts that as a cancel for ever."""

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_a_group_that_breaks_in_a_tool_fails_the_call_alone(effect: str) -> None:
    @tool(effect=effect)
    async def grouped() -> str:
        """Do many things at once."""
        await break_late()
        return "never"

    content = call("grouped").content * 2
    two = StepAnswer(content=content, stop_reason="tool_calls")
    host = ScriptedHost()
    end = await host.run(scripted_plan(ScriptedProvider(two, "So be it."), grouped))
    assert isinstance(end.event, TurnCompleted)
    statuses = [event.status for event in host.events if isinstance(event, ToolEnded)]
    assert statuses == ["failed", "failed"]


async def test_a_group_that_breaks_in_a_provider_is_no_stop() -> None:
    class Grouped(ScriptedProvider):
        async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
            with suppress(ExceptionGroup):
                await break_late()
            return await super().step(request, on_piece)

    end = await ScriptedHost().run(scripted_plan(Grouped("All is well.")))
    assert isinstance(end.event, TurnCompleted)


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_a_store_that_fails_once_fails_the_turn_with_its_words(effect: str) -> None:
    class Failing(ScriptedHost):
        async def settle(self) -> None:
            await asyncio.sleep(0)
            if isinstance(self.events[-1], ToolStarted):
                raise TowlineError("The disk was full for a moment.")
            await super().settle()

    @tool(effect=effect)
    async def look() -> str:
        """Look."""
        return "seen"

    host = Failing()
    end = await host.run(scripted_plan(ScriptedProvider(call("look")), look))
    assert isinstance(end.event, TurnFailed)
    assert end.event.fault.message == "The disk was full for a moment."
    await check_left_well(host)

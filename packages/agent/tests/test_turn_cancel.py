"""A turn that is stopped, or cancelled, at each place where it waits.

One long turn is run once to count its awaits. Then it is run again for each of them: there it is
stopped, or its caller is cancelled, or its time is up; the await then hangs, or goes on as if
nothing had happened.
"""

import asyncio
from collections.abc import Callable
from threading import Event as ThreadEvent
from typing import Any

import pytest

from towline_agent.errors import ProviderUnavailable, RateLimited
from towline_agent.limits import Slot
from towline_agent.plan import Plan
from towline_agent.providers.base import (
    ArgumentsPiece,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
)
from towline_agent.testing import (
    FakeClock,
    ScriptedHost,
    ScriptedProvider,
    call,
    scripted_plan,
)
from towline_agent.tools.function import THREADS, tool
from towline_agent.turn import Start, run_turn
from towline_protocol import (
    TERMINAL_EVENTS,
    CallId,
    Limits,
    MessageDiscarded,
    MessageEnded,
    PermissionRequested,
    PermissionResolved,
    Text,
    ToolCall,
    ToolEnded,
    ToolResult,
    ToolStarted,
    TurnCancelled,
    TurnCompleted,
    Usage,
    block_text,
)

HANG = "hang"
GO_ON = "go on"


class Awaits:
    """Numbers the awaits of a turn; at one of them it acts."""

    def __init__(self, at: int = 0, then: str = HANG) -> None:
        self.at = at
        self.then = then
        self.act: Callable[[], object] = lambda: None
        self.passed: list[str] = []

    async def __call__(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self.at:
            self.act()
            if self.then == HANG:
                await asyncio.Event().wait()
        await asyncio.sleep(0)


class PausingHost(ScriptedHost):
    def __init__(self, pause: Awaits, **facts: Any) -> None:
        super().__init__(**facts)
        self._pause = pause

    async def settle(self) -> None:
        await self._pause("settle")
        await super().settle()


class UnstoppableHost(PausingHost):
    """Leaves it to its caller to stop a turn, as the library does."""

    def stopped(self) -> Any:
        return None


class PausingProvider(ScriptedProvider):
    def __init__(self, pause: Awaits, *, is_ours: bool) -> None:
        self.is_ours = is_ours
        read, write = (
            ToolCall(id=CallId(""), name=name, arguments="{}") for name in ("look", "write")
        )
        content = (Text(text="I look and write."), read, read, write, write)
        first = StepAnswer(content=content, stop_reason="tool_calls", usage=Usage(input=1))
        super().__init__(
            StepFailed(error=ProviderUnavailable("It is down.")),
            StepFailed(error=RateLimited("Too many requests.")),
            first,
            "All is done.",
        )
        self._pause = pause

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        await self._pause("provider before a piece")
        result = await super().step(request, on_piece)
        await self._pause("provider after its pieces")
        return result


class PausingClock(FakeClock):
    def __init__(self, pause: Awaits) -> None:
        super().__init__()
        self._pause = pause

    async def sleep(self, delay_s: float) -> None:
        await self._pause("sleep")
        await super().sleep(delay_s)


class Scene:
    """A turn with retries, a wait, two reads at once, two writes that are asked for, two steps."""

    def __init__(self, at: int = 0, then: str = HANG, *, in_one_task: bool = False) -> None:
        self.pause = Awaits(at, then)
        self.in_one_task = in_one_task
        kind = UnstoppableHost if in_one_task else PausingHost
        self.host = kind(self.pause, answer=self.answer)
        self.clock = PausingClock(self.pause)

    async def answer(self, _: PermissionRequested) -> str:
        await self.pause("ask")
        return "allow_once"

    def plan(self, **facts: Any) -> Plan:
        @tool(effect="read")
        async def look() -> str:
            """Look."""
            await self.pause("look")
            return "seen"

        @tool
        async def write() -> str:
            """Write."""
            await self.pause("write")
            return "written"

        return scripted_plan(
            PausingProvider(self.pause, is_ours=self.in_one_task),
            look,
            write,
            mode="ask",
            clock=self.clock,
            slot=Slot(1),
            **facts,
        )


async def count_awaits() -> list[str]:
    scene = Scene()
    await scene.host.run(scene.plan())
    assert isinstance(scene.host.events[-1], TurnCompleted)
    return scene.pause.passed


AWAITS = asyncio.run(count_awaits())

LAST_STEP = 4
"""Awaits of the last step: what is stopped there and goes on may be done before it hears of it."""

everywhere = pytest.mark.parametrize(
    "at", range(1, len(AWAITS) + 1), ids=[f"{n}-{name}" for n, name in enumerate(AWAITS, 1)]
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


def test_the_scene_waits_in_every_way_a_turn_can() -> None:
    assert set(AWAITS) == {
        "ask",
        "look",
        "provider after its pieces",
        "provider before a piece",
        "settle",
        "sleep",
        "write",
    }


@pytest.mark.rules("A4.23", "C1.20", "C1.23", "R25", "R41", "S14", "S28")
@pytest.mark.parametrize("then", [HANG, GO_ON])
@everywhere
async def test_a_stop_at_any_await_ends_the_turn_once_and_leaves_nothing(
    at: int, then: str
) -> None:
    scene = Scene(at, then)
    host = scene.host
    scene.pause.act = host.stop
    if at == len(AWAITS):  # the end itself is being made durable: a stop comes too late
        scene.pause.then = GO_ON
    end = await host.run(scene.plan())
    assert [event for event in host.events if isinstance(event, TERMINAL_EVENTS)] == [end.event]
    assert host.events[-1] is end.event
    if at < len(AWAITS) - (0 if then == HANG else LAST_STEP):
        assert end.event == TurnCancelled(by="test", reason="enough", usage=end.event.usage)
    await check_left_well(host)


@pytest.mark.rules("A4.23", "C1.23", "R25", "S14")
@pytest.mark.parametrize("then", [HANG, GO_ON])
@pytest.mark.parametrize("in_one_task", [False, True])
@everywhere
async def test_a_cancelled_caller_leaves_nothing_and_gets_its_cancel(
    at: int, then: str, in_one_task: bool
) -> None:
    scene = Scene(at, then, in_one_task=in_one_task)
    turn = asyncio.create_task(scene.host.run(scene.plan()))
    scene.pause.act = turn.cancel
    await asyncio.wait({turn})
    assert turn.cancelled()
    ends = [event for event in scene.host.events if isinstance(event, TERMINAL_EVENTS)]
    assert len(ends) == (1 if at == len(AWAITS) else 0)  # else it stays open, to be resumed
    await check_left_well(scene.host)


@pytest.mark.rules("A4.8", "C1.20", "C1.23")
@everywhere
async def test_time_that_is_up_at_any_await_ends_the_turn_in_order(
    at: int, pass_hour: Callable[[], None]
) -> None:
    too_late = at == len(AWAITS)
    scene = Scene(at, GO_ON if too_late else HANG)
    scene.pause.act = (lambda: None) if too_late else pass_hour
    plan = scene.plan(limits=Limits(wall_s=600.0))
    end = await scene.host.run(plan, within_s=10.0 if too_late else 3610.0)
    assert isinstance(end.event, TurnCompleted)
    assert end.event.stop_reason == ("end_turn" if too_late else "time_limit")
    assert scene.host.events[-1] is end.event
    await check_left_well(scene.host)


@pytest.mark.rules("S28")
async def test_a_second_cancel_does_not_leave_a_task_behind() -> None:
    cleaning, clean = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def slow() -> str:
        """Take long to clean up."""
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await clean.wait()
        return "never"

    host = ScriptedHost()
    turn = asyncio.create_task(host.run(scripted_plan(ScriptedProvider(call("slow")), slow)))
    async with asyncio.timeout(5):
        await host.wait_for(ToolStarted)
        turn.cancel()
        await cleaning.wait()
        turn.cancel()
        await asyncio.sleep(0)
        clean.set()
        await asyncio.wait({turn})
    assert turn.cancelled()
    await check_left_well(host)


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


@pytest.mark.rules("A4.26", "S28")
async def test_a_call_in_a_thread_ends_unknown_when_it_is_cut_short() -> None:
    begun, release = ThreadEvent(), ThreadEvent()

    @tool(effect="write")
    def blocking() -> str:
        """Block a thread."""
        begun.set()
        release.wait(10)
        return "late"

    host = ScriptedHost()
    turn = asyncio.create_task(
        host.run(scripted_plan(ScriptedProvider(call("blocking")), blocking))
    )
    try:
        async with asyncio.timeout(5):
            await host.wait_for(ToolStarted)
            await THREADS.run(lambda: begun.wait(5))
            host.stop()
            end = await turn
    finally:
        release.set()
    assert isinstance(end.event, TurnCancelled)
    (ended,) = [event for event in host.events if isinstance(event, ToolEnded)]
    assert ended.status == "unknown"
    assert "still running in a thread" in block_text(ended.content)
    await check_left_well(host)


async def test_a_call_whose_thread_never_began_ends_cancelled() -> None:
    ran: list[str] = []

    @tool(effect="write")
    def blocking() -> str:
        """Run in a thread."""
        ran.append("blocking")
        return "ran"

    class Stopping(ScriptedHost):
        async def settle(self) -> None:
            if isinstance(self.events[-1], ToolStarted):
                self.stop()
                await asyncio.Event().wait()

    host = Stopping()
    await host.run(scripted_plan(ScriptedProvider(call("blocking")), blocking))
    (ended,) = [event for event in host.events if isinstance(event, ToolEnded)]
    assert (ended.status, ran) == ("cancelled", [])


@pytest.mark.rules("A4.24", "S28")
async def test_words_of_a_stopped_answer_stay_and_are_marked() -> None:
    host = ScriptedHost()
    await host.run(scripted_plan(StoppedProvider(host, TextPiece(0, "Half a"))))
    (ended,) = [event for event in host.events if isinstance(event, MessageEnded)]
    assert (ended.content, ended.cut) == ((Text(text="Half a"),), "cancelled")
    await check_left_well(host)


@pytest.mark.rules("A4.24", "S28")
async def test_a_call_that_was_still_being_written_is_given_up() -> None:
    host = ScriptedHost()
    await host.run(scripted_plan(StoppedProvider(host, ArgumentsPiece(0, '{"pa'))))
    assert any(isinstance(event, MessageDiscarded) for event in host.events)
    assert [message.role for message in host.transcript.messages()] == ["user"]
    await check_left_well(host)


@pytest.mark.rules("R41", "S28")
async def test_a_stop_while_a_person_is_asked_resolves_the_request() -> None:
    async def never(_: PermissionRequested) -> str:
        host.stop()
        await asyncio.Event().wait()
        raise AssertionError

    @tool
    async def write() -> str:
        """Write."""
        return "written"

    host = ScriptedHost(answer=never)
    await host.run(scripted_plan(ScriptedProvider(call("write")), write, mode="ask"))
    (resolved,) = [event for event in host.events if isinstance(event, PermissionResolved)]
    assert (resolved.option, resolved.by) == ("deny", "cancel")
    (ended,) = [event for event in host.events if isinstance(event, ToolEnded)]
    assert (ended.status, ended.duration_ms) == ("cancelled", 0)


async def test_a_stop_before_the_first_await_ends_the_turn() -> None:
    host = ScriptedHost()
    host.stop("ann", "changed her mind")
    plan = scripted_plan(ScriptedProvider([asyncio.Event()]))
    end = await run_turn(plan, host, Start(turn=host.turn, prompt=host.prompt))
    assert end.event == TurnCancelled(by="ann", reason="changed her mind", usage=Usage())

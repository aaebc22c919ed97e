"""The main path: one prompt, taken in steps to its stop reason.

```
turn_started → ( finish calls → steer → within limits? → make room → ask )* → one terminal event
```

The conversation lives in the host's transcript, which every emitted event goes into. So a turn
that a crash cut is resumed by running the same path again: it finds the calls that have no result,
or the answer that ends the turn, where the log left off.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final

import msgspec

from towline_agent.calls import run_calls
from towline_agent.context.compact import Compactor
from towline_agent.context.remind import build_reminder
from towline_agent.errors import ContextOverflow, ResponseMalformed, ToolInputInvalid
from towline_agent.host import Host, Stop
from towline_agent.limits import Spent, TimeLimit, first_sentence
from towline_agent.plan import CallRecord, Plan
from towline_agent.providers.base import Request, StepAnswer, StepFailed, StepResult
from towline_agent.repeats import Repeat, find_repeat
from towline_agent.speak import ASK_TO_SPEAK, speak_text, without_speak
from towline_agent.step import Stepper
from towline_agent.tasks import count_cancels, end_tasks, heed_cancel, wait_for
from towline_protocol import (
    CallId,
    Fault,
    Message,
    Notice,
    PromptDelivered,
    PromptId,
    Text,
    ToolCall,
    TowlineError,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnResumed,
    TurnStarted,
    block_text,
)

__all__ = ["Start", "TurnEnd", "last_text", "run_turn"]

_log: Final = logging.getLogger("towline.agent")

_EMPTY_ANSWERS: Final = 2
"""Answers without a word or a call, in a row, that end the turn (R51)."""
_BODY_CHARS: Final = 4_000
"""Of an answer that is kept in the error it led to."""
_ENDS: Final = frozenset({"max_tokens", "refusal"})
"""Why an answer without calls is the last one, whatever it holds."""


class Start(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a turn begins, or where a crash cut it."""

    turn: TurnId
    """The turn's id."""
    prompt: PromptId
    """The prompt that it takes; admitted already."""
    attempt: int = 0
    """0 for a new turn, else how often it was resumed (C5.4)."""
    journal: dict[CallId, CallRecord] = msgspec.field(default_factory=dict[CallId, CallRecord])
    """What the log says of the calls that a crash cut."""
    spent: Spent = msgspec.field(default_factory=Spent)
    """What it used before the crash."""
    elapsed_s: float = 0.0
    """Seconds since the turn started."""
    stop_reason: str = ""
    """Why the last answer ended, as its `step_ended` says."""
    speak: bool = False
    """Whether the prompt asks for words to say aloud (A4.30)."""


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended."""

    event: TurnCompleted | TurnFailed | TurnCancelled
    """The terminal event."""
    spent: Spent
    """All that it used."""
    error: Exception | None = None
    """The exception behind a failure, for Python callers: a `TowlineError`, or a surprise."""


_Outcome = tuple[TurnCompleted | TurnFailed | TurnCancelled, Exception | None]


async def run_turn(plan: Plan, host: Host, start: Start) -> TurnEnd:
    """Take a prompt to its stop reason; the terminal event is the last that is emitted (C1.20).

    Whatever the model, the tools and people do ends in an event. Only the host's own failure (its
    store) and an outer cancellation leave as exceptions, and then the turn stays open in the log.
    """
    turn = _Turn(plan, host, start)
    turn.open()
    stopped = host.stopped()
    event, error = await (_to_end(turn) if stopped is None else _until(stopped, turn))
    host.emit(event)
    await host.settle()
    return TurnEnd(event=event, spent=turn.spent, error=error)


async def _to_end(turn: "_Turn") -> _Outcome:
    """The steps of a turn that nobody stops but by a cancel of the running task."""
    before = count_cancels()
    try:
        return await turn.steps()
    except asyncio.CancelledError:
        heed_cancel(before)
        return turn.cancelled_inside()
    finally:
        heed_cancel(before)


async def _until(stopped: Awaitable[Stop], turn: "_Turn") -> _Outcome:
    """The steps of a turn, or what of them was done when somebody stopped it."""
    body = asyncio.create_task(turn.steps())
    stop = asyncio.ensure_future(stopped)
    try:
        await wait_for((body, stop), first=True)
        await end_tasks(body)
        return _outcome(body, stop, turn)
    finally:
        await end_tasks(body, stop)


def _outcome(body: asyncio.Task[_Outcome], stop: asyncio.Future[Stop], turn: "_Turn") -> _Outcome:
    if not body.cancelled():
        return body.result()
    if not stop.done():
        return turn.cancelled_inside()
    why = stop.result()
    return TurnCancelled(by=why.by, reason=why.reason, usage=turn.spent.usage), None


class _Turn:
    """One turn under way."""

    def __init__(self, plan: Plan, host: Host, start: Start) -> None:
        self._plan = plan
        self._host = host
        self._start = start
        self.spent = msgspec.structs.replace(start.spent)  # whoever gave it may count on
        self._stepper = Stepper(plan, host, self.spent)
        self._compactor = Compactor(plan)
        self._last = start.stop_reason
        self._final = False
        self._empty = 0
        self._correction = ""
        self._repeat: Repeat | None = None

    def open(self) -> None:
        """Say that the turn begins, or goes on."""
        if self._start.attempt:
            self._host.emit(TurnResumed(attempt=self._start.attempt))
            return
        start, plan = self._start, self._plan
        self._host.emit(
            TurnStarted(prompt=start.prompt, model=plan.provider.model.name, limits=plan.limits)
        )
        self._host.emit(PromptDelivered(prompt=start.prompt, turn=start.turn, how="started"))

    async def steps(self) -> _Outcome:
        """The steps up to an end. A rim: a surprise becomes `turn_failed`."""
        wall_s = self._plan.limits.wall_s
        left_s = None if wall_s is None else max(0.0, wall_s - self._start.elapsed_s)
        limit = TimeLimit(left_s)
        try:
            with limit:
                return await self._steps()
        except TowlineError as error:  # a tool's `AbortTurn`, or the host's store
            return self._failed(error), error
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired:
                return self._completed("time_limit"), None
            _log.exception("The turn %s broke", self._start.turn)
            return self._failed_inside(), error

    def cancelled_inside(self) -> _Outcome:
        """The end of a turn in which the provider's or the host's code let a cancel escape."""
        return self._failed_inside(), RuntimeError("The turn was cancelled from within.")

    def _failed_inside(self) -> TurnFailed:
        """The end of a turn that a fault of our own, of a tool or of a callback broke."""
        fault = Fault(
            code="internal_error",
            message="The turn broke by a fault in towline, in a tool or in a callback such as "
            "`answer`; the log has the traceback. Send the prompt again.",
        )
        return TurnFailed(fault=fault, usage=self.spent.usage)

    async def _steps(self) -> _Outcome:
        """The staircase. Each round is one step (A4.2)."""
        transcript = self._host.transcript
        while True:
            calls = transcript.open_calls()
            if calls:
                await self._finish(calls)
            steered = self._steer()
            if (self._final or transcript.answered()) and not steered:  # the model said its last
                misfit = self._misfit()
                if misfit is None:
                    return self._completed(self._stop_reason()), None
                if self._correction:
                    error = self._malformed(f"did not give the type that was asked for. {misfit}")
                    return self._failed(error), error
                self._correction = f"Your answer is not of the type that was asked for. {misfit}"
            self._repeat = find_repeat(transcript.messages())
            over = self.spent.over(self._plan.limits) or self._plan.used_up()
            if over is not None:
                return await self._stop_at(over)
            circle = self._circle()
            if circle is not None:
                return self._failed(circle), circle
            result = await self._ask()
            if not isinstance(result, StepAnswer):
                return self._failed(result.error), result.error
            if self._silent(result):
                error = self._malformed(f"answered nothing, {_EMPTY_ANSWERS} times")
                return self._failed(error), error

    def _silent(self, answer: StepAnswer) -> bool:
        """Whether the model said nothing too often in a row (R51)."""
        for block in answer.content:
            if type(block) is ToolCall or (type(block) is Text and block.text.strip()):
                self._empty = 0
                return False
        self._empty += 1
        return self._empty >= _EMPTY_ANSWERS

    async def _finish(self, calls: tuple[ToolCall, ...]) -> None:
        """Bring the calls of the last answer to their ends."""
        await run_calls(
            self._plan,
            self._host,
            calls,
            journal=self._start.journal,
            cut_by_length=self._last == "max_tokens",
            spent=self.spent,
        )

    def _steer(self) -> bool:
        """Deliver what people want said into the turn (A4.7)."""
        prompts = self._host.steers()
        for prompt in prompts:
            self._host.emit(PromptDelivered(prompt=prompt, turn=self._start.turn, how="steered"))
        return bool(prompts)

    def _stop_reason(self) -> str:
        return self._last if self._last in _ENDS else "end_turn"

    async def _stop_at(self, reason: str) -> _Outcome:
        """End at a bound; the step limit earns one request for a hand-over (A4.4)."""
        if reason == "max_steps" and self._plan.hand_over:
            result = await self._ask(hand_over=True)
            if isinstance(result, StepFailed):  # the work that was done is not lost by it (A4.54)
                self._host.emit(Notice(code="no_hand_over", message=result.error.message))
        return self._completed(reason), None

    def _circle(self) -> TowlineError | None:
        """What ends a turn whose model does the same over and over (A4.22)."""
        return None if self._repeat is None else self._repeat.error

    def _misfit(self) -> str | None:
        """Why the answer is not of the type that was asked for; `None` when it is (A4.60)."""
        spec = self._plan.output
        if spec is None or self._stop_reason() != "end_turn":
            return None
        try:
            spec.parse(last_text(self._host.transcript.messages()))
        except ToolInputInvalid as error:
            return error.message
        return None

    async def _ask(self, *, hand_over: bool = False) -> StepResult:
        """Take one step within the model's window: room is made before, and when it did not fit."""
        if not hand_over:
            self.spent.steps += 1
        plan, stepper, transcript = self._plan, self._stepper, self._host.transcript
        overflow = False
        while True:
            refusal = await self._compactor.make_room(
                self._host, self._sum_up, facts=stepper.model, overflow=overflow
            )
            if refusal is not None:
                return StepFailed(error=refusal)
            messages = transcript.messages()
            await plan.state.refresh(plan.workspace)
            result = await stepper.take(messages, hand_over=hand_over, trailing=self._trailing())
            if isinstance(result, StepAnswer):
                self._last = result.stop_reason
                self._final = self._last in _ENDS and ToolCall not in map(type, result.content)
                return result
            overflow = not result.streamed and isinstance(result.error, ContextOverflow)
            if not overflow:
                return result

    async def _sum_up(self, request: Request) -> StepResult:
        """Ask for a summary, and say so: it takes as long as an answer (A4.36)."""
        told = "The conversation is being summed up to fit the model's window."
        self._host.emit(Notice(code="compacting", message=told))
        return await self._stepper.consult(request)

    def _trailing(self) -> str:
        """The words of this step alone (A4.11, A4.12)."""
        plan = self._plan
        if self._stepper.model.bare_prompt:
            return ""
        notices = [
            self._repeat.notice if self._repeat is not None else "",
            ASK_TO_SPEAK if self._start.speak else "",
            plan.output.instruction if plan.output is not None else "",
            self._correction,
        ]
        now_ms = plan.clock.now_ms()
        parts = plan.reminders()
        return build_reminder(now_ms=now_ms, zone=plan.zone, notices=notices, parts=parts)

    def _malformed(self, what: str) -> ResponseMalformed:
        name = self._stepper.model.name
        return ResponseMalformed(
            f"The model {name!r} {what.rstrip('.')}. Ask in other words or take another model.",
            model=self._stepper.model.id,
            provider=self._stepper.model.provider,
            body=last_text(self._host.transcript.messages())[:_BODY_CHARS],
        )

    def _completed(self, reason: str) -> TurnCompleted:
        text = last_text(self._host.transcript.messages())
        return TurnCompleted(
            stop_reason=reason,
            usage=self.spent.usage,
            cost=self.spent.cost,
            summary=first_sentence(without_speak(text)),
            speak=speak_text(text) if self._start.speak else None,
        )

    def _failed(self, error: TowlineError) -> TurnFailed:
        return TurnFailed(fault=error.fault(), usage=self.spent.usage)


def last_text(messages: tuple[Message, ...]) -> str:
    """What the model said last since a person spoke; empty for nothing."""
    for message in reversed(messages):
        if message.role == "assistant":
            return block_text(message.content)
        if message.role == "user":
            break
    return ""

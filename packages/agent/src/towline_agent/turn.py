"""The main path: one prompt, taken in steps to its stop reason.

```
turn_started → ( finish calls → steer → within limits? → ask the model )* → one terminal event
```

The conversation lives in the host's transcript, which every emitted event goes into. So a turn
that a crash cut is resumed by running the same path again: it finds the calls that have no result,
or the answer that ends the turn, where the log left off.
"""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

import msgspec

from towline_agent.calls import end_tasks, heed_cancel, run_calls
from towline_agent.context.assemble import assemble
from towline_agent.errors import RateLimited, ResponseMalformed
from towline_agent.host import Host, Stop
from towline_agent.limits import Spent, first_sentence
from towline_agent.message import MessageWriter
from towline_agent.plan import CallRecord, Plan
from towline_agent.providers.base import Model, Request, StepAnswer, StepFailed, StepResult
from towline_protocol import (
    CallId,
    Context,
    Fault,
    Message,
    Notice,
    PromptDelivered,
    PromptId,
    StepEnded,
    StepStarted,
    Text,
    ToolCall,
    TowlineError,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnResumed,
    TurnStarted,
    Usage,
    Waiting,
    block_text,
    format_time,
)

__all__ = ["Start", "TurnEnd", "last_text", "run_turn"]

_log: Final = logging.getLogger("towline.agent")

_RETRIES: Final = 3
"""Tries after the first, before any piece has come (A3.13)."""
_RETRY_DELAYS_S: Final = (1.0, 2.0, 4.0)
_RETRY_DELAY_MAX_S: Final = 20.0
"""A provider's own delay up to this is taken for a retry (A3.13)."""
_EMPTY_ANSWERS: Final = 2
"""Answers without a word or a call, in a row, that end the turn (R51)."""
_WAITS: Final = 6
"""Rate-limit waits in a row (A3.23)."""
_WAIT_S: Final = (1.0, 30.0, 120.0)
"""Least, usual and longest rate-limit wait (A3.22, A3.23)."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where a turn begins, or where a crash cut it."""

    turn: TurnId
    """The turn's id."""
    prompt: PromptId
    """The prompt that it takes; admitted already."""
    attempt: int = 0
    """0 for a new turn, else how often it was resumed (C5.4)."""
    journal: dict[CallId, CallRecord] = field(default_factory=dict[CallId, CallRecord])
    """What the log says of the calls that a crash cut."""
    spent: Spent = field(default_factory=Spent)
    """What it used before the crash."""
    elapsed_s: float = 0.0
    """Seconds since the turn started."""
    cut_by_length: bool = False
    """Whether the last answer hit the token limit."""


@dataclass(frozen=True, kw_only=True)
class TurnEnd:
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
    body = asyncio.create_task(turn.steps())
    stop = asyncio.create_task(host.stopped())
    try:
        await asyncio.wait({body, stop}, return_when=asyncio.FIRST_COMPLETED)
        await end_tasks(body)
        event, error = _outcome(body, stop, turn)
    finally:
        await end_tasks(body, stop)
    host.emit(event)
    await host.settle()
    return TurnEnd(event=event, spent=turn.spent, error=error)


def _outcome(body: asyncio.Task[_Outcome], stop: asyncio.Task[Stop], turn: "_Turn") -> _Outcome:
    if not body.cancelled():
        return body.result()
    if not stop.done():  # the provider's or the host's code let a cancel of its own escape
        return turn.failed_inside(), RuntimeError("The turn was cancelled from within.")
    why = stop.result()
    return TurnCancelled(by=why.by, reason=why.reason, usage=turn.spent.usage), None


class _Turn:
    """One turn under way."""

    def __init__(self, plan: Plan, host: Host, start: Start) -> None:
        self._plan = plan
        self._host = host
        self._start = start
        self.spent = msgspec.structs.replace(start.spent)  # whoever gave it may count on
        self._cut_by_length = start.cut_by_length
        self._refused = False
        self._final = False
        self._waits = 0
        self._empty = 0

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
        limit = asyncio.timeout(left_s)
        try:
            async with limit:
                return await self._steps()
        except TowlineError as error:  # a tool's `AbortTurn`, or the host's store
            return self._failed(error), error
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return self._completed("time_limit"), None
            _log.exception("The turn %s failed by a fault of ours", self._start.turn)
            return self.failed_inside(), error

    def failed_inside(self) -> TurnFailed:
        """The end of a turn that a fault of our own or of a tool's code broke."""
        fault = Fault(
            code="internal_error",
            message="The turn broke by a fault in towline or in a tool; the log has the traceback. "
            "Send the prompt again.",
        )
        return TurnFailed(fault=fault, usage=self.spent.usage)

    async def _steps(self) -> _Outcome:
        """The staircase. Each round is one step (A4.2)."""
        while True:
            await self._finish_calls()
            steered = self._steer()
            if self._answered() and not steered:
                return self._completed(self._stop_reason()), None
            over = self.spent.over(self._plan.limits)
            if over is not None:
                return await self._stop_at(over)
            result = await self._ask()
            if isinstance(result, StepFailed):
                return self._failed(result.error), result.error
            if self._silent(result):
                error = ResponseMalformed(
                    f"The model {self._plan.provider.model.name!r} answered nothing, "
                    f"{_EMPTY_ANSWERS} times. Ask in other words or take another model."
                )
                return self._failed(error), error

    def _silent(self, answer: StepAnswer) -> bool:
        """Whether the model said nothing too often in a row (R51)."""
        says = any(
            isinstance(block, ToolCall) or (isinstance(block, Text) and block.text.strip())
            for block in answer.content
        )
        self._empty = 0 if says else self._empty + 1
        return self._empty >= _EMPTY_ANSWERS

    async def _finish_calls(self) -> None:
        calls = self._host.transcript.open_calls()
        if calls:
            await run_calls(
                self._plan,
                self._host,
                calls,
                journal=self._start.journal,
                cut_by_length=self._cut_by_length,
            )

    def _steer(self) -> bool:
        """Deliver what people want said into the turn (A4.7)."""
        prompts = self._host.steers()
        for prompt in prompts:
            self._host.emit(PromptDelivered(prompt=prompt, turn=self._start.turn, how="steered"))
        return bool(prompts)

    def _answered(self) -> bool:
        """Whether the model has said its last: words and no calls, or an end without any."""
        return self._final or self._host.transcript.answered()

    def _stop_reason(self) -> str:
        if self._cut_by_length:
            return "max_tokens"
        return "refusal" if self._refused else "end_turn"

    async def _stop_at(self, reason: str) -> _Outcome:
        """End at a bound; the step limit earns one request for a hand-over (A4.4)."""
        if reason == "max_steps" and self._plan.hand_over:
            result = await self._ask(hand_over=True)
            if isinstance(result, StepFailed):  # the work that was done is not lost by it (A4.54)
                self._host.emit(Notice(code="no_hand_over", message=result.error.message))
        return self._completed(reason), None

    async def _ask(self, *, hand_over: bool = False) -> StepResult:
        """One step's request, tried again while nothing has come of it (A3.12 to A3.16)."""
        if not hand_over:
            self.spent.steps += 1
        messages = self._host.transcript.messages()
        request = assemble(self._plan, messages, hand_over=hand_over)
        attempt = retries = 0
        while True:
            attempt += 1
            self._host.emit(StepStarted(model=self._plan.provider.model.name, attempt=attempt))
            await self._host.settle()
            result = await self._try(request, hand_over=hand_over)
            if isinstance(result, StepAnswer):
                return result
            delay_s, reason = self._pause(result, retries)
            if delay_s is None:
                return result
            retries += reason == "retry"
            await self._wait(delay_s, reason)

    async def _try(self, request: Request, *, hand_over: bool) -> StepResult:
        provider = self._plan.provider
        writer = MessageWriter(self._host, self._plan.mint)
        try:
            async with AsyncExitStack() as slot:
                await self._take_slot(slot)
                # In a task of its own: what others' code does to its task stays in there.
                result = await asyncio.create_task(provider.step(request, writer.piece))
            heed_cancel()
        except BaseException as error:  # no message stays open
            writer.cut("cancelled" if isinstance(error, asyncio.CancelledError) else "failed")
            raise
        if isinstance(result, StepFailed):
            self.spent.add(result.usage, _cost(provider.model, result.usage))
            writer.cut("failed")
        else:
            self._take(result, writer, hand_over=hand_over)
        return result

    async def _take_slot(self, stack: AsyncExitStack) -> None:
        """Wait for our turn at a model that serves few at once, and say so (A2.91)."""
        slot = self._plan.slot
        if slot is None:
            return
        reason = slot.waits_for
        if reason is not None:
            until = self._plan.clock.now_ms() + round(self._plan.provider.model.idle_s * 1000)
            self._host.emit(Waiting(until=format_time(until), reason=reason))
        await stack.enter_async_context(slot)

    def _take(self, answer: StepAnswer, writer: MessageWriter, *, hand_over: bool) -> None:
        """Write the whole answer into the log."""
        facts = self._plan.provider.model
        cost = _cost(facts, answer.usage)
        self.spent.add(answer.usage, cost)
        self._waits = 0
        self._cut_by_length = answer.stop_reason == "max_tokens"
        self._refused = answer.stop_reason == "refusal"
        calls = any(isinstance(block, ToolCall) for block in answer.content)
        self._final = (self._cut_by_length or self._refused) and not calls
        keep = 0 if hand_over else 1 if facts.one_call_per_step else None
        dropped = writer.end(answer, calls=keep)
        used = answer.usage.input + answer.usage.cache_read + answer.usage.cache_write
        self._host.emit(
            StepEnded(
                stop_reason=answer.stop_reason,
                usage=answer.usage,
                cost=cost,
                context=Context(used=used + answer.usage.output, window=facts.window),
            )
        )
        for notice in answer.notices:
            self._host.emit(Notice(code="provider", message=notice))
        if dropped and not hand_over:
            self._host.emit(
                Notice(
                    code="calls_cut",
                    message=f"{dropped} further calls of this step were left out: this model is "
                    "asked for one at a time.",
                )
            )

    def _pause(self, failed: StepFailed, retries: int) -> tuple[float | None, str]:
        """How long to wait before the same request goes again; `None` for never."""
        error = failed.error
        if failed.streamed:
            return None, ""  # nothing is sent again once output has come (A3.32)
        if isinstance(error, RateLimited):
            least, usual, longest = _WAIT_S
            delay_s = max(least, usual if error.retry_after_s is None else error.retry_after_s)
            self._waits += 1
            return (None, "") if self._waits > _WAITS else (min(longest, delay_s), "rate_limit")
        if not error.retryable or retries >= _RETRIES:
            return None, ""
        stated = error.retry_after_s
        if stated is not None:
            return (stated, "retry") if stated <= _RETRY_DELAY_MAX_S else (None, "")
        return _RETRY_DELAYS_S[retries] * self._plan.jitter(), "retry"

    async def _wait(self, delay_s: float, reason: str) -> None:
        until = self._plan.clock.now_ms() + round(delay_s * 1000)
        self._host.emit(Waiting(until=format_time(until), reason=reason))
        await self._host.settle()
        await self._plan.clock.sleep(delay_s)

    def _completed(self, reason: str) -> TurnCompleted:
        text = last_text(self._host.transcript.messages())
        return TurnCompleted(
            stop_reason=reason,
            usage=self.spent.usage,
            cost=self.spent.cost,
            summary=first_sentence(text),
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


def _cost(facts: Model, usage: Usage) -> float | None:
    """US dollars of one request; `None` when a price is unknown (A4.49)."""
    if facts.price_input is None or facts.price_output is None:
        return None
    sent = usage.input + usage.cache_read + usage.cache_write
    return (sent * facts.price_input + usage.output * facts.price_output) / 1_000_000

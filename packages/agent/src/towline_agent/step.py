"""One step: the request, sent until an answer has come or nothing more helps.

```
hold back → send → answer
   ↑          ↓ failed, before anything was said
   └── retry → (next key, inside the provider) → wait for the rate limit → next model
```
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from towline_agent.context.assemble import Assembler
from towline_agent.errors import AuthenticationFailed, RateLimited
from towline_agent.host import Host
from towline_agent.limits import Slot, Spent
from towline_agent.message import MessageWriter
from towline_agent.plan import Plan
from towline_agent.providers.base import (
    Model,
    Piece,
    Provider,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
)
from towline_agent.providers.cost import answer_cost, cost
from towline_agent.tasks import run_apart
from towline_protocol import (
    CallId,
    Context,
    Fallback,
    Message,
    Notice,
    SearchArtifact,
    StepEnded,
    StepStarted,
    ToolEnded,
    ToolProposed,
    Usage,
    Waiting,
    format_time,
)

__all__ = ["Stepper"]

_NOTHING: Final = Usage()
_RETRIES: Final = 3
"""Tries after the first, before any piece has come (A3.13)."""
_RETRY_DELAYS_S: Final = (1.0, 2.0, 4.0)
_RETRY_DELAY_MAX_S: Final = 20.0
"""A provider's own delay up to this is taken for a retry (A3.13)."""
_WAITS: Final = 6
"""Rate-limit waits in a row (A3.23)."""
_WAIT_S: Final = (1.0, 30.0, 120.0)
"""Least, usual and longest rate-limit wait (A3.22, A3.23)."""
_SEARCH: Final = "web_search"
_HOLDS: Final = 6
"""Times that one request is held back; then the provider's own word decides."""
_SERVED_BY_OTHERS: Final = frozenset(
    {
        "overloaded", "server", "rate_limit", "quota", "daily_limit", "model_not_on_plan",
        "model_not_found", "keys_unavailable", "dns", "refused", "unreachable", "connect_timeout",
        "idle", "lost", "no_answer",
    }
)  # fmt: skip
"""Reasons for which the next model is asked (A3.35); a rate limit once its waits are used up.

A server that cannot be reached is no better than one that is overloaded: it may just be off."""


class Stepper:
    """Takes one turn's steps with the model that serves it at the moment.

    Args:
        plan: What the turn works with.
        host: Where events go.
        spent: Counts every request, failed ones too (A4.48).
    """

    def __init__(self, plan: Plan, host: Host, spent: Spent) -> None:
        self.provider: Provider = plan.provider
        """Who is asked now."""
        self._plan = plan
        self._host = host
        self._spent = spent
        self._failed: Spent | None = None  # what the log is not told yet
        self._assembler = Assembler(plan)
        self._next = list(plan.fallbacks)
        self._attempts = 0  # of the step that is being taken
        self._waits = 0
        self._told: set[str] = set()

    @property
    def model(self) -> Model:
        """What is known of the model that is asked now."""
        return self.provider.model

    async def take(
        self, messages: tuple[Message, ...], *, hand_over: bool = False, trailing: str = ""
    ) -> StepResult:
        """Ask for one answer and write it into the log (A3.12 to A3.16, A3.35).

        Args:
            messages: The conversation, well paired.
            hand_over: Ask for words alone.
            trailing: Words for this step alone.
        """
        self._attempts = 0
        before: Exception | None = None  # why the model before this one could not serve
        while True:
            request = self._assembler.request(
                messages, self.model, hand_over=hand_over, trailing=trailing
            )
            result = await self._insist(request, self._try)
            if isinstance(result, StepAnswer):
                return result
            if before is not None and result.error not in _causes(before):
                result.error.__cause__ = before
            before = result.error
            if not self._fall_back(result):
                return result

    async def consult(self, request: Request) -> StepResult:
        """Ask for words that are no part of the conversation, such as a summary (A4.36)."""
        return await self._insist(request, self._try_beside)

    async def _insist(
        self, request: Request, send: Callable[[Request], Awaitable[StepResult]]
    ) -> StepResult:
        """Send until an answer has come, or neither another try nor a wait helps."""
        retries = 0
        while True:
            if getattr(self.provider, "has_limits", True):
                await self._hold_back(request.messages)
            result = await send(request)
            if isinstance(result, StepAnswer):
                return result
            delay_s, reason = self._pause(result, retries)
            if delay_s is None:
                return result
            retries += reason == "retry"
            await self._wait(delay_s, reason)

    async def _hold_back(self, messages: tuple[Message, ...]) -> None:
        """Wait before a limit is hit, where people can see it (A3.25)."""
        pause_s: Callable[[int], float] = getattr(self.provider, "pause_s", _never)
        for _ in range(_HOLDS):
            delay_s = pause_s(self._assembler.shown_tokens(messages, self.model))
            if delay_s <= 0:
                return
            await self._wait(min(delay_s, _WAIT_S[2]), "pace")

    async def _try(self, request: Request) -> StepResult:
        """One try at a step, from its start in the log to its end."""
        self._attempts += 1
        self._host.emit(self._started(self._attempts))
        await self._host.settle()
        writer = MessageWriter(self._host, self._plan.mint, live=self._plan.live)
        try:
            result = await self._send(request, writer.piece)
        except BaseException as error:  # no message stays open
            writer.cut("cancelled" if isinstance(error, asyncio.CancelledError) else "failed")
            self._count_cut()
            raise
        if isinstance(result, StepAnswer):
            self._keep(result, writer, hand_over=request.tool_choice == "none")
        else:
            self._count_failed(result)
            writer.cut("failed")
        return result

    async def _try_beside(self, request: Request) -> StepResult:
        """One try at words beside the conversation: the log has their cost alone."""
        await self._host.settle()
        try:
            result = await self._send(request, _ignore)
        except BaseException:
            self._count_cut()
            raise
        if isinstance(result, StepAnswer):
            self._spent.add(result.usage, answer_cost(self.model, result.usage))
        else:
            self._count_failed(result)
        return result

    def _started(self, attempt: int) -> StepStarted:
        """The start of a try; with it the log is told what failed ones used, should it end here."""
        failed, self._failed = self._failed, None
        if failed is None:
            return StepStarted(model=self.model.name, attempt=attempt)
        return StepStarted(
            model=self.model.name, attempt=attempt, failed=failed.usage, failed_cost=failed.cost
        )

    def _count_failed(self, failed: StepFailed) -> None:
        usage = failed.usage
        price = (answer_cost if failed.streamed else cost)(self.model, usage)
        self._spent.add(usage, price)
        if usage != _NOTHING:
            self._failed = self._failed or Spent()
            self._failed.add(usage, price)

    def _count_cut(self) -> None:
        """Count a request whose end nobody saw: what it has cost is unknown, if not nothing."""
        self._spent.add(_NOTHING, answer_cost(self.model, _NOTHING))

    def _send(self, request: Request, on_piece: Callable[[Piece], None]) -> Awaitable[StepResult]:
        slot = self._plan.slot
        if slot is None or self.provider is not self._plan.provider:
            return self._ask(request, on_piece)
        return self._ask_in(slot, request, on_piece)

    async def _ask_in(
        self, slot: Slot, request: Request, on_piece: Callable[[Piece], None]
    ) -> StepResult:
        """Ask a model that serves few at once: wait for a place, and say so (A2.91)."""
        reason = slot.waits_for
        if reason is not None:
            self._tell_waiting(reason)
        async with slot:
            now = slot.first or "reading"
            if reason not in {None, now}:  # what was told is over, and no word may come for long
                self._tell_waiting(now)
            return await self._ask(request, on_piece)

    def _tell_waiting(self, reason: str) -> None:
        until = self._plan.clock.now_ms() + round(self.model.idle_s * 1000)
        self._host.emit(Waiting(until=format_time(until), reason=reason))

    def _ask(self, request: Request, on_piece: Callable[[Piece], None]) -> Awaitable[StepResult]:
        """Ask the provider; only one that is all our own may do so in the turn's own task."""
        asked = self.provider.step(request, on_piece)
        return asked if getattr(self.provider, "is_ours", False) else run_apart(asked)

    def _keep(self, answer: StepAnswer, writer: MessageWriter, *, hand_over: bool) -> None:
        """Write the whole answer into the log."""
        model, usage = self.model, answer.usage
        price = answer_cost(model, usage)
        self._spent.add(usage, price)
        self._waits = 0
        keep = 0 if hand_over else 1 if model.one_call_per_step else None
        dropped = writer.end(answer, calls=keep)
        used = usage.input + usage.cache_read + usage.cache_write + usage.output
        used = used if answer.used is None else answer.used
        self._host.emit(
            StepEnded(
                stop_reason=answer.stop_reason,
                usage=usage,
                cost=price,
                context=Context(used=used, window=model.window),
            )
        )
        for notice in answer.notices:
            if notice not in self._told:  # what is left out is left out of each request alike
                self._told.add(notice)
                self._host.emit(Notice(code="provider", message=notice))
        if answer.made_room and answer.made_room not in self._told:
            self._told.add(answer.made_room)
            self._host.emit(Notice(code="provider_made_room", message=answer.made_room))
        for search in answer.searches:
            self._show_search(search)
        if dropped and not hand_over:
            self._host.emit(
                Notice(
                    code="calls_cut",
                    message=f"{dropped} further calls of this step were left out: this model is "
                    "asked for one call at a time.",
                )
            )

    def _show_search(self, search: SearchArtifact) -> None:
        """Show what the provider's own search found as the call that it was (A2.63)."""
        call = CallId(self._plan.mint("call"))
        arguments = msgspec.json.encode({"query": search.query}).decode()
        self._host.emit(
            ToolProposed(
                call=call,
                tool=_SEARCH,
                arguments=arguments,
                title=search.query or "Search the web",
                effect="network",
            )
        )
        status = "completed" if search.error_code is None else "failed"
        self._host.emit(
            ToolEnded(
                call=call,
                status=status,
                content=(),
                is_error=status == "failed",
                duration_ms=0,
                artifacts=(search,),
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

    def _fall_back(self, failed: StepFailed) -> bool:
        """Go on with the next model, for the rest of the turn (A3.35)."""
        error = failed.error
        wrong = isinstance(error, AuthenticationFailed)  # a person must mend it
        if failed.streamed or wrong or error.reason not in _SERVED_BY_OTHERS or not self._next:
            return False
        before, self.provider = self.model.name, self._next.pop(0)
        self._waits = 0
        self._host.emit(Fallback(from_=before, to=self.model.name, fault=error.fault()))
        return True

    async def _wait(self, delay_s: float, reason: str) -> None:
        until = self._plan.clock.now_ms() + round(delay_s * 1000)
        self._host.emit(Waiting(until=format_time(until), reason=reason))
        await self._host.settle()
        await self._plan.clock.sleep(delay_s)


def _never(_tokens: int) -> float:
    """How long a provider holds back that knows no limits."""
    return 0.0


def _ignore(_piece: Piece) -> None:
    """What is said beside the conversation is not told piece by piece."""


def _causes(error: BaseException) -> tuple[BaseException, ...]:
    """An error and what is behind it; a provider may give the same one again."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__
    return tuple(found)

"""Making a conversation fit the model's window again (A4.32 to A4.39).

Long results of calls that are no longer new are cut to their heads. If that is not enough, the
model sums up all but the last part of the conversation, and the summary takes its place. Both end
up in one `compacted` event; what the log holds is untouched.

Where the provider makes room itself (A4.40) all this only stands by: it starts later, and cuts
nothing, since the provider shows old results no longer anyway.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from towline_agent.context.assemble import Assembler
from towline_agent.context.cut import Entry, Fill, plan_cut, saved_by, should_compact
from towline_agent.errors import ContextOverflow
from towline_agent.host import Host
from towline_agent.plan import Plan
from towline_agent.providers.base import Model, Request, StepFailed, StepResult
from towline_agent.providers.cost import answer_cost
from towline_agent.providers.room import shown_from
from towline_protocol import Compacted, Transcript

__all__ = ["Compactor"]

_TRIES: Final = 2
"""In a turn (A4.39): summaries asked for, and requests that did not fit."""
_LATE: Final = 0.9
"""Of the window: where a summary is asked for though the provider makes room itself (A4.40). It has
had its chance at three quarters, and what is left is still enough to ask."""
_CHARS_PER_TOKEN: Final = 4


class Compactor:
    """Keeps the conversation of one turn within the model's window.

    Args:
        plan: What the turn works with.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._prefix: tuple[Model, int] | None = None
        self._tries = 0

    async def make_room(
        self,
        host: Host,
        ask: Callable[[Request], Awaitable[StepResult]],
        *,
        facts: Model | None = None,
        overflow: bool = False,
    ) -> ContextOverflow | None:
        """Cut and sum up when the next request would not fit; call it before each.

        Two summaries are asked for in a turn at most, none that could not help, and no further one
        after one that did not (A4.39, R29).

        Args:
            host: Keeps the conversation and takes the `compacted` event.
            ask: Sends a request whose answer is no part of the conversation.
            facts: The model that is asked; `None` for the plan's own.
            overflow: Whether the provider has just refused the conversation for its size.

        Returns:
            The failure that ends the turn, since nothing makes it fit; `None` to go on.
        """
        facts = facts or self._plan.provider.model
        if facts.window is None and not overflow:
            return None
        used = self._used(host.transcript, facts)
        if not overflow and not _is_full(host.transcript, facts, used):
            return None
        estimate = self._estimate(host.transcript, facts)
        limit = facts.window or max(1, used)
        if overflow:  # whatever was counted: it was too much, or by one who makes room himself
            foreign = facts.window is not None and not facts.manages_context
            used = max(used, limit, estimate if foreign else 0)
        fill = self._fill(used, limit, estimate, facts)
        may_ask = self._tries < _TRIES
        if overflow and not may_ask:
            return _too_large(facts, fill, None)
        done = await self._compact(host.transcript, facts, fill, ask if may_ask else None)
        self._tries += overflow or done.asked
        if done.event is not None:
            host.emit(done.event)
        if not done.helped:
            self._tries = _TRIES
        after = fill.used if done.event is None else done.event.after_tokens
        return _too_large(facts, fill, done.failed) if after >= fill.limit else None

    async def compact_now(
        self, host: Host, ask: Callable[[Request], Awaitable[StepResult]]
    ) -> "Compacted | StepFailed | None":
        """Cut and sum up what can be, though it still fits: somebody asked for it.

        Args:
            host: Keeps the conversation and takes the `compacted` event.
            ask: Sends a request whose answer is no part of the conversation.

        Returns:
            What was done, or why the summary failed; `None` when nothing would become shorter.
        """
        facts = self._plan.provider.model
        used = max(1, self._used(host.transcript, facts))
        fill = self._fill(used, used, self._estimate(host.transcript, facts), facts)
        done = await self._compact(host.transcript, facts, fill, ask)
        if done.event is not None:
            host.emit(done.event)
        return done.event or done.failed

    @functools.cached_property
    def _assembler(self) -> Assembler:
        """Counts what would be sent; nobody needs it while the model's window is unknown."""
        return Assembler(self._plan)

    def _used(self, transcript: Transcript, facts: Model) -> int:
        """Tokens by the last count and an estimate of what is new, or by an estimate alone."""
        counted = transcript.counted()
        if counted is not None:
            return counted[0] + self._assembler.tokens(counted[1])
        return self._estimate(transcript, facts)

    def _estimate(self, transcript: Transcript, facts: Model) -> int:
        messages = transcript.messages()
        if facts.manages_context:
            messages = messages[shown_from(messages, facts.name) :]
        return self._prefix_tokens(facts) + self._assembler.tokens(messages)

    def _prefix_tokens(self, facts: Model) -> int:
        """Estimated tokens of what is sent before the conversation."""
        if self._prefix is None or self._prefix[0] is not facts:
            request = self._assembler.request((), facts)
            chars = len(request.system) + len(msgspec.json.encode(request.tools))
            self._prefix = facts, chars // _CHARS_PER_TOKEN
        return self._prefix[1]

    def _fill(self, used: int, limit: int, estimate: int, facts: Model) -> Fill:
        used = max(1, used)
        rate = used / max(1, estimate)
        if facts.manages_context:  # it is counted without what the provider leaves out
            rate = max(1.0, rate)
        return Fill(used, limit, self._prefix_tokens(facts), rate)

    async def _compact(
        self,
        transcript: Transcript,
        facts: Model,
        fill: Fill,
        ask: Callable[[Request], Awaitable[StepResult]] | None,
    ) -> "_Done":
        entries = transcript.entries()
        if facts.manages_context:
            entries, cut = _shown(entries, facts), ()
        else:
            cut = plan_cut(entries, fill)
        after = fill.used - round(saved_by(entries, cut) * fill.rate)
        event = Compacted(cut=cut, before_tokens=fill.used, after_tokens=after) if cut else None
        if not should_compact(after, fill.limit):
            return _Done(event)
        # Few conversations come so far.
        from towline_agent.context.summary import plan_summary, sum_up

        span = None
        if ask is not None:
            span = plan_summary(self._plan, entries, fill, facts=facts, cut=cut)
        if ask is None or span is None:
            return _Done(event, helped=event is not None)
        answer = await ask(span.request)
        if isinstance(answer, StepFailed):
            return _Done(event, asked=True, failed=answer)
        summed = sum_up(answer, span, fill, cut)
        event = summed or event
        if event is not None:
            price = answer_cost(facts, answer.usage)
            event = msgspec.structs.replace(event, model=facts.name, usage=answer.usage, cost=price)
        return _Done(event, asked=True, helped=summed is not None)


def _is_full(transcript: Transcript, facts: Model, used: int) -> bool:
    """Whether room must be made, by us.

    A provider that makes room itself goes first: it has had its chance when it counted three
    quarters of the window all the same (A4.40).
    """
    if not facts.manages_context:
        return should_compact(used, facts.window)
    counted = transcript.counted()
    stuck = counted is not None and should_compact(counted[0], facts.window)
    return stuck and should_compact(used, facts.window, _LATE)


def _shown(entries: tuple[Entry, ...], facts: Model) -> tuple[Entry, ...]:
    """The entries that the provider still reads; what it summed up stands in the first of them."""
    firsts = tuple(messages[0] for _, messages in entries)
    return entries[shown_from(firsts, facts.name) :]


class _Done(msgspec.Struct, frozen=True):
    """What one compaction came to."""

    event: Compacted | None
    asked: bool = False  # the model was asked for a summary
    helped: bool = True  # it was made smaller, or that may yet be
    failed: StepFailed | None = None  # what became of the request


def _too_large(facts: Model, fill: Fill, failed: StepFailed | None) -> ContextOverflow:
    known = facts.window is not None
    fits = f" of {facts.window}" if known else ""
    in_time = "" if known else " Its window is not known: in code, name it in `facts`."
    why = "" if failed is None else f" Summing it up failed: {failed.error.message}"
    return ContextOverflow(
        f"The conversation does not fit into {facts.name!r}: about {fill.used} tokens{fits}, "
        f"{fill.prefix} of them instructions and tools.{why} Go on in a new session, take a model "
        f"with a larger window, or shorten the instructions.{in_time}",
        provider=facts.provider,
        model=facts.id,
    )

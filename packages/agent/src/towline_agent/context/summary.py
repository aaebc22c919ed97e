"""Letting the model sum up the past of a conversation (A4.36, A4.37)."""

from typing import Any, Final, NamedTuple

import msgspec

from towline_agent.context.assemble import Assembler, estimate_tokens
from towline_agent.context.condense import condense
from towline_agent.context.cut import GOAL, Entry, Fill, cut_entries
from towline_agent.limits import cut_result
from towline_agent.plan import Plan
from towline_agent.providers.base import Model, Request, StepAnswer
from towline_agent.providers.room import START
from towline_protocol import CallId, Compacted, Message, Text, ToolResult, block_text

__all__ = ["SUMMARY_HEADING", "Span", "plan_summary", "sum_up"]

SUMMARY_HEADING: Final = (
    "[Summary of the conversation until here, written by the model to make room. The messages that "
    "it stands for are no longer shown.]"
)
"""How a summary says what it is, to the model and to people."""

_SUMMARY_TOKENS: Final = 4_096
"""The most that a summary is given: more would be a history of its own."""
_SUMMARY_SHARE: Final = 0.15
"""Of the window that a summary is given, as much as a tool's result (A4.19)."""
_QUOTE_CHARS: Final = 2_000
"""Of the prompt under way that are quoted when the message itself goes."""
_LEAST_CHARS: Final = 1_000
"""With less room a summary of the conversation could not even be asked for."""
_CHARS_PER_TOKEN: Final = 4
_WORDS_PER_TOKEN: Final = 0.6

_ASK: Final = (
    "Sum up the conversation above, so that you can go on from your summary alone: the messages "
    "themselves will be gone. Use at most {words} words, under these headings: Goal; Constraints; "
    "Decisions; Files, with their paths; State: what was done and found; Open problems; Next steps."
    " Keep names, paths, commands and numbers exactly. Do nothing else now and call no tools."
)
"""Asks for what A4.37 lists."""
_QUOTE: Final = "The person's last prompt in it, word for word:"


class Span(NamedTuple):
    """What a summary is to stand for, and how it is asked for."""

    upto: str
    """The last entry that it stands for."""
    replaces: int
    """Estimated tokens of what it stands for."""
    quote: str
    """The prompt under way, when it is among that; else empty."""
    request: Request
    """Asks for it."""
    kept: tuple[Message, ...]
    """What follows the summary."""


def plan_summary(
    plan: Plan,
    entries: tuple[Entry, ...],
    fill: Fill,
    *,
    facts: Model | None = None,
    cut: tuple[CallId, ...] = (),
) -> Span | None:
    """What should be summed up, and the request for it; `None` when that would not help (A4.36).

    Args:
        plan: What the turn works with.
        entries: The conversation, as the model was shown it last.
        fill: How full the window is.
        facts: The model that is asked; `None` for the plan's own.
        cut: The results that are cut anyway.
    """
    lighter = cut_entries(entries, cut)
    count = _count_summed(lighter, fill)
    summed = tuple(message for _, messages in entries[:count] for message in messages)
    replaces = estimate_tokens(summed)
    if not count or not entries[count - 1][0] or replaces <= _room(fill):
        return None
    request = _summary_request(plan, facts or plan.provider.model, summed, fill)
    if request is None:
        return None
    return Span(
        upto=entries[count - 1][0],
        replaces=replaces,
        quote=_quote(entries, count),
        request=request,
        kept=tuple(message for _, messages in lighter[count:] for message in messages),
    )


def sum_up(answer: StepAnswer, span: Span, fill: Fill, cut: tuple[CallId, ...]) -> Compacted | None:
    """The event for a summary; `None` for one that is empty or no shorter than what it replaces."""
    words = block_text(answer.content).strip()
    if not words:
        return None
    text = f"{SUMMARY_HEADING}\n\n{_shorten(words, _room(fill) * _CHARS_PER_TOKEN)}"
    if span.quote:
        text = f"{text}\n\n{_QUOTE}\n\n{span.quote}"
    summary = Message("user", (Text(text=text),))
    if estimate_tokens((summary,)) >= span.replaces:
        return None
    kept = {b.call for m in span.kept for b in m.content if isinstance(b, ToolResult)}
    after = fill.prefix + estimate_tokens((summary, *span.kept))
    return Compacted(
        cut=tuple(call for call in cut if call in kept),
        upto=span.upto,
        summary=text,
        before_tokens=fill.used,
        after_tokens=round(after * fill.rate),
    )


def _room(fill: Fill) -> int:
    """Estimated tokens that a summary is given."""
    return int(min(_SUMMARY_TOKENS, fill.limit * _SUMMARY_SHARE) / fill.rate)


def _is_prompt(entry: Entry) -> bool:
    id_, messages = entry
    return bool(id_) and messages[0].role == "user"


def _count_summed(entries: tuple[Entry, ...], fill: Fill) -> int:
    """How many entries a summary should stand for, so that half of the window is free.

    The last prompt always stays. A turn stays whole, if that does not cost much of what could stay.
    """
    room = fill.limit * GOAL / fill.rate - fill.prefix - _room(fill)
    count = len(entries)
    first = count - _is_prompt(entries[-1]) if entries else 0
    kept = [0] * (count + 1)  # from each entry to the end
    for place in reversed(range(count)):
        kept[place] = kept[place + 1] + estimate_tokens(entries[place][1])
    while first > 0 and kept[first - 1] <= room:
        first -= 1
    for place in range(first, count):
        if _is_prompt(entries[place]) and 2 * kept[place] >= kept[first]:
            return place
    return first


def _quote(entries: tuple[Entry, ...], count: int) -> str:
    """The prompt under way, if it is among what is summed up; an earlier summary may quote it."""
    if count < len(entries) and _is_prompt(entries[count]):
        return ""
    prompts = [messages[0] for id_, messages in entries[:count] if _is_prompt((id_, messages))]
    if prompts:
        return _shorten(block_text(prompts[-1].content), _QUOTE_CHARS)
    before = block_text(entries[0][1][0].content)
    return before.rpartition(_QUOTE)[2].strip() if _QUOTE in before else ""


def _shorten(text: str, chars: int) -> str:
    return block_text(cut_result((Text(text=text),), chars))


def _summary_request(
    plan: Plan, facts: Model, summed: tuple[Message, ...], fill: Fill
) -> Request | None:
    """A request for a summary that fits itself: as it was sent before, else as condensed text."""
    words = _ASK.format(words=int(_room(fill) * _WORDS_PER_TOKEN))
    room = int(fill.limit * START / fill.rate) - fill.prefix - len(words) // _CHARS_PER_TOKEN
    if estimate_tokens(summed) > room:
        chars = room * _CHARS_PER_TOKEN
        if chars < _LEAST_CHARS:
            return None
        messages = (Message("user", (Text(text=f"{condense(summed, chars)}\n\n{words}"),)),)
    else:
        messages = (*summed, Message("user", (Text(text=words),)))
    request = Assembler(plan).request(messages, facts)
    changes: dict[str, Any] = {"tool_choice": "none", "output": None, "trailing": ""}
    if facts.none_without_tools:
        changes["tools"] = ()
    return msgspec.structs.replace(request, **changes)

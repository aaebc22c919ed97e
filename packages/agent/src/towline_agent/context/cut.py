"""Cutting long results of calls down to their heads (A4.32 to A4.35)."""

from typing import Final

import msgspec

from towline_agent.context.assemble import estimate_tokens
from towline_agent.providers.room import START
from towline_protocol import CallId, File, Image, Message, ToolResult, block_text, cut_to_head

__all__ = [
    "GOAL",
    "Entry",
    "Fill",
    "cut_entries",
    "plan_cut",
    "saved_by",
    "should_compact",
]

Entry = tuple[str, tuple[Message, ...]]
"""What belongs together, as `Transcript.entries` gives it."""

GOAL: Final = 0.5
"""Of the window: what compaction makes of it (A4.33)."""
_STALE_CHARS: Final = 4_000
"""A result up to this is not worth cutting (A4.33)."""
_NEWEST: Final = 4
"""Results that are never cut (A4.33)."""


class Fill(msgspec.Struct, frozen=True):
    """How full the window is."""

    used: int
    """Tokens: the provider's last count, and our estimate of what came after it (A4.32)."""
    limit: int
    """Tokens that fit: the model's window, or a size that did not fit."""
    prefix: int
    """Estimated tokens of the system prefix and the tools."""
    rate: float
    """Tokens for each one that is estimated: how far our estimates are off in this conversation."""


def should_compact(used: int, window: int | None, share: float = START) -> bool:
    """Whether so many tokens fill too much of a window; never when it is unknown (A4.32).

    Args:
        used: Tokens.
        window: Tokens that fit.
        share: Of the window: how much is too much.
    """
    return window is not None and used >= window * share


def plan_cut(entries: tuple[Entry, ...], fill: Fill) -> tuple[CallId, ...]:
    """The calls whose results should be cut: long ones, the oldest first (A4.33).

    The four newest results stay, and nothing is cut beyond half of the window.
    """
    used: float = fill.used
    cut: list[CallId] = []
    for result in _results(entries)[:-_NEWEST]:
        if used <= fill.limit * GOAL:
            break
        saved = _saved(result)
        if saved > 0:
            cut.append(result.call)
            used -= saved * fill.rate
    return tuple(cut)


def saved_by(entries: tuple[Entry, ...], cut: tuple[CallId, ...]) -> int:
    """Estimated tokens that cutting these results saves."""
    gone = set(cut)
    return sum(_saved(result) for result in _results(entries) if result.call in gone)


def cut_entries(entries: tuple[Entry, ...], cut: tuple[CallId, ...]) -> tuple[Entry, ...]:
    """The entries as they will be once these results are cut."""
    gone = set(cut)
    if not gone:
        return entries
    return tuple(
        (id_, tuple(_cut_message(message, gone) for message in messages))
        for id_, messages in entries
    )


def _cut_message(message: Message, gone: set[CallId]) -> Message:
    content = tuple(
        cut_to_head(block) if isinstance(block, ToolResult) and block.call in gone else block
        for block in message.content
    )
    return msgspec.structs.replace(message, content=content)


def _results(entries: tuple[Entry, ...]) -> list[ToolResult]:
    return [
        block
        for _, messages in entries
        for message in messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]


def _saved(result: ToolResult) -> int:
    """Estimated tokens that cutting a result saves; 0 for one that is not worth it."""
    pictures = any(isinstance(block, Image | File) for block in result.content)
    if not pictures and len(block_text(result.content)) <= _STALE_CHARS:
        return 0
    after = estimate_tokens((Message("tool", (cut_to_head(result),)),))
    return max(0, estimate_tokens((Message("tool", (result,)),)) - after)

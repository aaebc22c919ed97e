"""Token counts under Google's names (A1.13, A2.51)."""

from typing import Any, Final, cast

from towline_agent.providers.counts import read_count
from towline_agent.providers.json_value import as_object
from towline_protocol import Usage

__all__ = ["has_counts", "read_usage"]

_DIGITS: Final = 16
"""Digits of a count that is written as a text."""
_COUNTS: Final = frozenset({"promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"})


def has_counts(raw: Any) -> bool:
    """Whether a `usageMetadata` object counts anything: most chunks may name the traffic alone."""
    return isinstance(raw, dict) and not _COUNTS.isdisjoint(cast("dict[str, Any]", raw))


def read_usage(raw: Any) -> Usage:
    """The counts of a `usageMetadata` object; zeros when there is none.

    The prompt's count includes what came from a cache, ours does not. What the provider's own tools
    brought in counts apart from the prompt, thoughts apart from the answer.
    """
    found = as_object(raw)
    cached = _count(found, "cachedContentTokenCount")
    thoughts = _count(found, "thoughtsTokenCount")
    prompt = max(0, _count(found, "promptTokenCount") - cached)
    return Usage(
        input=prompt + _count(found, "toolUsePromptTokenCount"),
        output=_count(found, "candidatesTokenCount") + thoughts,
        cache_read=cached,
        reasoning=thoughts,
    )


def _count(found: dict[str, Any], key: str) -> int:
    value = found.get(key)
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value) if len(value) <= _DIGITS else 0  # how some encoders write 64-bit numbers
    return read_count(value)

"""Token counts, under the names that vendors give them (A1.13, A2.7)."""

from typing import Any, Final, cast

from towline_agent.providers.counts import read_count
from towline_agent.providers.json_value import as_object
from towline_protocol import Usage

__all__ = ["read_usage"]

_Json = dict[str, Any]

_READ: Final = dict.fromkeys(
    ("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens", "cache_read_input_tokens")
).keys()
"""Where vendors put what came from a cache, beside `prompt_tokens_details`; the first counts."""


def read_usage(raw: Any) -> Usage | None:
    """The counts of a `usage` object; `None` when there are none.

    `prompt_tokens` includes what came from a cache, ours does not. Some vendors count thinking
    beside `completion_tokens`; their total shows it.
    """
    if not isinstance(raw, dict) or not raw:
        return None
    found = cast("_Json", raw)
    prompt = _count(found, "prompt_tokens", "input_tokens")
    output = _count(found, "completion_tokens", "output_tokens")
    read = write = reasoning = 0
    if prompt_parts := as_object(found.get("prompt_tokens_details")):
        read = _count(prompt_parts, "cached_tokens")
        write = _count(prompt_parts, "cache_write_tokens", "cache_creation_tokens")
    if output_parts := as_object(found.get("completion_tokens_details")):
        reasoning = _count(output_parts, "reasoning_tokens")
    if not (read or _READ.isdisjoint(found)):
        read = _count(found, *_READ)
    if reasoning and (
        reasoning > output or _count(found, "total_tokens") == prompt + output + reasoning
    ):
        output += reasoning
    return Usage(
        input=max(0, prompt - read - write),
        output=output,
        cache_read=read,
        cache_write=write,
        reasoning=reasoning,
    )


def _count(found: _Json, *keys: str) -> int:
    """The first count that is there."""
    for key in keys:
        value = found.get(key)
        if value and (count := read_count(value)):
            return count
    return 0

"""Token counts, which grow from event to event (A1.13)."""

from typing import Any, Final, cast

from towline_agent.providers.counts import read_count
from towline_protocol import Usage

__all__ = ["UsageCount"]

_Json = dict[str, Any]

_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class UsageCount:
    """The counts of one response: each event states what it is so far."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def take(self, raw: Any) -> None:
        """Take in a `usage` object; a count that is missing or 0 stands as it was."""
        if not isinstance(raw, dict):
            return
        found = cast("_Json", raw)
        for key in _COUNTS:
            self._set(key, found.get(key))
        created: Any = found.get("cache_creation")
        if not found.get("cache_creation_input_tokens") and isinstance(created, dict):
            parts = cast("_Json", created).values()
            self._set("cache_creation_input_tokens", sum(map(read_count, parts)))
        details: Any = found.get("output_tokens_details")
        if isinstance(details, dict):
            self._set("thinking_tokens", cast("_Json", details).get("thinking_tokens"))

    def usage(self) -> Usage:
        """The counts so far; input is natively the uncached remainder."""
        reasoning = self._counts.get("thinking_tokens", 0)
        return Usage(
            input=self._counts.get("input_tokens", 0),
            output=max(self._counts.get("output_tokens", 0), reasoning),
            cache_read=self._counts.get("cache_read_input_tokens", 0),
            cache_write=self._counts.get("cache_creation_input_tokens", 0),
            reasoning=reasoning,
        )

    def _set(self, key: str, value: Any) -> None:
        count = read_count(value)
        if count:
            self._counts[key] = count

"""What was sent that nobody may read again: taken out of a vendor's words before they are shown."""

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["Secrets"]

_MARK: Final = "[key]"
_HEADER_LEAST: Final = 8
"""Characters of a header's value from which on it may be a secret; shorter ones are words."""
_PLAIN: Final = frozenset(
    {"accept", "accept-encoding", "anthropic-beta", "anthropic-version", "content-type",
     "http-referer", "user-agent", "x-title"}
)  # fmt: skip
"""Headers that hold no secret, and whose values vendors speak of."""
_KEPT_MAX: Final = 64
"""Secrets of one provider: tokens change, and old ones end."""


class Secrets:
    """The secrets of one provider. Its `repr` shows none of them.

    Args:
        words: Some of them; `None` and empty ones are none.
    """

    def __init__(self, *words: str | None) -> None:
        self._words: dict[str, None] = {word: None for word in words if word}

    def __repr__(self) -> str:
        return f"Secrets({len(self._words)})"

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Take in what a request carries: its credential, and whatever a person adds.

        Args:
            headers: Names in lower case.
        """
        for name, value in headers.items():
            if value in self._words or name in _PLAIN:
                continue
            for word in (value, value.rpartition(" ")[2]):  # `Bearer` is none
                if len(word) >= _HEADER_LEAST:
                    self._words[word] = None
        while len(self._words) > _KEPT_MAX:
            del self._words[next(iter(self._words))]

    def clean(self, text: str) -> str:
        """The text without them; the longest first, since one may hold another."""
        for word in sorted(self._words, key=len, reverse=True):
            if len(word) >= _HEADER_LEAST:
                text = text.replace(word, _MARK)
            elif word in text:  # such as `x`, for a server that wants any key: not within a word
                text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", _MARK, text)
        return text

"""Files that a prompt mentions as `@path` (A5.79)."""

import re
from typing import Final

import msgspec

__all__ = ["MENTIONS_MAX", "Mention", "cut_lines", "find_mentions"]

MENTIONS_MAX: Final = 16
"""Mentions of one prompt that count; more of them are a listing that somebody pasted."""

_MENTION: Final = re.compile(
    r"""(?<![\w@/.`-])@(?:"([^"\n]{1,1024})"|([^\s"'`<>|*?@,;()\[\]{}]{1,1024}))"""
)
"""`@` behind a word is an address, so only one that begins a word counts."""
_LINES: Final = re.compile(r"(?:#L|:)(\d{1,7})(?:-L?(\d{1,7}))?$")
_TRAILING: Final = ".,:;!?"


class Mention(msgspec.Struct, frozen=True, kw_only=True):
    """A path that somebody wrote behind `@`; there may be no such file."""

    path: str
    """The path, without its lines."""
    first: int | None = None
    """The first line that is meant, from 1; `None` for all of them."""
    last: int | None = None
    """The last line that is meant."""
    plain: str = ""
    """The path as it was written, lines included: a file may be called so."""

    @property
    def lines(self) -> str | None:
        """The lines as they are written: `3` or `3-9`; `None` for all of them."""
        if self.first is None:
            return None
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"


def find_mentions(text: str, most: int = MENTIONS_MAX) -> tuple[Mention, ...]:
    """What a prompt mentions, each once, in order.

    `@src/a.py`, `@src/a.py:3`, `@src/a.py:3-9`, `@src/a.py#L3-L9`, `@"a name with spaces"`.

    Args:
        text: What it says.
        most: How many are told; more than `MENTIONS_MAX` only to say which do not count.
    """
    found = (_read(match[1] or match[2].rstrip(_TRAILING)) for match in _MENTION.finditer(text))
    return tuple(dict.fromkeys(mention for mention in found if mention.path))[:most]


def _read(written: str) -> Mention:
    lines = _LINES.search(written)
    if lines is None:
        return Mention(path=written, plain=written)
    first = max(1, int(lines[1]))
    last = max(first, int(lines[2] or first))
    return Mention(path=written[: lines.start()], first=first, last=last, plain=written)


def cut_lines(text: str, first: int, last: int) -> str:
    """The lines from `first` to `last` of a text, both counted from 1 and included."""
    return "".join(text.splitlines(keepends=True)[first - 1 : last])

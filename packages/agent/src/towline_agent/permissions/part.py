"""What one call would do, part by part: the unit that rules and modes judge (A5.65)."""

import inspect
from enum import Enum
from typing import Final

import msgspec

from towline_protocol import UsageError, mend_text

__all__ = ["KINDS", "Part", "read_subject"]

KINDS: Final = ("path", "command", "host", "exact", "unknown")
"""How a pattern is matched against a part."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a call would do, judged by itself; the strictest verdict wins (A5.65)."""

    subject: str
    """What rules are matched against: the real path relative to the root (absolute when it lies
    outside), one command line, a host, or the whole call."""
    kind: str = "exact"
    """`path`, `command`, `host` or `exact`: how a pattern is matched (A5.47). `unknown` is a piece
    of a command that could not be read: it is allowed only by a rule that names it exactly."""
    effect: str | None = None
    """What it does to the world; `None` for the tool's effect."""
    caution: str | None = None
    """A sentence why a mode never lets it pass, only a rule or a person: a secret file, a place
    outside the root, a private address, a part of a command that could not be read (A5.69)."""
    firm: bool = False
    """Whether no rule lets it pass either, only a person, each time: a file that decides what is
    allowed (A5.54)."""
    also: tuple[str, ...] = ()
    """Other ways to write the subject, such as a link that leads to it or a command without its
    folder: rules that ask or deny match these too, rules that allow match the subject alone."""
    certain: int | None = None
    """Words of a command that are known before it runs; `None` for all. Where a rule that asks or
    denies might speak of the rest, a person is asked."""
    grants: tuple[str, ...] = ()
    """Real, absolute paths outside the root that it reaches once it is allowed."""


_NO_SUBJECTS: Final = (bytes, bytearray, list, tuple, dict, set, frozenset)


def read_subject(given: object) -> str:
    """What a tool's `subject` gave, as the text that rules are matched against.

    Numbers, dates and the like are written out, a member of an enumeration as its value: as
    anything else they would fit no rule, not even one that denies.

    Raises:
        UsageError: It is nothing that a rule could name, such as a list or a coroutine.
    """
    value = given.value if isinstance(given, Enum) else given
    if isinstance(value, str):
        return mend_text(str.__str__(value))  # a class of its own may write itself otherwise
    if isinstance(value, _NO_SUBJECTS) or inspect.isawaitable(value):
        raise UsageError(f"'subject' gave {given!r}; return a text, from a plain function.")
    return mend_text(str(value))

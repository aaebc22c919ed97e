"""What a look at a store, or at the machine, comes to."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from towline_protocol import SessionId

__all__ = ["LEVELS", "Finding", "Level", "Progress", "fault", "fine", "warning"]

Level = Literal["ok", "warning", "fault"]
"""`fault`: something does not work, or is lost. `warning`: worth knowing, nothing is broken."""

LEVELS: Final[tuple[Level, ...]] = ("ok", "warning", "fault")
"""All of them, the harmless one first."""

Progress = Callable[[str, int, int], None]
"""Told what is being looked at, how much of it is done, and how much there is."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at."""

    level: Level
    """How it stands."""
    check: str
    """What was looked at, in one word, for programs: `database`, `log`, `port` …"""
    message: str
    """A sentence for people."""
    repair: str = ""
    """What a repair would do about it; empty when it would do nothing."""
    session: SessionId | None = None
    """The session it concerns."""


def fine(check: str, message: str, *, repair: str = "") -> Finding:
    """Something that is as it should be."""
    return Finding(level="ok", check=check, message=message, repair=repair)


def warning(
    check: str, message: str, *, repair: str = "", session: SessionId | None = None
) -> Finding:
    """Something worth knowing."""
    return Finding(level="warning", check=check, message=message, repair=repair, session=session)


def fault(
    check: str, message: str, *, repair: str = "", session: SessionId | None = None
) -> Finding:
    """Something that is broken."""
    return Finding(level="fault", check=check, message=message, repair=repair, session=session)

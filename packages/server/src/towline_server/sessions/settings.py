"""What people set on a session: its title, model, mode, labels, and whether it is put away."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from towline_agent import MODES
from towline_protocol import SessionInfo, SessionUpdated, SessionView, UsageError, encode

__all__ = [
    "MAX_LABEL",
    "MAX_LABELS",
    "CheckTag",
    "check_mode",
    "clean_labels",
    "clean_title",
    "find_changes",
    "settings_tag",
]

MAX_LABELS: Final = 16
"""Labels of a session: what a row of a list can show."""
MAX_LABEL: Final = 64
"""Characters of a label."""

CheckTag = Callable[[str], None]
"""Told an `ETag`; raises when it is another one than the caller knows (C2.6)."""

_FIELDS: Final = ("title", "model", "mode", "archived", "labels")
_TAG_CHARS: Final = 16  # 64 bits: enough that two settings of one session never share a tag


def check_mode(mode: str) -> str:
    """The mode, if there is one of that name.

    Raises:
        UsageError: There is none.
    """
    if mode not in MODES:
        raise UsageError(f"There is no mode {mode!r}; the modes are: {', '.join(MODES)}.")
    return mode


def clean_title(title: str) -> str:
    """A title as one line.

    Raises:
        UsageError: Nothing is left of it.
    """
    words = " ".join(title.split())
    if not words:
        raise UsageError(f"The title {title[:20]!r} is empty; leave it out, or write one.")
    return words


def clean_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in their order, each once and as one line.

    Raises:
        UsageError: One is empty or too long, or they are too many.
    """
    found = tuple(dict.fromkeys(" ".join(label.split()) for label in labels))
    for label in found:
        if not 0 < len(label) <= MAX_LABEL:
            raise UsageError(f"A label has 1 to {MAX_LABEL} characters; {label[:20]!r} has not.")
    if len(found) > MAX_LABELS:
        raise UsageError(f"A session has at most {MAX_LABELS} labels; these are {len(found)}.")
    return found


def settings_tag(session: SessionView | SessionInfo) -> str:
    """The `ETag` of a session's settings: another one as soon as one of them is another (C2.6)."""
    settings = [getattr(session, name) for name in _FIELDS]
    return f'"{hashlib.sha256(encode(settings)).hexdigest()[:_TAG_CHARS]}"'


def find_changes(view: SessionView, wanted: SessionUpdated) -> SessionUpdated | None:
    """What of a wish is not so already; `None` when all of it is."""
    changes = {
        name: value
        for name in _FIELDS
        if (value := getattr(wanted, name)) is not None and value != getattr(view, name)
    }
    return msgspec.convert(changes, SessionUpdated) if changes else None

"""Exact replacements in a text (A5.13)."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.edits.near_miss import explain_miss

__all__ = ["Place", "Replaced", "TextEdit", "replace_texts"]

_PLACES_TOLD: Final = 10
"""Places named when a text is not unique."""


class TextEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One replacement."""

    old_text: str
    """What stands there, exactly."""
    new_text: str
    """What comes in its place."""
    replace_all: bool = False
    """Whether every such text is meant; else there must be one alone."""


class _Span(NamedTuple):
    """A stretch of a text, and what is to stand in its place."""

    start: int
    end: int
    new: str


class Place(msgspec.Struct, frozen=True):
    """Where a text was changed, as lines of the new one."""

    first: int
    """Its first line, from 1."""
    last: int
    """Its last line."""


class Replaced(msgspec.Struct, frozen=True):
    """A text with its replacements made."""

    text: str
    """The new text."""
    places: tuple[Place, ...]
    """Where it differs, in order."""


def replace_texts(text: str, edits: Sequence[TextEdit]) -> Replaced:
    r"""Make replacements one after the other, each in what the one before left.

    Args:
        text: The text, with `\n` for every line end, as `workspaces.text.decode` gives it.
        edits: What to replace; their line ends may be of any kind.

    Raises:
        ToolInputInvalid: One does not fit; the message says where the closest place is (A5.14).
    """
    if not edits:
        raise ToolInputInvalid("edits is empty; give at least one old_text with its new_text.")
    changed: list[tuple[int, int]] = []
    for number, edit in enumerate(edits, 1):
        name = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        spans = _find(text, edit, name)
        text = _splice(text, spans)
        changed = _merge(changed, spans)
    return Replaced(text, _places(text, changed))


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _splice(text: str, spans: list[_Span]) -> str:
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces += (text[at : span.start], span.new)
        at = span.end
    return "".join((*pieces, text[at:]))


def _find(text: str, edit: TextEdit, name: str) -> list[_Span]:
    old, new = _plain_ends(edit.old_text), _plain_ends(edit.new_text)
    if not old:
        raise ToolInputInvalid(
            f"{name}old_text is empty; give text that stands in the file, or use write_file."
        )
    if old == new:
        raise ToolInputInvalid(f"{name}old_text and new_text are the same; nothing would change.")
    first = text.find(old)
    if first < 0:
        raise ToolInputInvalid(f"{name}old_text is not in the file. {explain_miss(text, old, new)}")
    if edit.replace_all:
        return [_Span(at, at + len(old), new) for at in _all(text, old)]
    if text.find(old, first + 1) >= 0:
        raise ToolInputInvalid(
            f"{name}old_text is not unique: it stands at {_tell_lines(text, old)}. Add lines "
            "round it, or set replace_all."
        )
    return [_Span(first, first + len(old), new)]


def _all(text: str, old: str) -> list[int]:
    places: list[int] = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + len(old))
    return places


def _tell_lines(text: str, old: str) -> str:
    numbers: list[str] = []
    at, line, counted = text.find(old), 1, 0
    while at >= 0 and len(numbers) < _PLACES_TOLD:
        line += text.count("\n", counted, at)
        counted = at
        numbers.append(str(line))
        at = text.find(old, at + 1)
    more = " and more" if at >= 0 else ""
    return f"lines {', '.join(numbers)}{more}"


def _merge(changed: list[tuple[int, int]], spans: list[_Span]) -> list[tuple[int, int]]:
    """Earlier places moved to where they are after the spans, joined with the spans' own."""
    ends = [span.end for span in spans]
    shifts = [0, *accumulate(len(span.new) - (span.end - span.start) for span in spans)]
    made = [
        (span.start + shift, span.start + shift + len(span.new))
        for span, shift in zip(spans, shifts, strict=False)
    ]

    def moved(place: int, *, to_end: bool) -> int:
        before = bisect_right(ends, place)
        if before < len(spans) and spans[before].start < place:
            return made[before][to_end]
        return place + shifts[before]

    kept = [(moved(first, to_end=False), moved(last, to_end=True)) for first, last in changed]
    joined: list[tuple[int, int]] = []
    for first, last in sorted((*kept, *made)):
        if joined and first <= joined[-1][1]:
            first, last = joined[-1][0], max(last, joined.pop()[1])
        joined.append((first, last))
    return joined


def _places(text: str, changed: list[tuple[int, int]]) -> tuple[Place, ...]:
    places: list[Place] = []
    line, counted = 1, 0
    for start, end in changed:
        line += text.count("\n", counted, start)
        counted = start
        inner = text.count("\n", start, end)
        if inner and text[end - 1] == "\n":
            inner -= 1
        places.append(Place(line, line + inner))
    return tuple(places)

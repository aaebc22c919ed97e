"""The parts of a patch, and how they are put into a text (A5.12)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.edits.near_miss import explain_miss

__all__ = ["FilePatch", "Hunk", "apply_hunks"]

_PLACES_TOLD: Final = 10


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """One place of a patch."""

    number: int
    """The patch's line at which it begins, for messages."""
    body: tuple[tuple[str, str], ...]
    """Each line's sign, one of a space, `-` and `+`, and the line without it."""
    anchors: tuple[str, ...] = ()
    """Lines of the file that come before it, in order."""
    start: int | None = None
    """The line at which it says that it begins, from 1; `None` when it says none."""
    at_end: bool = False
    """Whether it says that it reaches the end of the file."""
    old_open: bool = False
    """Whether the last line it takes away or keeps has no line end."""
    new_open: bool = False
    """Whether the last line it keeps or adds has no line end."""

    @property
    def old(self) -> list[str]:
        """The lines that must stand there."""
        return [line for sign, line in self.body if sign != "+"]


class FilePatch(msgspec.Struct, frozen=True, kw_only=True):
    """What a patch does to one file."""

    number: int
    """The patch's line at which it begins, for messages."""
    kind: str
    """`add`, `delete` or `update`."""
    path: str
    """The file as it is called now; of a new one as it is to be called."""
    target: str | None = None
    """What it is to be called, if that differs."""
    hunks: tuple[Hunk, ...] = ()
    """Its places, in order."""


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> str:
    r"""A text with a patch's places changed; each line of context must stand there exactly.

    Args:
        text: The file's text, with `\n` for every line end.
        hunks: The places, in order.

    Raises:
        ToolInputInvalid: A place is not there, or there more than once.
    """
    is_closed = not text or text.endswith("\n")
    lines = text.removesuffix("\n").split("\n") if text else []
    made: list[str] = []
    at, shift = 0, 0
    for hunk in hunks:
        first = _locate(lines, hunk, at, shift)
        end = first + len(hunk.old)
        is_closed = _check_end(hunk, touches=end == len(lines), is_closed=is_closed)
        made += lines[at:first]
        made += [line for sign, line in hunk.body if sign != "-"]
        if hunk.start is not None and hunk.old:
            shift = first - (hunk.start - 1)
        at = end
    made += lines[at:]
    return "\n".join(made) + ("\n" if made and is_closed else "")


def _check_end(hunk: Hunk, *, touches: bool, is_closed: bool) -> bool:
    """Whether the text's last line has an end after this; the marks must be true before."""
    marked = hunk.old_open or hunk.new_open
    keeps_last = bool(hunk.body) and hunk.body[-1][0] != "+"
    if (hunk.at_end or (marked and keeps_last)) and not touches:
        raise _misfit(hunk, "it says that it reaches the end of the file, and more lines follow")
    if not marked:
        return is_closed
    if not touches:
        raise _misfit(hunk, "it ends without a line end in the middle of the file")
    if hunk.old and hunk.old_open is is_closed:
        word = "no line end" if hunk.old_open else "a line end"
        raise _misfit(hunk, f"it says that the file's last line has {word}, which is not so")
    return not hunk.new_open


def _locate(lines: list[str], hunk: Hunk, at: int, shift: int) -> int:
    """The index of the line at which a hunk begins."""
    begin = _after_anchors(lines, hunk, at)
    if not hunk.old:
        return _locate_empty(lines, hunk, begin, shift)
    if hunk.at_end and lines[-len(hunk.old) :] == hunk.old and len(lines) - len(hunk.old) >= begin:
        return len(lines) - len(hunk.old)
    found = _places(lines, hunk.old, begin)
    if not found:
        text, old = "\n".join(lines), "\n".join(hunk.old)
        earlier = _places(lines, hunk.old, 0)
        if earlier:
            why = f"its lines stand only at line {earlier[0] + 1}, before an earlier place of it"
            raise _misfit(hunk, f"{why}; put the places in the file's order")
        raise _misfit(hunk, f"its old lines are not in the file. {explain_miss(text, old)}")
    if hunk.start is not None:
        aim = hunk.start - 1 + shift
        return min(found, key=lambda place: (abs(place - aim), place))
    if len(found) > 1 and not hunk.anchors:
        told = ", ".join(str(place + 1) for place in found[:_PLACES_TOLD])
        raise _misfit(
            hunk, f"its old lines stand at lines {told}; add context, or an `@@ line above it`"
        )
    return found[0]


def _locate_empty(lines: list[str], hunk: Hunk, begin: int, shift: int) -> int:
    """Where lines go that are added without any beside them."""
    if hunk.at_end or not lines:
        return len(lines)
    if hunk.start is not None:
        place = hunk.start + shift  # the header names the line before it
        if begin <= place <= len(lines):
            return place
        raise _misfit(hunk, f"the file has {len(lines)} lines, so none follows {hunk.start}")
    if hunk.anchors:
        return begin
    raise _misfit(hunk, "it has no line that stands in the file; add some context")


def _after_anchors(lines: list[str], hunk: Hunk, at: int) -> int:
    for anchor in hunk.anchors:
        found = next((n for n in range(at, len(lines)) if lines[n] == anchor), None)
        if found is None:
            bare = anchor.strip()
            found = next((n for n in range(at, len(lines)) if lines[n].strip() == bare), None)
        if found is None:
            raise _misfit(hunk, f"no line {anchor!r} follows where it should be")
        at = found + 1
    return at


def _places(lines: list[str], old: list[str], begin: int) -> list[int]:
    places: list[int] = []
    count = len(old)
    at = begin
    while at + count <= len(lines):
        try:
            at = lines.index(old[0], at, len(lines) - count + 1)
        except ValueError:
            break
        if lines[at : at + count] == old:
            places.append(at)
        at += 1
    return places


def _misfit(hunk: Hunk, why: str) -> ToolInputInvalid:
    return ToolInputInvalid(f"The place at line {hunk.number} of the patch does not fit: {why}.")

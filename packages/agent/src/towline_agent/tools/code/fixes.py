"""Quick fixes: the edits that ruff offers for its findings, put into a text."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from towline_agent.tools.code.ruff_output import RuffSpot, read_rows

__all__ = ["Fix", "apply_fixes", "read_fixes"]


_LINE_END: Final = re.compile(r"\r\n|\n|\r")


class Fix(NamedTuple):
    """What would mend one finding."""

    code: str
    """The rule's code."""
    lines: tuple[int, ...]
    """The lines where the finding may be meant: where it begins to where it ends, from 1."""
    is_safe: bool
    """Whether it leaves alone what the program does."""
    edits: tuple[tuple[tuple[int, int], tuple[int, int], str], ...]
    """From a line and column, to a line and column, both from 1, and what stands there then."""


def read_fixes(output: bytes) -> tuple[tuple[Fix, ...], int]:
    """What ruff would mend, and how many findings it can't.

    Args:
        output: What `ruff check --output-format json-lines` wrote.
    """
    fixes: list[Fix] = []
    rows = read_rows(output)
    for row in rows:
        if row.fix is None or row.fix.applicability not in ("safe", "unsafe"):
            continue
        edits = tuple(
            (_spot(edit.location), _spot(edit.end_location), edit.content) for edit in row.fix.edits
        )
        lines = tuple(range(row.location.row, row.end_location.row + 1))
        fixes.append(Fix(row.code or "", lines, row.fix.applicability == "safe", edits))
    return tuple(fixes), len(rows) - len(fixes)


def _spot(spot: RuffSpot) -> tuple[int, int]:
    return spot.row, spot.column


def apply_fixes(text: str, fixes: Iterable[Fix]) -> tuple[str, int]:
    """The text with as many of the fixes as do not get in each other's way, and their number.

    A fix goes in whole or not at all. Fixes with the same edits, as of two names of one import, are
    one.
    """
    starts = _line_starts(text)
    taken: set[tuple[int, int, str]] = set()
    count = 0
    for fix in fixes:
        edits = {(_offset(starts, a), _offset(starts, b), words) for a, b, words in fix.edits}
        if not edits - taken or not any(_meet(edit, other) for edit in edits for other in taken):
            taken |= edits
            count += 1
    for begin, end, words in sorted(taken, reverse=True):
        text = text[:begin] + words + text[end:]
    return text, count


def _meet(edit: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    if edit == other:
        return False
    return edit[0] == other[0] or (edit[0] < other[1] and other[0] < edit[1])


def _line_starts(text: str) -> list[int]:
    """Where each line begins, by the three line ends that ruff counts, and last where all ends."""
    return [0, *(found.end() for found in _LINE_END.finditer(text)), len(text)]


def _offset(starts: Sequence[int], spot: tuple[int, int]) -> int:
    line = min(spot[0], len(starts)) - 1
    return min(starts[line] + spot[1] - 1, starts[-1])

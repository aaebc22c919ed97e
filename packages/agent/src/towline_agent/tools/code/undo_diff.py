"""From a text and the unified diff that led to it, the text before."""

import itertools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["text_before"]

_HEAD: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


class _Hunk(NamedTuple):
    start: int
    old: list[str]
    new: list[str]


def text_before(after: str, diff: str) -> str | None:
    """The text before; `None` when the diff did not lead to this one.

    Args:
        after: The text now.
        diff: A whole unified diff of one file.
    """
    lines = _split(after)
    for hunk in reversed(list(_hunks(diff))):
        stop = hunk.start + len(hunk.new)
        if lines[hunk.start : stop] != hunk.new:
            return None
        lines[hunk.start : stop] = hunk.old
    return "".join(lines)


def _hunks(diff: str) -> Iterator[_Hunk]:
    hunk: _Hunk | None = None
    lines = _split(diff)
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        head = _HEAD.match(line)
        if head is not None:
            if hunk is not None:
                yield hunk
            # a hunk without new lines is told by the line before it
            hunk = _Hunk(int(head[1]) - (head[2] != "0"), [], [])
        elif hunk is not None:
            text = line[1:].removesuffix("\n") if after.startswith("\\") else line[1:]
            if line[0] in " -":
                hunk.old.append(text)
            if line[0] in " +":
                hunk.new.append(text)
    if hunk is not None:
        yield hunk


def _split(text: str) -> list[str]:
    """Lines with their ends; other signs than a line feed end none."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])

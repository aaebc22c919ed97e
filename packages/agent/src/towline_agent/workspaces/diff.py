"""The unified diff of two versions of a file, with bounds."""

from typing import Final, NamedTuple

from towline_agent.workspaces.lines import Opcode, compare_lines
from towline_agent.workspaces.paths import name_in_line
from towline_agent.workspaces.text import decode_text

__all__ = ["DIFF_MAX_CHARS", "TextDiff", "diff_bytes"]

DIFF_MAX_CHARS: Final = 60_000
"""Characters of one diff; a change that is longer is looked at in the file itself."""

_CONTEXT: Final = 3
_NO_END: Final = "\\ No newline at end of file\n"


class TextDiff(NamedTuple):
    """A unified diff."""

    text: str
    """The diff, or its head."""
    truncated: bool
    """Whether it is only the head."""


def diff_bytes(
    before: bytes | None, after: bytes | None, path: str, *, source: str | None = None
) -> TextDiff | None:
    """The unified diff of a file's two versions; `None` when one of them is no text.

    Args:
        before: Its bytes before; `None` when it was not there.
        after: Its bytes after; `None` when it is gone.
        path: Its name.
        source: Its name before, if it had another.
    """
    old = _lines(before)
    new = _lines(after)
    if old is None or new is None:
        return None
    left = "/dev/null" if before is None else f"a/{name_in_line(source or path)}"
    right = "/dev/null" if after is None else f"b/{name_in_line(path)}"
    pieces = [f"--- {left}\n+++ {right}\n"]
    room = DIFF_MAX_CHARS
    opcodes = compare_lines(old, new)
    for group in _grouped(opcodes):
        piece = _hunk(old, new, group)
        room -= len(piece)
        if room < 0:
            pieces.append(piece[: len(piece) + room])
            break
        pieces.append(piece)
    return TextDiff("".join(pieces) if len(pieces) > 1 else "", room < 0)


def _lines(data: bytes | None) -> list[str] | None:
    if data is None:
        return []
    decoded = decode_text(data)
    if decoded is None:
        return None
    text = decoded[0]
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, f"{lines[-1]}\n{_NO_END}"] if lines[-1] else ended


def _grouped(opcodes: list[Opcode]) -> list[list[Opcode]]:
    """The changes with some lines round them; those close to each other together."""
    groups: list[list[Opcode]] = [[]]
    last = len(opcodes) - 1
    for place, (tag, i, j, k, m) in enumerate(opcodes):
        if tag != "equal":
            groups[-1].append((tag, i, j, k, m))
            continue
        before = 0 if place == 0 else _CONTEXT
        after = 0 if place == last else _CONTEXT
        if place not in (0, last) and j - i <= 2 * _CONTEXT:
            groups[-1].append((tag, i, j, k, m))
            continue
        if before:
            groups[-1].append((tag, i, min(j, i + before), k, min(m, k + before)))
        if after:
            groups.append([(tag, max(i, j - after), j, max(k, m - after), m)])
    return [group for group in groups if any(opcode[0] != "equal" for opcode in group)]


def _hunk(old: list[str], new: list[str], group: list[Opcode]) -> str:
    first, last = group[0], group[-1]
    pieces = [f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@\n"]
    for tag, i, j, k, m in group:
        if tag == "equal":
            pieces += [f" {line}" for line in old[i:j]]
        else:
            pieces += [f"-{line}" for line in old[i:j]]
            pieces += [f"+{line}" for line in new[k:m]]
    return "".join(pieces)


def _span(start: int, stop: int) -> str:
    count = stop - start
    return f"{start + (count > 0)}" if count == 1 else f"{start + (count > 0)},{count}"

"""Unified diffs, as `diff -u` and `git diff` write them."""

import re
from typing import Final

from towline_agent.tools.edits.hunk import FilePatch, Hunk
from towline_agent.tools.edits.patch_lines import NO_END, PatchLines

__all__ = ["read_unified"]

_NUMBERED: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NOWHERE: Final = "/dev/null"
_NOTES: Final = ("index ", "new file mode ", "deleted file mode ", "similarity index ", "Index: ")
"""Lines of git's own that say nothing that the others do not."""
_RULER: Final = re.compile(r"={10,}$")
_BEFORE: Final = ("diff ", "--- ", *_NOTES)


def read_unified(lines: list[str]) -> tuple[FilePatch, ...]:
    """The files of such a patch.

    Raises:
        ToolInputInvalid: A line can't stand where it stands.
    """
    rest = PatchLines(lines)
    found: list[FilePatch] = []
    rest.skip_empty()
    while rest.next is not None:
        found += _read_file(rest)
        rest.skip_empty()
    return tuple(found)


def _read_file(rest: PatchLines) -> list[FilePatch]:
    number = rest.number
    renames = _read_notes(rest)
    if not (rest.next or "").startswith("--- "):
        if renames:
            return [FilePatch(number=number, kind="update", path=renames[0], target=renames[1])]
        rest.refuse("expected '--- a/path', then '+++ b/path'")
    old = _path(rest, "--- ")
    if not (rest.next or "").startswith("+++ "):
        rest.refuse("expected '+++ b/path'")
    new = _path(rest, "+++ ")
    if old.startswith("a/") and (new.startswith("b/") or new == _NOWHERE):
        old = old.removeprefix("a/")
        new = new.removeprefix("b/")
    elif old == _NOWHERE:
        new = new.removeprefix("b/")
    hunks: list[Hunk] = []
    while (rest.next or "").startswith("@@"):
        hunks.append(_read_hunk(rest))
    if old == _NOWHERE:
        return [FilePatch(number=number, kind="add", path=new, hunks=tuple(hunks))]
    if new == _NOWHERE:
        return [FilePatch(number=number, kind="delete", path=old, hunks=tuple(hunks))]
    target = new if new != old else None
    if not hunks and target is None:
        rest.refuse("expected '@@', then lines that begin with ' ', '-' or '+'")
    return [FilePatch(number=number, kind="update", path=old, target=target, hunks=tuple(hunks))]


def _read_notes(rest: PatchLines) -> tuple[str, str] | None:
    """Skip what git writes above a file; the two names of a rename, if it tells one."""
    names: dict[str, str] = {}
    while rest.next is not None and not rest.next.startswith("--- "):
        line = rest.next
        if line.startswith("diff ") and names:
            break  # the next file: this one was a rename alone
        if line.startswith(("rename from ", "rename to ")):
            _, side, path = line.split(" ", 2)
            names[side] = path
        elif not (line.startswith(("diff ", *_NOTES)) or _RULER.match(line) or not line):
            if len(names) == 2:
                break
            rest.refuse("expected '--- a/path'; modes, copies and binary patches can't be applied")
        rest.take()
    return (names["from"], names["to"]) if len(names) == 2 else None


def _path(rest: PatchLines, header: str) -> str:
    line = rest.take()
    path = line.removeprefix(header).partition("\t")[0].rstrip()
    if not path or path.startswith('"'):
        rest.refuse("write the path after it, without quotes", rest.number - 1)
    return path


def _read_hunk(rest: PatchLines) -> Hunk:
    number, header = rest.number, rest.take()
    numbered = _NUMBERED.match(header)
    if numbered is None:
        if re.match(r"@@ *-?\d", header):
            rest.refuse("write it as '@@ -1,3 +1,4 @@', or '@@' alone", number)
        anchor = header[2:].removesuffix("@@").removeprefix(" ").rstrip()
        return _checked(rest, _read_body(rest, number, None, (anchor,) if anchor else ()))
    begin = rest.number
    counts = (int(numbered[2] or 1), int(numbered[4] or 1))
    hunk = _read_body(rest, number, counts, (), int(numbered[1]))
    if _count(hunk) == counts and _goes_on(rest):
        return _checked(rest, hunk)
    # Models miscount all the time: the counts are a hint then, and so is the line. What stands
    # there must be found in the file exactly once.
    rest.go_back(begin)
    hunk = _read_body(rest, number, None, ())
    if not _goes_on(rest):
        old, new = _count(hunk)
        rest.refuse(
            f"its header promises {counts[0]} old and {counts[1]} new lines, and {old} and {new} "
            "follow before a line that is none of a place; begin each with ' ', '-' or '+'",
            number,
        )
    return _checked(rest, hunk)


def _count(hunk: Hunk) -> tuple[int, int]:
    """Its old and its new lines."""
    old = sum(sign != "+" for sign, _ in hunk.body)
    return old, sum(sign != "-" for sign, _ in hunk.body)


def _goes_on(rest: PatchLines) -> bool:
    """Whether what follows a place can follow one: the next place, the next file, or the end."""
    here = rest.number
    rest.skip_empty()
    line = rest.next or ""
    is_file = line.startswith("--- ") and rest.after.startswith("+++ ")
    fits = rest.next is None or is_file or line.startswith(("@@", "diff ", *_NOTES))
    rest.go_back(here)
    return fits or bool(_RULER.match(line))


def _names_a_file(rest: PatchLines) -> bool:
    """Whether the next two lines name one file, as git does, and are no `-` and `+` of a place."""
    old, new = rest.next or "", rest.after
    if not (old.startswith("--- ") and new.startswith("+++ ")):
        return False
    old, new = old.removeprefix("--- "), new.removeprefix("+++ ")
    if _NOWHERE in (old, new):
        return True
    return old.startswith("a/") and new.startswith("b/") and old[2:] == new[2:]


def _checked(rest: PatchLines, hunk: Hunk) -> Hunk:
    if not any(sign != " " for sign, _ in hunk.body):
        number = hunk.number
        rest.refuse("this place changes nothing; it needs lines with '-' or '+'", number)
    return hunk


def _read_body(
    rest: PatchLines,
    number: int,
    counts: tuple[int, int] | None,
    anchors: tuple[str, ...],
    start: int | None = None,
) -> Hunk:
    body: list[tuple[str, str]] = []
    open_signs = ""
    old = new = 0
    while rest.next is not None and (counts is None or old < counts[0] or new < counts[1]):
        if _ends_free_body(rest) if counts is None else _names_a_file(rest):
            break
        line = rest.next
        sign = line[:1] or " "
        if sign not in " +-":
            break
        rest.take()
        body.append((sign, line[1:]))
        old, new = old + (sign != "+"), new + (sign != "-")
        if (rest.next or "").startswith(NO_END):
            rest.take()
            open_signs += sign
    return Hunk(
        number=number,
        body=tuple(body),
        anchors=anchors,
        start=start,
        old_open=" " in open_signs or "-" in open_signs,
        new_open=" " in open_signs or "+" in open_signs,
    )


def _ends_free_body(rest: PatchLines) -> bool:
    """Whether a hunk without counts ends before the next line."""
    line = rest.next or ""
    if line.startswith("--- ") and rest.after.startswith("+++ "):
        return True
    if not line:
        return not rest.after or rest.after.startswith(_BEFORE)
    return line[0] not in " +-"

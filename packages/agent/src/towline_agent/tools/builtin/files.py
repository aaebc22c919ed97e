"""Reading files and folders (A5.T1, A5.T2)."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any, Final

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.builtin.place import locate, look_at
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.base import DirEntry
from towline_agent.workspaces.paths import name_in_line
from towline_agent.workspaces.seen import Seen
from towline_agent.workspaces.text import decode_text
from towline_agent.workspaces.threads import FILES

__all__ = [
    "ENTRIES_SHOWN",
    "LINE_CHARS",
    "PAGE_BYTES",
    "PAGE_LINES",
    "list_dir",
    "read_file",
    "show_page",
]

PAGE_LINES: Final = 2000
"""Lines of one page (A5.T1)."""
PAGE_BYTES: Final = 50_000
"""Bytes of one page (A5.T1)."""
LINE_CHARS: Final = 2000
"""Characters shown of one line; longer ones are data or minified, and would fill the page alone."""
ENTRIES_SHOWN: Final = 1000
"""Names shown of one folder."""

_FOOTER_CHARS: Final = 200
"""Room below a page for how to go on."""
_SCAN_SIZE: Final = 65_536
"""Bytes or characters looked at in one go: a call into C keeps all other threads waiting."""
_LINE_ENDS: Final = re.compile(r"\r\n|\n|\r")
_AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


def show_page(path: str, raw: bytes, start: int, lines: int, limit: int) -> str:
    """A page of a file, each line with its number, and how to go on.

    Args:
        path: The file, as it was asked for.
        raw: Its bytes.
        start: The first line, from 1; below 0 it is counted from the end.
        lines: How many lines at most.
        limit: Characters that the result may have.

    Raises:
        ToolInputInvalid: The file has no such line.
    """
    decoded = decode_text(raw)
    if decoded is None:
        return f"{path!r} is a binary file of {len(raw)} bytes; it is not shown."
    text, encoding = decoded
    if not text:
        return f"{path!r} is empty."
    if start < 0:
        start = max(1, _find_line(text, 1)[1] + start + 1)
    place, total = _find_line(text, start)
    if start > total:
        raise ToolInputInvalid(
            f"{path!r} has {total} lines, so none at start={start}; use a smaller start."
        )
    wanted = islice(_lines_from(text, place), min(lines, PAGE_LINES))
    shown = _fit(wanted, start, limit - _FOOTER_CHARS)
    last = start + len(shown) - 1
    notes = _notes(start, last, total, encoding)
    return "\n".join((*shown, *notes))


def _find_line(text: str, start: int) -> tuple[int, int]:
    """Where a line begins, and how many lines there are; the place counts for an existing line."""
    place = at = ends = 0
    while at < len(text):
        stop = min(at + _SCAN_SIZE, len(text))
        stop += text.startswith("\r\n", stop - 1)  # a line end stays in one piece
        here = text.count("\n", at, stop) + text.count("\r", at, stop)
        here -= text.count("\r\n", at, stop)
        if ends < start - 1 <= ends + here:
            found = islice(_LINE_ENDS.finditer(text, at, stop), start - 2 - ends, None)
            place = next(found).end()
        ends += here
        at = stop
    return place, ends + (text[-1] not in "\r\n")


def _lines_from(text: str, at: int) -> Iterator[str]:
    """The lines from a place on, each found when it is asked for."""
    feed = back = -1  # the next of each; one that is far away is looked for once
    while at < len(text):
        if feed < at:
            feed = _find(text, "\n", at)
        if back < at:
            back = _find(text, "\r", at)
        stop = min(feed, back)
        yield text[at:stop]
        at = stop + (2 if back + 1 == feed else 1)


def _find(text: str, char: str, at: int) -> int:
    found = text.find(char, at)
    return len(text) if found < 0 else found


def _fit(lines: Iterable[str], start: int, limit: int) -> list[str]:
    """As many numbered lines as the page has room for, one at least."""
    shown: list[str] = []
    room_bytes, room_chars = PAGE_BYTES, limit
    for number, line in enumerate(lines, start):
        longest = LINE_CHARS if shown else max(0, min(LINE_CHARS, room_chars - 64))
        if len(line) > longest:
            line = f"{line[:longest]}… [{len(line) - longest} more characters in this line]"
        numbered = f"{number}\t{line}"
        room_bytes -= len(numbered.encode()) + 1
        room_chars -= len(numbered) + 1
        if shown and (room_bytes < 0 or room_chars < 0):
            break
        shown.append(numbered)
    return shown


def _notes(start: int, last: int, total: int, encoding: str) -> list[str]:
    notes: list[str] = []
    if last < total:
        notes.append(f"[lines {start}-{last} of {total}; go on with start={last + 1}]")
    elif start > 1:
        notes.append(f"[lines {start}-{last} of {total}; this is the end]")
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"[encoding: {encoding}]")
    return notes


def _path_of(arguments: dict[str, Any]) -> str:
    """The path as permission rules see it: one way of writing, whatever the model wrote."""
    return posixpath.normpath(arguments["path"])


def _check_start(arguments: dict[str, Any]) -> None:
    if arguments["start"] == 0:
        raise ToolInputInvalid("There is no line 0; count from start=1, or from the end: start=-1.")


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"Read {arguments['path']}",
    subject=_path_of,
    look=look_at("read"),
    verify=_check_start,
)
async def read_file(
    context: ToolContext, path: str, start: int = 1, lines: _AtLeastOne = PAGE_LINES
) -> str:
    """Read a text file from disk. Each line is shown with its number.

    Args:
        context: The call.
        path: Path of the file.
        start: First line to show; -50 for the last 50.
        lines: Number of lines to show.
    """
    spot = await locate(context, path)
    file = await context.workspace.read(path)
    limit = context.result_limit
    page = await FILES.run(lambda: show_page(path, file.data, start, lines, limit))
    context.state.get(Seen).note(spot.path, file)
    return page


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"List {arguments['path']}",
    subject=_path_of,
    look=look_at("read"),
)
async def list_dir(context: ToolContext, path: str = ".") -> str:
    """List a folder's files and subfolders.

    Args:
        context: The call.
        path: Path of the folder.
    """
    found = await context.workspace.walk(path, deep=False, ignored=True)
    entries = sorted(found.entries, key=lambda entry: (entry.kind != "dir", entry.name))
    return _show_entries(path, entries, context.result_limit)


def _show_entries(path: str, entries: list[DirEntry], limit: int) -> str:
    if not entries:
        return f"{path!r} is empty."
    shown: list[str] = []
    room = limit - _FOOTER_CHARS
    for entry in entries[:ENTRIES_SHOWN]:
        line = _show_entry(entry)
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    left = len(entries) - len(shown)
    if left:
        shown.append(f"[{left} more; list a subfolder, or use find_files]")
    return "\n".join(shown)


def _show_entry(entry: DirEntry) -> str:
    name = name_in_line(entry.name)
    forms = {"dir": f"{name}/", "link": f"{name} (link)"}
    return forms.get(entry.kind, f"{name} ({entry.size} bytes)")

"""Finding lines by what they hold (A5.T2, A5.9)."""

import os
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.permissions.secret import is_secret
from towline_agent.tools.builtin.place import Spot, find_kind, locate, look_at
from towline_agent.tools.function import tool
from towline_agent.tools.search.engine import (
    Found,
    Query,
    find_rg,
    search_with_python,
    search_with_rg,
)
from towline_agent.tools.search.glob import compile_glob, name_globs
from towline_agent.tools.search.hits import FileHits, HitLine
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.local import LocalWorkspace, OpenFolder
from towline_agent.workspaces.threads import FILES
from towline_agent.workspaces.twin import Twins

__all__ = ["HITS_SHOWN", "search_text"]

HITS_SHOWN: Final = 100
"""Hits of one page (A5.T2)."""
_FOOTER_CHARS: Final = 300
_CONTEXT_MAX: Final = 10
_SKIP_MAX: Final = 10_000
"""Who has read so many hits should look for something else."""
_PATTERN_CHARS: Final = 4_096
"""Characters of a pattern: making a regex of a much longer one takes longer than the search."""
_NEW_LINE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\n")
_STDIN: Final = "<stdin>"

_Context = Annotated[int, msgspec.Meta(ge=0, le=_CONTEXT_MAX)]
_Skip = Annotated[int, msgspec.Meta(ge=0, le=_SKIP_MAX)]


def _check_pattern(arguments: dict[str, Any]) -> None:
    pattern: str = arguments["pattern"]
    if not pattern:
        raise ToolInputInvalid("pattern is empty; to list files use find_files.")
    if len(pattern) > _PATTERN_CHARS:
        raise ToolInputInvalid(
            f"pattern has {len(pattern)} characters, and {_PATTERN_CHARS} is the most; look for a "
            "part of it."
        )
    if "\n" in pattern or (not arguments["literal"] and _NEW_LINE.search(pattern)):
        raise ToolInputInvalid(
            "Lines are searched one by one, so a pattern can't hold a line break; look for one of "
            "its lines."
        )
    if "\0" in pattern:
        raise ToolInputInvalid("pattern holds a NUL character; leave it out.")


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"Search for {arguments['pattern']}",
    look=look_at("read"),
    verify=_check_pattern,
)
async def search_text(
    context: ToolContext,
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    literal: bool = False,
    ignore_case: bool = False,
    context_lines: _Context = 0,
    ignored: bool = False,
    skip: _Skip = 0,
) -> str:
    """Search lines of files. Leaves out binary and secret files and what .gitignore does.

    Args:
        context: The call.
        pattern: Regex of one line.
        path: Folder or file.
        glob: Such as *.py or src/**/*.ts.
        literal: Pattern is plain text.
        ignore_case: Any case.
        context_lines: Lines shown round a hit.
        ignored: Also what .gitignore leaves out.
        skip: Hits of earlier pages.
    """
    spot = await locate(context, path)
    query = Query(
        pattern=pattern,
        literal=literal,
        ignore_case=ignore_case,
        context=context_lines,
        ignored=ignored,
        wants=_all if glob is None else compile_glob(glob),
        names=tuple(name_globs(glob) or ()) if glob is not None else (),
        needed=skip + HITS_SHOWN + 1,
    )
    if await find_kind(context.workspace, spot) == "dir":
        found = await _search_folder(context, spot, query)
    else:
        found = await _search_file(context, spot, query)
    return _show(found, query, spot, skip, context.result_limit)


def _all(_: str) -> bool:
    return True


async def _search_folder(context: ToolContext, spot: Spot, query: Query) -> Found:
    workspace = context.workspace
    if not isinstance(workspace, LocalWorkspace):
        return await _search_memory(context, spot, query)
    opened = await workspace.open_folder(spot.path)
    try:
        twins = Twins(workspace.root, is_secret)
        wants = _single(_visible(query.wants, spot, opened.hidden), spot, twins)
        query = msgspec.structs.replace(query, wants=wants)
        found = await _search_with_rg(context, spot, query, opened)
        if found is not None:
            return found
        walk = await workspace.walk(spot.path, ignored=query.ignored)
        files = [(entry.name, None) for entry in walk.entries if entry.kind == "file"]
        return await search_with_python(query, folder=opened.fd, files=files)
    finally:
        os.close(opened.fd)


async def _search_with_rg(
    context: ToolContext, spot: Spot, query: Query, opened: OpenFolder
) -> Found | None:
    """By `rg`, if there is one and it reads the same `.gitignore` files as a walk does."""
    rg = find_rg()
    if rg is None:
        return None
    above = spot.path != "." and not spot.is_outside
    if above and await FILES.run(lambda: _is_ignored_above(context.workspace.root)):
        return None
    return await search_with_rg(rg, query, folder=opened.fd, above=above)


def _is_ignored_above(root: str) -> bool:
    """Whether folders above the root have a `.gitignore`, which `rg` would heed and a walk not."""
    real = Path(root).resolve()
    return any((folder / ".gitignore").exists() for folder in real.parents)


def _visible(
    wants: Callable[[str], bool], spot: Spot, hidden: tuple[str, ...]
) -> Callable[[str], bool]:
    """A test that also leaves out what must not be looked at unasked."""
    base = "" if spot.path == "." else f"{spot.path}/"
    asked_for = is_secret(spot.path)

    def test(path: str) -> bool:
        if any(path == folder or path.startswith(f"{folder}/") for folder in hidden):
            return False
        return wants(path) and (asked_for or not is_secret(base + path))

    return test


def _single(wants: Callable[[str], bool], spot: Spot, twins: Twins) -> Callable[[str], bool]:
    """A test that also leaves out what a secret file is called besides, by a hard link."""

    def test(path: str) -> bool:
        return wants(path) and twins.find(f"{spot.real}/{path}") is None

    return test


async def _search_memory(context: ToolContext, spot: Spot, query: Query) -> Found:
    workspace = context.workspace
    query = msgspec.structs.replace(query, wants=_visible(query.wants, spot, ()))
    walk = await workspace.walk(spot.path, ignored=query.ignored)
    files: list[tuple[str, bytes | None]] = []
    for entry in walk.entries:
        if entry.kind == "file":
            file = await workspace.read(posixpath.join(spot.path, entry.name))
            files.append((entry.name, file.data))
    return await search_with_python(query, folder=None, files=files)


async def _search_file(context: ToolContext, spot: Spot, query: Query) -> Found:
    """One file, asked for by name: read here, so its path is judged once and for all."""
    data = (await context.workspace.read(spot.path)).data
    query = msgspec.structs.replace(query, wants=_all, names=())
    rg = find_rg()
    found = None
    if rg is not None:
        found = await search_with_rg(rg, query, folder=None, data=data)
    if found is None:
        found = await search_with_python(query, folder=None, files=[(_STDIN, data)])
    return found


def _show(found: Found, query: Query, spot: Spot, skip: int, limit: int) -> str:
    total = sum(file.hits for file in found.files)
    skipped = f"\n[{found.skipped} files could not be searched]" if found.skipped else ""
    if not total:
        return f"No line of {spot.path!r} has {query.pattern!r}.{_hint(query)}{skipped}"
    if skip >= total:
        return f"There are {total} hits, so none after skip={skip}.{skipped}"
    shown: list[str] = []
    room, hits, told = limit - _FOOTER_CHARS, 0, ""
    for path, line, before in _page(found.files, skip):
        piece = f"{line.number}{':' if line.is_hit else '-'} {line.text}"
        if path != told:
            piece = f"{'' if path == _STDIN else path}\n{piece}".lstrip("\n")
        elif before is not None and before.number + 1 < line.number and query.context:
            piece = f"--\n{piece}"
        room -= len(piece) + 1
        if (room < 0 and shown) or (line.is_hit and hits == HITS_SHOWN):
            break
        told, hits = path, hits + line.is_hit
        shown.append(piece[:limit])
    end = skip + max(hits, 1)
    return "\n".join(shown) + _footer(found, skip, end, total) + skipped


def _page(files: tuple[FileHits, ...], skip: int) -> Iterator[tuple[str, HitLine, HitLine | None]]:
    """The lines from a hit on, each with its path and the line before it."""
    passed = 0
    for file in files:
        if passed + file.hits <= skip:
            passed += file.hits
            continue
        before: HitLine | None = None
        for line in file.lines:
            passed += line.is_hit
            if passed > skip or (passed == skip and not line.is_hit):
                yield file.path, line, before
                before = line


def _hint(query: Query) -> str:
    hints = [
        "set ignore_case" if not query.ignore_case else "",
        "set ignored to look at what .gitignore leaves out" if not query.ignored else "",
    ]
    told = ", or ".join(hint for hint in hints if hint)
    return f" Try another pattern{f', {told}' if told else ''}."


def _footer(found: Found, skip: int, end: int, total: int) -> str:
    of = f"{total}" if found.is_whole else f"{total} or more"
    if end < total or not found.is_whole:
        return (
            f"\n[hits {skip + 1}-{end} of {of}; narrow the pattern, path or glob, or go on with "
            f"skip={end}]"
        )
    return f"\n[hits {skip + 1}-{end} of {total}; this is the end]" if skip else ""

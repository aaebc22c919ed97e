"""Finding files by name (A5.T2)."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

from towline_agent.tools.builtin.place import look_at
from towline_agent.tools.function import tool
from towline_agent.tools.search.glob import compile_glob
from towline_agent.tools.search.hits import sort_key
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.base import DirEntry
from towline_agent.workspaces.paths import name_in_line
from towline_agent.workspaces.threads import FILES

__all__ = ["FILES_SHOWN", "find_files"]

FILES_SHOWN: Final = 200
"""Paths of one page; more than that nobody reads."""
_FOOTER_CHARS: Final = 200

_AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"Find {arguments['glob']}",
    look=look_at("read"),
)
async def find_files(
    context: ToolContext,
    glob: str,
    path: str = ".",
    sort: Literal["path", "newest"] = "path",
    ignored: bool = False,
    skip: _AtLeastZero = 0,
) -> str:
    """Find files by name. What .gitignore leaves out is left out.

    Args:
        context: The call.
        glob: Such as *.py (at any depth), src/**/*.{ts,tsx}; a / at the end for folders.
        path: Folder.
        sort: Their order.
        ignored: Also what .gitignore leaves out.
        skip: Paths of earlier pages.
    """
    fits = compile_glob(glob)
    kinds = ("dir",) if glob.endswith("/") else ("file", "link")
    found = await context.workspace.walk(path, ignored=ignored)

    def choose() -> list[DirEntry]:
        chosen = [entry for entry in found.entries if entry.kind in kinds and fits(entry.name)]
        if sort == "newest":
            return sorted(chosen, key=lambda entry: (-entry.mtime_ns, entry.name))
        return sorted(chosen, key=lambda entry: sort_key(entry.name))

    chosen = await FILES.run(choose)
    where = "" if path in (".", "") else f" in {path!r}"
    note = (
        ""
        if not found.truncated
        else f"\n[the folder is too large: only its first {len(found.entries)} names were looked "
        "at; search a subfolder with path]"
    )
    if not chosen:
        hint = "" if ignored else "; set ignored to look at what .gitignore leaves out too"
        return f"No file fits {glob!r}{where}{hint}.{note}"
    if skip >= len(chosen):
        return f"There are {len(chosen)} files, so none after skip={skip}."
    return _show(chosen, skip, context.result_limit - len(note)) + note


def _show(chosen: Sequence[DirEntry], skip: int, limit: int) -> str:
    shown: list[str] = []
    room = limit - _FOOTER_CHARS
    for entry in chosen[skip : skip + FILES_SHOWN]:
        line = name_in_line(entry.name)
        line = f"{line}/" if entry.kind == "dir" else line
        room -= len(line) + 1
        if room < 0 and shown:
            break
        shown.append(line[:limit])
    end = skip + len(shown)
    if end < len(chosen):
        shown.append(
            f"[{skip + 1}-{end} of {len(chosen)}; narrow glob or path, or go on with skip={end}]"
        )
    elif skip:
        shown.append(f"[{skip + 1}-{end} of {len(chosen)}; this is the end]")
    return "\n".join(shown)

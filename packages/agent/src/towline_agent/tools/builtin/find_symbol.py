"""Finding definitions by name (A5.T3, A5.10)."""

from typing import Any, Final, Literal

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.place import locate, look_at
from towline_agent.tools.code.symbol_index import (
    FILE_BYTES,
    KINDS,
    Hit,
    Survey,
    SymbolIndex,
    rank,
)
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.threads import FILES

__all__ = ["HITS_SHOWN", "find_symbol"]

HITS_SHOWN: Final = 50
"""Symbols of one answer; a search with more was too wide."""

_NAME_CHARS: Final = 200
_LINE_CHARS: Final = 160
_BUDGET_S: Final = 60.0
_FOOTER_CHARS: Final = 600
_SKIPPED_SHOWN: Final = 3


def _check_name(arguments: dict[str, Any]) -> None:
    name = arguments["name"]
    if not name.strip(" .:#") or len(name) > _NAME_CHARS:
        raise ToolInputInvalid(
            f"{name[:_NAME_CHARS]!r} names no symbol; give a name, a part of one, or a pattern "
            "such as 'get_*', or '*' for all that a file or folder defines."
        )


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"Find symbol {arguments['name']}",
    look=look_at("read"),
    verify=_check_name,
)
async def find_symbol(
    context: ToolContext,
    name: str,
    kind: Literal["function", "class", "variable"] | None = None,
    path: str = ".",
) -> str:
    """Find definitions by name: functions, classes, constants (Python, JS, TS, Go, Rust, Java).

    Args:
        context: The call.
        name: Name, part of it, pattern such as get_*, Class.method, or * for all.
        kind: Only these.
        path: Folder or file to look in.
    """
    spot = await locate(context, path)
    survey = await context.state.get(SymbolIndex).survey(
        context.workspace,
        spot.path,
        budget_s=_BUDGET_S,
        tell=lambda done, total: context.progress(f"{done} of {total} files", done / total),
    )
    kinds = KINDS[kind] if kind else None
    found = await FILES.run(lambda: rank(survey.files, name, kinds))
    notes = _notes(survey)
    if not found:
        return "\n".join((_tell_none(name, kind, survey), *notes))
    shown = await _show(context.workspace, found, context.result_limit - _FOOTER_CHARS)
    if len(shown) < len(found):
        notes.insert(
            0,
            f"[{len(shown)} of {len(found)} symbols shown, the likeliest first; narrow with a "
            "longer name, kind or path]",
        )
    return "\n".join((*shown, *notes))


def _tell_none(name: str, kind: str | None, survey: Survey) -> str:
    if not survey.languages:
        return "There are no source files of a known language here; use search_text."
    counts = ", ".join(f"{count} {language}" for language, count in survey.languages)
    what = f"{kind} " if kind else ""
    return (
        f"No {what}symbol matches {name!r} in the files here ({counts}). Try a part of the name, "
        "or search_text for any text."
    )


def _notes(survey: Survey) -> list[str]:
    notes: list[str] = []
    for language, count in survey.missing:
        notes.append(
            f"[{count} {language} files were not looked into: their grammar is not installed; "
            "install towline-agent[coding], or use search_text]"
        )
    if survey.skipped:
        names = ", ".join(survey.skipped[:_SKIPPED_SHOWN])
        more = ", ..." if len(survey.skipped) > _SKIPPED_SHOWN else ""
        notes.append(
            f"[{len(survey.skipped)} files left out, unreadable, over {FILE_BYTES // 2**20} MiB or "
            f"too slow to parse: {names}{more}]"
        )
    if survey.left:
        notes.append(f"[{survey.left} files were not reached; call again, or narrow with path]")
    if survey.truncated:
        notes.append("[the folder has more files than were looked at; narrow with path]")
    return notes


async def _show(workspace: Workspace, found: list[Hit], limit: int) -> list[str]:
    """A line for each hit, as many as there is room for, one at least."""
    shown: list[str] = []
    texts: dict[str, list[str]] = {}
    for hit in found[:HITS_SHOWN]:
        if hit.path not in texts:
            texts[hit.path] = await _lines(workspace, hit.path)
        line = _show_hit(hit, texts[hit.path])
        limit -= len(line) + 1
        if shown and limit < 0:
            break
        shown.append(line)
    return shown


async def _lines(workspace: Workspace, path: str) -> list[str]:
    try:
        return (await workspace.read(path)).data.decode("utf-8", "replace").split("\n")
    except ToolError:
        return []


def _show_hit(hit: Hit, lines: list[str]) -> str:
    symbol = hit.symbol
    name = f"{symbol.container}.{symbol.name}" if symbol.container else symbol.name
    head = f"{hit.path}:{symbol.line}-{symbol.end_line} {symbol.kind} {name}"
    code = lines[symbol.line - 1].strip() if symbol.line <= len(lines) else ""
    code = f"{code[:_LINE_CHARS]}…" if len(code) > _LINE_CHARS else code
    return f"{head} | {code}" if code else head

"""What checkers find in files (A5.T4)."""

import posixpath
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from towline_agent.errors import ToolError
from towline_agent.tools.builtin.place import locate, look_at
from towline_agent.tools.code.checkers import (
    CHECK_BYTES,
    PYTHON_SUFFIXES,
    Checked,
    check_project,
    check_text,
    check_types,
)
from towline_agent.tools.code.findings import show_counts, show_finding
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.base import DirEntry, Workspace
from towline_agent.workspaces.text import decode_text
from towline_agent.workspaces.threads import FILES

__all__ = ["FILES_CHECKED", "FINDINGS_SHOWN", "get_diagnostics", "project_diagnostics"]

FINDINGS_SHOWN: Final = 100
"""Findings of one answer; more are told by their number."""
FILES_CHECKED: Final = 200
"""Files that are checked one by one, where no checker takes the whole project."""

_FOOTER_CHARS: Final = 300
_DATA_SUFFIXES: Final = frozenset({".json", ".toml", ".yaml", ".yml"})


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"Check {arguments['path']}",
    look=look_at("read"),
)
async def get_diagnostics(context: ToolContext, path: str) -> str:
    """Check one file for errors: Python by ruff and ty, syntax of JSON, TOML and YAML.

    Args:
        context: The call.
        path: The file.
    """
    place = (await locate(context, path)).path
    raw = (await context.workspace.read(place)).data
    root = context.workspace.root
    text = _text_of(path, raw)
    checked = await check_text(root, place, text)
    if not checked.by:
        raise ToolError(
            f"There is no checker for {PurePosixPath(path).suffix or path!r} files here; run the "
            "project's own with run_program."
        )
    if PurePosixPath(path).suffix.lower() in PYTHON_SUFFIXES:
        checked = _joined(checked, await check_types(root, place))
    return _tell(f"{place}: ", checked, context.result_limit, with_path=False)


@tool(
    effect="read",
    idempotent=True,
    timeout_s=240.0,  # ruff, ty and the files by themselves have bounds of their own
    title=lambda arguments: f"Check the project in {arguments['path']}",
    look=look_at("read"),
)
async def project_diagnostics(
    context: ToolContext, path: str = ".", severity: Literal["error", "all"] = "all"
) -> str:
    """Check all files of a folder, errors first, with counts.

    Args:
        context: The call.
        path: The folder.
        severity: error leaves out warnings.
    """
    workspace = context.workspace
    place = (await locate(context, path)).path
    walk = await workspace.walk(place)
    checked = Checked((), ())
    if await FILES.run(lambda: Path(workspace.root).is_dir()):
        checked = await check_project(workspace.root, place)
        context.progress("types")
        checked = _joined(checked, await check_types(workspace.root, place))
    suffixes = _DATA_SUFFIXES if "ruff" in checked.by else _DATA_SUFFIXES | PYTHON_SUFFIXES
    checked = _joined(checked, await _check_files(workspace, place, walk.entries, suffixes))
    if severity == "error":
        errors = tuple(found for found in checked.findings if found.severity == "error")
        checked = checked._replace(findings=errors)
    return _tell("", checked, context.result_limit, with_path=True)


async def _check_files(
    workspace: Workspace, folder: str, entries: Sequence[DirEntry], suffixes: frozenset[str]
) -> Checked:
    """What no checker takes as a whole, file by file."""
    wanted = [
        posixpath.normpath(posixpath.join(folder, entry.name))
        for entry in entries
        if entry.kind == "file"
        and entry.size <= CHECK_BYTES
        and PurePosixPath(entry.name).suffix.lower() in suffixes
    ]
    checked = Checked((), ())
    for path in wanted[:FILES_CHECKED]:
        try:
            decoded = decode_text((await workspace.read(path)).data)
        except ToolError:  # gone meanwhile, or not ours to read
            continue
        if decoded is not None:
            checked = _joined(checked, await check_text(workspace.root, path, decoded[0]))
    if len(wanted) > FILES_CHECKED:
        note = f"{FILES_CHECKED} of {len(wanted)} data files were checked; narrow with path."
        checked = checked._replace(notes=(*checked.notes, note))
    return checked


def _text_of(path: str, raw: bytes) -> str:
    decoded = decode_text(raw)
    if decoded is None:
        raise ToolError(f"{path!r} is a binary file; there is nothing to check in it.")
    if len(raw) > CHECK_BYTES:
        raise ToolError(
            f"{path!r} is larger than {CHECK_BYTES // 2**20} MiB, too large to check here; run a "
            "checker with run_program."
        )
    return decoded[0]


def _joined(first: Checked, second: Checked) -> Checked:
    """What both say; the same place and code is told once, as are checkers and notes."""
    known = {(found.path, found.line, found.message) for found in first.findings}
    more = (f for f in second.findings if (f.path, f.line, f.message) not in known)
    return Checked(
        findings=(*first.findings, *more),
        by=tuple(dict.fromkeys((*first.by, *second.by))),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def _tell(head: str, checked: Checked, limit: int, *, with_path: bool) -> str:
    order = {"error": 0, "warning": 1}
    findings = sorted(
        checked.findings, key=lambda found: (order[found.severity], found.path, found.line)
    )
    by = f" (by {' and '.join(checked.by)})" if checked.by else ""
    shown = [f"{head}{show_counts(findings)}{by}"]
    room = limit - len(shown[0]) - _FOOTER_CHARS
    for found in findings[:FINDINGS_SHOWN]:
        line = show_finding(found, with_path=with_path)
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    left = len(findings) - len(shown) + 1
    if left:
        shown.append(f"[{left} more; mend these first, or narrow to a file or folder]")
    return "\n".join((*shown, *(f"[{note}]" for note in checked.notes)))

"""Telling what an edit broke (A5.11)."""

import asyncio
from pathlib import PurePosixPath
from typing import Final

from towline_agent.errors import ToolError
from towline_agent.tools.code.checkers import CHECK_BYTES, Checked, check_text
from towline_agent.tools.code.findings import Finding, new_findings, show_finding
from towline_agent.tools.code.undo_diff import text_before
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.text import decode_text
from towline_protocol import FileChange

__all__ = ["tell_new_findings"]

_CHECKED: Final = frozenset({".json", ".py", ".pyi", ".toml", ".yaml", ".yml"})
_FILES: Final = 20
"""Files of one edit that are looked at: a step should not take longer than a thought."""
_SHOWN: Final = 20
"""Findings of one file."""


async def tell_new_findings(context: ToolContext, changes: tuple[FileChange, ...]) -> str:
    """What checkers find in edited files now and did not find before; empty for nothing.

    Of a file whose text before can't be told, as of one that was changed all over, errors alone
    are told.

    Args:
        context: The call that edited them.
        changes: What it changed.
    """
    told: list[str] = []
    edited = [change for change in changes if _is_checked(change)]
    for change in edited[:_FILES]:
        told += _tell(change.path, await _find_new(context, change))
    if len(edited) > _FILES:
        told.append(f"[{len(edited) - _FILES} more edited files were not checked]")
    return "\n".join(told)


def _is_checked(change: FileChange) -> bool:
    suffix = PurePosixPath(change.path).suffix.lower()
    return suffix in _CHECKED and change.kind != "deleted" and change.before != change.after


async def _find_new(context: ToolContext, change: FileChange) -> tuple[Finding, ...]:
    try:
        after = (await context.workspace.read(change.path)).data
    except ToolError:  # it is gone again, or too large
        return ()
    decoded = decode_text(after)
    if decoded is None or len(after) > CHECK_BYTES:
        return ()
    text, root = decoded[0], context.workspace.root
    before = None
    if change.diff is not None and not change.truncated:
        before = text_before(text, change.diff)
    if before is None:
        found = (await check_text(root, change.path, text)).findings
        return tuple(finding for finding in found if finding.severity == "error")
    async with asyncio.TaskGroup() as group:
        earlier = group.create_task(_check(root, change.path, before))
        now = group.create_task(_check(root, change.path, text))
    return new_findings(earlier.result().findings, before, now.result().findings, text)


async def _check(root: str, path: str, text: str) -> Checked:
    return await check_text(root, path, text) if text else Checked((), ())


def _tell(path: str, found: tuple[Finding, ...]) -> list[str]:
    if not found:
        return []
    ordered = sorted(found, key=lambda finding: (finding.severity, finding.line))  # errors first
    lines = [f"New findings in {path}, mend them if they are yours:"]
    lines += [show_finding(finding, with_path=False) for finding in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        lines.append(f"[{len(ordered) - _SHOWN} more; see get_diagnostics]")
    return lines

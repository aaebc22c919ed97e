"""Telling what an edit broke (A5.11)."""

import asyncio
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from towline_agent.errors import ToolError
from towline_agent.tools.code.checkers import CHECK_BYTES, Checked, check_text
from towline_agent.tools.code.findings import Finding, new_findings, show_finding
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.text import decode_text

__all__ = ["tell_new_findings"]

_CHECKED: Final = frozenset({".json", ".py", ".pyi", ".toml", ".yaml", ".yml"})
_FILES: Final = 20
"""Files of one edit that are looked at: a step should not take longer than a thought."""
_SHOWN: Final = 20
"""Findings of one file."""


async def tell_new_findings(context: ToolContext, changed: Mapping[str, bytes]) -> str:
    """What checkers find in edited files now and did not find before; empty for nothing.

    Args:
        context: The call that edited them.
        changed: Path to the bytes before, empty for a new file.
    """
    told: list[str] = []
    paths = [path for path in changed if PurePosixPath(path).suffix.lower() in _CHECKED]
    for path in paths[:_FILES]:
        told += _tell(path, await _find_new(context, path, changed[path]))
    if len(paths) > _FILES:
        told.append(f"[{len(paths) - _FILES} more edited files were not checked]")
    return "\n".join(told)


async def _find_new(context: ToolContext, path: str, before: bytes) -> tuple[Finding, ...]:
    try:
        after = (await context.workspace.read(path)).data
    except ToolError:  # it is gone again, or too large
        return ()
    old, new = decode_text(before), decode_text(after)
    if new is None or max(len(before), len(after)) > CHECK_BYTES:
        return ()
    old_text = "" if old is None else old[0]
    root = context.workspace.root
    async with asyncio.TaskGroup() as group:
        earlier = group.create_task(_check(root, path, old_text))
        now = group.create_task(_check(root, path, new[0]))
    return new_findings(earlier.result().findings, old_text, now.result().findings, new[0])


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

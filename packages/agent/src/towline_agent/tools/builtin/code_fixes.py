"""Formatting, sorting imports and quick fixes through ruff (A5.T8)."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.change import Plan, carry_out, to_look
from towline_agent.tools.builtin.rewriting import Original, plan_rewrite, read_original
from towline_agent.tools.code.checkers import PYTHON_SUFFIXES, list_fixes, rewrite_text
from towline_agent.tools.code.fixes import apply_fixes
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, ToolContext, ToolOutput

__all__ = ["apply_quick_fix", "format_file", "organize_imports"]

_CODE: Final = re.compile(r"[A-Z]{1,8}[0-9]{1,5}")
_SORT_IMPORTS: Final = ("check", "--fix-only", "--exit-zero", "--select=I")
_AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


async def _read(context: ToolContext, path: str) -> Original:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix not in PYTHON_SUFFIXES:
        raise ToolError(
            f"Only Python files can be rewritten here, not {suffix or path!r}; run the project's "
            "own formatter or linter with run_program."
        )
    return await read_original(context, path)


async def _plan_with(context: ToolContext, path: str, done: str, *words: str) -> Plan:
    """The plan of a rewrite by ruff, called with these words; `done` says what it did."""
    original = await _read(context, path)
    spot = original.spot
    text = await rewrite_text(context.workspace.root, spot.path, original.text, *words)
    return await plan_rewrite(original, text, f"{done} {spot.path}.")


async def _plan_format(context: ToolContext, path: str) -> Plan:
    return await _plan_with(context, path, "Formatted", "format")


async def _look_at_format(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return to_look(await _plan_format(context, arguments["path"]))


@tool(
    effect="write",
    idempotent=True,
    title=lambda arguments: f"Format {arguments['path']}",
    look=_look_at_format,
)
async def format_file(context: ToolContext, path: str) -> ToolOutput | str:
    """Format a Python file with ruff, by the project's settings.

    Args:
        context: The call.
        path: The file.
    """
    plan = await _plan_format(context, path)
    if not plan.edits:
        return f"{path} is formatted already; nothing changed."
    return await carry_out(context, plan)


async def _plan_imports(context: ToolContext, path: str) -> Plan:
    return await _plan_with(context, path, "Organized the imports of", *_SORT_IMPORTS)


async def _look_at_imports(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return to_look(await _plan_imports(context, arguments["path"]))


@tool(
    effect="write",
    idempotent=True,
    title=lambda arguments: f"Organize imports of {arguments['path']}",
    look=_look_at_imports,
)
async def organize_imports(context: ToolContext, path: str) -> ToolOutput | str:
    """Sort the imports of a Python file with ruff.

    Args:
        context: The call.
        path: The file.
    """
    plan = await _plan_imports(context, path)
    if not plan.edits:
        return f"The imports of {path} are in order already; nothing changed."
    return await carry_out(context, plan)


def _check_code(arguments: dict[str, Any]) -> None:
    if _CODE.fullmatch(arguments["code"]) is None:
        raise ToolInputInvalid(
            f"{arguments['code'][:100]!r} is no code of a rule; copy one from get_diagnostics, "
            "such as F401."
        )


async def _plan_fix(
    context: ToolContext, path: str, code: str, line: int | None, unsafe: bool
) -> Plan:
    original = await _read(context, path)
    spot = original.spot
    fixes, without = await list_fixes(context.workspace.root, spot.path, original.text, code)
    here = [fix for fix in fixes if line is None or line in fix.lines]
    usable = [fix for fix in here if fix.is_safe or unsafe]
    if not usable:
        place = spot.path if line is None else f"{spot.path}:{line}"
        raise ToolError(_tell_none(code, place, len(here), without))
    text, count = apply_fixes(original.text, usable)
    times = "" if count == 1 else f" {count} times"
    return await plan_rewrite(original, text, f"Fixed {code}{times} in {spot.path}.")


def _tell_none(code: str, place: str, unsafe: int, without: int) -> str:
    if unsafe:
        return (
            f"The fixes for {code} in {place} may change what the program does; look at the code, "
            "then call again with unsafe=true, or edit it by hand."
        )
    if without:
        return f"There is no automatic fix for {code} in {place}; edit it by hand."
    return f"There is no {code} in {place}; see get_diagnostics for what there is."


async def _look_at_fix(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return to_look(await _plan_fix(context, **arguments))


@tool(
    effect="write",
    title=lambda arguments: f"Fix {arguments['code']} in {arguments['path']}",
    look=_look_at_fix,
    verify=_check_code,
)
async def apply_quick_fix(
    context: ToolContext,
    path: str,
    code: str,
    line: _AtLeastOne | None = None,
    unsafe: bool = False,
) -> ToolOutput:
    """Apply ruff's automatic fix for a finding of get_diagnostics.

    Args:
        context: The call.
        path: The file.
        code: Rule such as F401.
        line: Only the finding at this line; without it all of the rule.
        unsafe: Also fixes that may change behaviour.
    """
    return await carry_out(context, await _plan_fix(context, path, code, line, unsafe))

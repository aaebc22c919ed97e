"""Formatting, sorting imports and quick fixes through ruff (A5.T8)."""

import posixpath
import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.rewriting import Rewritten, look_at, read_utf8, write
from towline_agent.tools.code.checkers import PYTHON_SUFFIXES, list_fixes, rewrite_text
from towline_agent.tools.code.fixes import apply_fixes
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, ToolContext, ToolOutput

__all__ = ["apply_quick_fix", "format_file", "organize_imports"]

_CODE: Final = re.compile(r"[A-Z]{1,8}[0-9]{1,5}")
_AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


def _subject(arguments: dict[str, Any]) -> str:
    return posixpath.normpath(arguments["path"])


async def _read(context: ToolContext, path: str) -> tuple[bytes, str]:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix not in PYTHON_SUFFIXES:
        raise ToolError(
            f"Only Python files can be rewritten here, not {suffix or path!r}; run the project's "
            "own formatter or linter with run_program."
        )
    return await read_utf8(context, path)


def _encode(before: bytes, text: str) -> bytes:
    """The text as the file's bytes, with the mark that it began with."""
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    return mark + text.encode()


async def _rewritten(context: ToolContext, path: str, *command: str) -> Rewritten:
    before, text = await _read(context, path)
    after = await rewrite_text(context.workspace.root, path, text, *command)
    return Rewritten(_subject({"path": path}), before, _encode(before, after))


async def _formatted(context: ToolContext, arguments: dict[str, Any]) -> Rewritten:
    return await _rewritten(context, arguments["path"], "format")


async def _look_at_format(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return look_at(await _formatted(context, arguments))


@tool(
    effect="write",
    idempotent=True,
    title=lambda arguments: f"Format {arguments['path']}",
    subject=_subject,
    look=_look_at_format,
)
async def format_file(context: ToolContext, path: str) -> ToolOutput | str:
    """Format a Python file with ruff, by the project's settings.

    Args:
        context: The call.
        path: The file.
    """
    new = await _formatted(context, {"path": path})
    if new.before == new.after:
        return f"{new.path} is formatted already; nothing changed."
    return await write(context, new, f"Formatted {new.path}")


async def _organized(context: ToolContext, arguments: dict[str, Any]) -> Rewritten:
    return await _rewritten(context, arguments["path"], *_fix_only("I"))


def _fix_only(code: str) -> tuple[str, ...]:
    return ("check", "--fix-only", "--exit-zero", f"--select={code}")


async def _look_at_imports(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return look_at(await _organized(context, arguments))


@tool(
    effect="write",
    idempotent=True,
    title=lambda arguments: f"Organize imports of {arguments['path']}",
    subject=_subject,
    look=_look_at_imports,
)
async def organize_imports(context: ToolContext, path: str) -> ToolOutput | str:
    """Sort the imports of a Python file with ruff.

    Args:
        context: The call.
        path: The file.
    """
    new = await _organized(context, {"path": path})
    if new.before == new.after:
        return f"The imports of {new.path} are in order already; nothing changed."
    return await write(context, new, f"Organized the imports of {new.path}")


def _check_code(arguments: dict[str, Any]) -> None:
    if _CODE.fullmatch(arguments["code"]) is None:
        raise ToolInputInvalid(
            f"{arguments['code'][:100]!r} is no code of a rule; copy one from get_diagnostics, "
            "such as F401."
        )


async def _fixed(context: ToolContext, arguments: dict[str, Any]) -> tuple[Rewritten, int]:
    """The file with its fixes and how many they are."""
    path, code, line = arguments["path"], arguments["code"], arguments.get("line")
    unsafe = bool(arguments.get("unsafe"))
    before, text = await _read(context, path)
    fixes, without = await list_fixes(context.workspace.root, path, text, code)
    here = [fix for fix in fixes if line is None or line in fix.lines]
    usable = [fix for fix in here if fix.is_safe or unsafe]
    if not usable:
        raise ToolError(_tell_none(arguments, len(here), without))
    after, count = apply_fixes(text, usable)
    return Rewritten(_subject(arguments), before, _encode(before, after)), count


def _tell_none(arguments: dict[str, Any], unsafe: int, without: int) -> str:
    code, path, line = arguments["code"], arguments["path"], arguments.get("line")
    place = path if line is None else f"{path}:{line}"
    if unsafe:
        return (
            f"The fixes for {code} in {place} may change what the program does; look at the code, "
            "then call again with unsafe=true, or edit it by hand."
        )
    if without:
        return f"There is no automatic fix for {code} in {place}; edit it by hand."
    return f"There is no {code} in {place}; see get_diagnostics for what there is."


async def _look_at_fix(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return look_at((await _fixed(context, arguments))[0])


@tool(
    effect="write",
    title=lambda arguments: f"Fix {arguments['code']} in {arguments['path']}",
    subject=_subject,
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
    arguments = {"path": path, "code": code, "line": line, "unsafe": unsafe}
    new, count = await _fixed(context, arguments)
    times = "" if count == 1 else f" {count} times"
    return await write(context, new, f"Fixed {code}{times} in {new.path}")

"""Asking ruff and ty what they find, and ruff to rewrite a text: they never write themselves."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from towline_agent.errors import ToolError
from towline_agent.tools.code.child import OUTPUT_BYTES, ChildEnd, run_child
from towline_agent.tools.code.findings import (
    PYTHON_CHECK,
    Finding,
    check_syntax,
    read_ruff,
    read_syntax,
    read_ty,
)
from towline_agent.tools.code.fixes import Fix, read_fixes
from towline_agent.workspaces.threads import FILES

__all__ = [
    "CHECK_BYTES",
    "PYTHON_SUFFIXES",
    "Checked",
    "check_project",
    "check_text",
    "check_types",
    "find_checker",
    "list_fixes",
    "rewrite_text",
]

CHECK_BYTES: Final = 2**20
"""Bytes of a text that is checked."""
PYTHON_SUFFIXES: Final = frozenset({".py", ".pyi"})
"""Files that ruff and ty read."""

_TEXT_S: Final = 20.0
_PROJECT_S: Final = 60.0
_TYPES_S: Final = 45.0
_CHECK: Final = (
    "check",
    "--no-cache",  # a check leaves nothing behind
    "--no-fix",  # whatever the project's settings say
    "--exit-zero",
    "--quiet",
    "--output-format=json-lines",
)
_CUT: Final = "ruff found more than is counted here; narrow with path."
_REASON_CHARS: Final = 400
_RUFF_NEEDED: Final = (
    "ruff is not installed, and this needs it; install towline-agent[coding], or put ruff on the "
    "path."
)


class Checked(NamedTuple):
    """What checkers said."""

    findings: tuple[Finding, ...]
    """All of it."""
    by: tuple[str, ...]
    """Who looked: `ruff`, `ty`, or `syntax` for the standard library alone."""
    notes: tuple[str, ...] = ()
    """What went wrong with a checker, for the model."""


async def find_checker(name: str) -> str | None:
    """The path of a checker's program: its wheel's, else the one on the path."""
    return await FILES.run(lambda: _find(name))


def _find(name: str) -> str | None:
    """By where things are installed, not by importing: nothing of a project's may run for it."""
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        path = Path(folder, name)
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which(name)
    return found if found is not None and Path(found).is_absolute() else None


async def check_text(root: str, path: str, text: str) -> Checked:
    """What is wrong with a text as the content of a file, whatever the file holds now.

    Args:
        root: The workspace's folder; a project's settings are looked up there if it is on disk.
        path: The file, relative to it.
        text: What is checked.
    """
    if PurePosixPath(path).suffix.lower() not in PYTHON_SUFFIXES:
        found = await FILES.run(lambda: check_syntax(path, text))
        return Checked((), ()) if found is None else Checked(found, ("syntax",))
    ruff = await find_checker("ruff")
    if ruff is None:
        return await _check_python(path, text, ())
    cwd, name = await _place(root, path)
    argv = (ruff, *_CHECK, f"--stdin-filename={name}", "-")
    end = await _run(argv, text.encode("utf-8", "replace"), cwd, _TEXT_S)
    if end.code != 0:
        return await _check_python(path, text, (_tell_failure("ruff", end),))
    return Checked(read_ruff(end.output, path), ("ruff",))


async def _check_python(path: str, text: str, notes: tuple[str, ...]) -> Checked:
    argv = (sys.executable, "-I", "-W", "ignore", "-c", PYTHON_CHECK)
    end = await _run(argv, text.encode("utf-8", "replace"), None, _TEXT_S)
    return Checked(read_syntax(path, end.output), ("syntax",), notes)


async def check_types(root: str, path: str) -> Checked:
    """What ty says of a file or folder on disk; nothing where ty is not installed.

    Args:
        root: The workspace's folder.
        path: The file or folder, relative to it.
    """
    ty = await find_checker("ty")
    if ty is None or not await FILES.run(lambda: Path(root, path).exists()):
        return Checked((), ())
    real = await FILES.run(lambda: str(Path(root).resolve()))
    argv = (ty, "check", "--output-format=gitlab", "--exit-zero", "--no-progress", "--", path)
    end = await _run(argv, b"", real, _TYPES_S)
    if end.code != 0:
        return Checked((), (), (_tell_failure("ty", end),))
    return Checked(_inside(read_ty(end.output), real), ("ty",))


async def check_project(root: str, path: str) -> Checked:
    """What ruff says of all files of a folder on disk that its settings and `.gitignore` leave in.

    Args:
        root: The workspace's folder, on disk.
        path: The folder, relative to it.
    """
    ruff = await find_checker("ruff")
    if ruff is None:
        return Checked((), ())
    real = await FILES.run(lambda: str(Path(root).resolve()))
    end = await _run((ruff, *_CHECK, "--force-exclude", "--", path), b"", real, _PROJECT_S)
    if end.code != 0:
        return Checked((), (), (_tell_failure("ruff", end),))
    notes = (_CUT,) if len(end.output) >= OUTPUT_BYTES else ()
    return Checked(_inside(read_ruff(end.output), real), ("ruff",), notes)


async def rewrite_text(root: str, path: str, text: str, *command: str) -> str:
    """The text as ruff would have it; nothing is written.

    Args:
        root: The workspace's folder.
        path: The file, relative to it.
        text: Its text.
        command: `format`, or `check` with what to fix.

    Raises:
        ToolError: ruff is missing, or refuses the text.
    """
    end = await _pipe(root, path, text, (*command, "--no-cache"))
    return end.output.decode("utf-8", "replace")


async def list_fixes(root: str, path: str, text: str, code: str) -> tuple[tuple[Fix, ...], int]:
    """The fixes that ruff has for one rule in a text, and how many findings of it have none.

    Args:
        root: The workspace's folder.
        path: The file, relative to it.
        text: Its text.
        code: The rule.

    Raises:
        ToolError: ruff is missing, or knows no such rule.
    """
    command = (*_CHECK, f"--select={code}", "--unsafe-fixes")
    return read_fixes((await _pipe(root, path, text, command)).output)


async def _pipe(root: str, path: str, text: str, command: tuple[str, ...]) -> ChildEnd:
    ruff = await find_checker("ruff")
    if ruff is None:
        raise ToolError(_RUFF_NEEDED)
    cwd, name = await _place(root, path)
    argv = (ruff, *command, f"--stdin-filename={name}", "-")
    end = await _run(argv, text.encode("utf-8", "replace"), cwd, _TEXT_S)
    if end.code != 0:
        raise ToolError(_tell_failure("ruff", end))
    return end


async def _run(argv: tuple[str, ...], stdin: bytes, cwd: str | None, limit_s: float) -> ChildEnd:
    try:
        return await run_child(argv, stdin=stdin, cwd=cwd, timeout_s=limit_s)
    except OSError as error:
        name = PurePosixPath(argv[0]).name
        return ChildEnd(127, b"", f"{name} can't be started: {error.strerror}")


async def _place(root: str, path: str) -> tuple[str | None, str]:
    """Where ruff runs and what it is told the file is; outside every project if not on disk."""
    real = await FILES.run(lambda: str(Path(root).resolve()) if Path(root).is_dir() else None)
    return real, path if real else PurePosixPath(path).name


def _inside(findings: tuple[Finding, ...], root: str) -> tuple[Finding, ...]:
    """With paths relative to the root; those of files elsewhere are left out."""
    found: list[Finding] = []
    for finding in findings:
        path = os.path.relpath(os.path.join(root, finding.path), root)  # noqa: PTH118 - as text
        if not path.startswith(".."):
            found.append(finding._replace(path=path))
    return tuple(found)


def _tell_failure(name: str, end: ChildEnd) -> str:
    """Its own words without what they quote: that may be pieces of other files."""
    if end.code is None:
        return f"{name} did not end in time; check one file at a time."
    lines = [line.strip() for line in end.error.splitlines()]
    words = next((line for line in lines if line), "it gives no reason")
    causes = [line.removeprefix("Cause: ") for line in lines if line.startswith("Cause: ")]
    told = "; ".join(causes or [words.removeprefix("error: ")])[:_REASON_CHARS].rstrip(".")
    return f"{name} can't do this: {told}. Mend that, or the project's settings of {name}."

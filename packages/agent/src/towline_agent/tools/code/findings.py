"""Findings of checkers: read, compared and told."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec

from towline_agent.tools.code.ruff_output import read_rows

__all__ = [
    "PYTHON_CHECK",
    "Finding",
    "check_syntax",
    "new_findings",
    "read_ruff",
    "read_syntax",
    "read_ty",
    "show_counts",
    "show_finding",
]

PYTHON_CHECK: Final = """
import ast, json, sys
try:
    ast.parse(sys.stdin.buffer.read())
except SyntaxError as error:
    print(json.dumps([error.lineno or 1, error.offset or 1, error.msg]))
except (ValueError, RecursionError, MemoryError) as error:
    print(json.dumps([1, 1, str(error) or "nested too deeply to be read"]))
"""
"""What Python itself says of a text on its standard input, in a process of its own: odd texts have
brought parsers down."""

_MESSAGE_CHARS: Final = 300
_BROKEN: Final = "invalid-syntax"
_TY_ERRORS: Final = frozenset({"major", "critical", "blocker"})
_NEAR_LINES: Final = 1
_COMMENT: Final = re.compile(r"^\s*(?://|/\*)", re.MULTILINE)
_ERROR_CODES: Final = re.compile(r"invalid-syntax|E9\d\d|F(?:50\d|52\d|63[134]|7\d\d|82\d)")
"""What of ruff's codes breaks a program; the rest is about its form."""


class Finding(NamedTuple):
    """One thing that a checker says."""

    path: str
    """The file, relative to the root."""
    line: int
    """From 1."""
    column: int
    """From 1."""
    code: str
    """The rule's code, such as `F401`."""
    message: str
    """What it says, in one line."""
    severity: str
    """`error` for what breaks the program, else `warning`."""
    fixable: bool = False
    """Whether `apply_quick_fix` can mend it."""


def read_ruff(output: bytes, place: str | None = None) -> tuple[Finding, ...]:
    """What `ruff check --output-format json-lines` wrote; a line cut off at the end is left out.

    Args:
        output: Its standard output.
        place: The path of all, for a text that was piped; `None` for what ruff says.
    """
    return tuple(
        Finding(
            path=place or row.filename,
            line=row.location.row,
            column=row.location.column,
            code=row.code or _BROKEN,
            message=_one_line(row.message),
            severity="error" if _ERROR_CODES.match(row.code or _BROKEN) else "warning",
            fixable=row.fix is not None and row.fix.applicability == "safe",
        )
        for row in read_rows(output)
    )


class _TyBegin(msgspec.Struct):
    line: int = 1
    column: int = 1


class _TyPositions(msgspec.Struct):
    begin: _TyBegin


class _TyLocation(msgspec.Struct):
    path: str
    positions: _TyPositions


class _TyRow(msgspec.Struct):
    location: _TyLocation
    check_name: str = "type"
    description: str = ""
    severity: str = ""


def read_ty(output: bytes) -> tuple[Finding, ...]:
    """What `ty check --output-format gitlab` wrote; nothing when it is not whole."""
    try:
        rows = msgspec.json.decode(output, type=list[_TyRow])
    except msgspec.DecodeError:
        return ()
    return tuple(
        Finding(
            path=row.location.path,
            line=row.location.positions.begin.line,
            column=row.location.positions.begin.column,
            code=row.check_name,
            message=_one_line(row.description.removeprefix(f"{row.check_name}: ")),
            severity="error" if row.severity in _TY_ERRORS else "warning",
        )
        for row in rows
    )


def check_syntax(path: str, text: str) -> tuple[Finding, ...] | None:
    """The first error of syntax of a data file; `None` for a kind of file it can't read.

    It reads JSON and TOML, and YAML where PyYAML is installed. JSON with comments is left alone.
    """
    suffix = PurePosixPath(path).suffix.lower()
    try:
        if suffix == ".json":
            json.loads(text)
        elif suffix == ".toml":
            tomllib.loads(text)
        elif suffix in (".yaml", ".yml"):
            return _check_yaml(path, text)
        else:
            return None
    except json.JSONDecodeError as error:
        if _COMMENT.search(text):
            return None
        return (_broken(path, error.lineno, error.colno, error.msg),)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(found[1]), int(found[2])) if found else (text.count("\n") + 1, 1)
        return (_broken(path, line, column, str(error).partition(" (at ")[0]),)
    except (ValueError, RecursionError) as error:
        words = "It is nested too deeply to be read." if isinstance(error, RecursionError) else ""
        return (_broken(path, 1, 1, words or str(error)),)
    return ()


def _check_yaml(path: str, text: str) -> tuple[Finding, ...] | None:
    """Reads the events alone: nothing that the text names is made."""
    try:
        yaml: Any = import_module("yaml")
    except ImportError:
        return None
    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return (_broken(path, line, column, str(getattr(error, "problem", None) or error)),)
    return ()


def read_syntax(path: str, output: bytes) -> tuple[Finding, ...]:
    """What `PYTHON_CHECK` wrote: a line, a column and a message, or nothing."""
    try:
        line, column, message = msgspec.json.decode(output, type=tuple[int, int, str])
    except msgspec.DecodeError:
        return ()
    return (_broken(path, line, column, message),)


def _broken(path: str, line: int, column: int, message: str) -> Finding:
    return Finding(path, line, column, _BROKEN, _one_line(message), "error")


def new_findings(
    before: Sequence[Finding], text_before: str, after: Sequence[Finding], text_after: str
) -> tuple[Finding, ...]:
    """What an edit added: findings are the same by code, message and the lines round them.

    So what only moved to another line is not new. A finding whose own line was edited is new only
    where there are now more of its code and message than before. Of a text that could not be read
    before, errors alone count: its warnings may be old.
    """
    if any(finding.code == _BROKEN for finding in before):  # so nothing else was found then
        after = [finding for finding in after if finding.severity == "error"]
    old_lines, new_lines = text_before.splitlines(), text_after.splitlines()
    known = Counter(_near(finding, old_lines) for finding in before)
    left: list[Finding] = []
    for finding in after:
        key = _near(finding, new_lines)
        if known[key]:
            known[key] -= 1
        else:
            left.append(finding)
    loose = Counter[tuple[str, str]]()
    for (code, message, _), count in known.items():
        loose[code, message] += count
    new: list[Finding] = []
    for finding in left:
        key = (finding.code, finding.message)
        if loose[key]:
            loose[key] -= 1
        else:
            new.append(finding)
    return tuple(new)


def _near(finding: Finding, lines: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    at = finding.line - 1
    near = lines[max(0, at - _NEAR_LINES) : at + _NEAR_LINES + 1]
    return finding.code, finding.message, tuple(line.strip() for line in near)


def show_finding(finding: Finding, *, with_path: bool = True) -> str:
    """A finding in one line, such as `a.py:3:1 error F821 Undefined name 'x'`."""
    place = f"{finding.path}:" if with_path else ""
    fix = " [fixable]" if finding.fixable else ""
    return (
        f"{place}{finding.line}:{finding.column} {finding.severity} {finding.code} "
        f"{finding.message}{fix}"
    )


def show_counts(findings: Iterable[Finding]) -> str:
    """How many there are, such as `2 errors, 1 warning (F401 2, I001 1)`."""
    found = list(findings)
    kinds = Counter(finding.severity for finding in found)
    parts = [
        f"{count} {kind}{'' if count == 1 else 's'}"
        for kind in ("error", "warning")
        if (count := kinds[kind])
    ]
    codes = Counter(finding.code for finding in found).most_common(8)
    words = ", ".join(f"{code} {count}" for code, count in codes)
    return f"{', '.join(parts)} ({words})" if parts else "no findings"


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MESSAGE_CHARS else f"{words[:_MESSAGE_CHARS]}…"

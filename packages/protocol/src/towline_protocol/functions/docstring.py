"""What a Google docstring says of a function and of its parameters (A4.57)."""

import inspect
import re
from typing import Final

import msgspec

__all__ = ["Docstring", "parse_docstring"]

_SECTION: Final = (
    r"(Args|Arguments|Parameters|Returns?|Raises|Yields?|Examples?|Notes?|Attributes|Warnings?"
    r"|See Also):"
)
_PARAMETER_SECTIONS: Final = frozenset({"Args", "Arguments", "Parameters"})
_PARAMETER: Final = r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)"


class Docstring(msgspec.Struct, frozen=True):
    """A docstring's parts that a model is told."""

    summary: str
    """All before the first section."""
    parameters: dict[str, str]
    """What is said of each parameter, on one line."""


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart; what it lacks is empty."""
    summary: list[str] = []
    arguments: list[str] = []
    into: list[str] | None = summary
    for line in inspect.cleandoc(text or "").splitlines():
        section = re.fullmatch(_SECTION, line.rstrip())
        if section is not None:
            into = arguments if section[1] in _PARAMETER_SECTIONS else None
        elif into is not None:
            into.append(line)
    return Docstring("\n".join(summary).strip(), _parameters(arguments))


def _parameters(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    name = ""
    depth = min((_indent(line) for line in lines if line.strip()), default=0)
    for line in lines:
        start = re.fullmatch(_PARAMETER, line.strip()) if _indent(line) == depth else None
        if start is not None:
            name = start[1]
            found[name] = [start[2]]
        elif name and line.strip():
            found[name].append(line.strip())
    return {name: " ".join(words).strip() for name, words in found.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

"""A function's parameters as JSON Schema, and JSON as its arguments (A4.57)."""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.tool import ToolContext
from towline_protocol import Signature, read_signature

__all__ = ["Parameters", "describe_schema", "misfit", "read_parameters"]

_OUTLINE_CHARS: Final = 500
"""Of what a tool expects, told to a model whose call did not fit."""

_OUTLINE_DEPTH: Final = 3
"""Types within types that are told: a list, what it holds, and the fields of that."""


_OUTLINE_WORDS: Final = 40
"""Alternatives of one type that are told."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes."""

    schema: dict[str, Any]
    """JSON Schema of the arguments, an object that allows nothing else."""
    summary: str
    """The docstring's words before its sections."""
    takes_context: bool
    """Whether its first parameter is the `ToolContext`, which the model is not told of."""
    check: Callable[[str], dict[str, Any]]
    """JSON text to arguments by name, of the annotated types, defaults filled in."""


def read_parameters(function: Callable[..., Any], tool: str) -> Parameters:
    """Read a function's signature and docstring.

    Args:
        function: The function. Its first parameter may be annotated `ToolContext`.
        tool: The tool's name, for messages.

    Raises:
        UsageError: A parameter can't be told to a model.
    """
    signature = read_signature(function, tool, context=ToolContext)
    return Parameters(
        schema=signature.schema,
        summary=signature.summary,
        takes_context=signature.takes_context,
        check=_checker(signature, tool),
    )


def misfit(tool: str, problem: str, schema: dict[str, Any]) -> ToolInputInvalid:
    """The error for arguments that do not fit: what came, and what was expected (A4.17)."""
    return ToolInputInvalid(
        f"The arguments of {tool} do not fit: {problem.rstrip('.')}. "
        f"Expected: {describe_schema(schema)}."
    )


def describe_schema(schema: dict[str, Any]) -> str:
    """A schema in one line, such as `{path: string, start?: integer}`."""
    text = _describe_fields(schema, schema.get("$defs", {}), 0)
    return text if len(text) <= _OUTLINE_CHARS else f"{text[:_OUTLINE_CHARS]}…"


def _describe_fields(schema: dict[str, Any], known: dict[str, Any], depth: int) -> str:
    required = schema.get("required", [])
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    text = ""
    for name, kind in properties.items():
        mark = "" if name in required else "?"
        text += f"{', ' if text else ''}{name}{mark}: {_describe_type(kind, known, depth)}"
        if len(text) > _OUTLINE_CHARS:  # more would be cut off: types may hold one another
            break
    return f"{{{text}}}"


def _describe_type(kind: Any, known: dict[str, Any], depth: int) -> str:
    if not isinstance(kind, dict):
        return "any"
    kind = _follow(cast("dict[str, Any]", kind), known)
    if "enum" in kind:
        return " | ".join(repr(value) for value in kind["enum"][:_OUTLINE_WORDS])
    words: Any = kind.get("type", "any")
    if depth < _OUTLINE_DEPTH:
        depth += 1
        if "anyOf" in kind:
            options = kind["anyOf"][:_OUTLINE_WORDS]
            return " | ".join(_describe_type(option, known, depth) for option in options)
        if words == "array" and "items" in kind:
            return f"array of {_describe_type(kind['items'], known, depth)}"
        if words == "object" and kind.get("properties"):
            return _describe_fields(kind, known, depth)
    return " | ".join(cast("list[str]", words)) if isinstance(words, list) else str(words)


def _follow(kind: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """A type that stands elsewhere, from there; one that is not found is any object."""
    if "$ref" not in kind:
        return kind
    name = str(kind["$ref"]).rpartition("/")[2]
    return cast("dict[str, Any]", known.get(name, {"type": "object"}))


def _checker(signature: Signature, tool: str) -> Callable[[str], dict[str, Any]]:
    # JSON is read by whoever makes a tool, not by all who import the library.
    from towline_agent.tools.arguments import parse_arguments

    def check(text: str) -> dict[str, Any]:
        raw = parse_arguments(text)
        try:
            return signature.fill(raw)
        except msgspec.ValidationError as error:
            raise misfit(tool, str(error), signature.schema) from error

    return check

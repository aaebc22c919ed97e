"""Small looks into JSON that a peer wrote, who may put anything anywhere (A2.24)."""

import json
from typing import Any, Final, cast

import msgspec

__all__ = [
    "UNREADABLE",
    "as_list",
    "as_object",
    "as_objects",
    "as_text",
    "holds_object",
    "to_text",
]

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are no JSON, that hold half a character, that have a field of
a wrong type, or that are nested beyond all reason."""


def as_text(value: Any) -> str:
    """The value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of the value if it is a list, else none; what else is in it is left out."""
    return [cast("dict[str, Any]", item) for item in as_list(value) if isinstance(item, dict)]


def holds_object(text: str) -> bool:
    """Whether a text is one whole JSON object, as a call's arguments must be."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def to_text(value: Any) -> str:
    """A value as compact JSON; empty where it cannot be written down again (A1.24).

    That is so for what nests deeper than the stack is high.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):
        return ""

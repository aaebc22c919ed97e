"""JSON values of a vendor that are kept and sent back as they came."""

import json
from typing import Any, Final, cast

from towline_agent.providers.surrogates import mend_all

__all__ = ["is_shallow", "read_object"]

_MAX_DEPTH: Final = 100
"""Levels of lists and objects in each other; real blocks have six. What is deeper could not be
written down again everywhere, since each level takes a frame of the stack."""


def is_shallow(value: Any) -> bool:
    """Whether a value may be kept: it is not nested beyond all reason."""
    layer = [value]
    for _ in range(_MAX_DEPTH):
        layer = [child for item in layer for child in _children(item)]
        if not layer:
            return True
    return False


def read_object(text: str) -> dict[str, Any] | None:
    """The object that a text holds; `None` when it holds none that may be kept."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not is_shallow(value):
        return None
    return cast("dict[str, Any]", mend_all(value))


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []

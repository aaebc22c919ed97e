"""The JSON text of a call's arguments, read strictly (A4.13)."""

import json
import math
from typing import Any, Final, NoReturn, cast

import msgspec

from towline_agent.errors import ToolInputInvalid

__all__ = ["NESTING_MAX", "parse_arguments"]

NESTING_MAX: Final = 100
"""Levels of lists and objects; no tool needs more, and recursion stays far from its end."""

_AROUND: Final = 20
"""Characters shown on each side of the place where the text breaks."""
_SHORT: Final = 200
"""Characters up to which reading twice is faster than reading closely once; too few for endless
nesting."""
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])


class _Refused(ValueError):
    """JSON that Python reads and we don't."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments as an object.

    Text that stays empty, and `null`, mean no arguments: that is how some providers send a call of
    a tool without parameters (R19).

    Raises:
        ToolInputInvalid: It is no JSON object, has text after its end, a key twice, a number that
            JSON has not, half a character, or too many levels. Nothing is guessed or mended (R17).
    """
    if len(text) <= _SHORT:
        plain = _read_plain(text)
        if plain is not None:
            return plain
    if not text.strip():
        return {}
    try:
        value: Any = _DECODER.decode(text)
        if "\\u" in text or text.count("{") + text.count("[") > NESTING_MAX:
            _check_leaves(value)
        else:
            _check_text(text)  # only an escape could bring in what the text itself has not
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - _AROUND) : error.pos + _AROUND]
        raise _invalid(f"{error.msg} at character {error.pos}, near {near!r}") from error
    except _Refused as error:
        raise _invalid(str(error)) from error
    except (RecursionError, ValueError) as error:  # too deep; a number of thousands of digits
        raise _invalid("it is nested too deeply or holds a number that is too long") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(f"a JSON object is expected, {_kind(value)} came")
    return cast("dict[str, Any]", value)


def _read_plain(text: str) -> dict[str, Any] | None:
    """The arguments as nearly all come; `None` for what wants a closer look.

    What comes out again just as it went in, but for spaces, has lost nothing: no key stood there
    twice, no number and no escape was read as another one.
    """
    try:
        value = _OBJECT.decode(text)
        again = msgspec.json.encode(value).decode()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return value if again.replace(" ", "") == text.replace(" ", "") else None


def _invalid(problem: str) -> ToolInputInvalid:
    return ToolInputInvalid(
        f"The arguments are not valid: {problem}. Send one JSON object with the tool's parameters."
    )


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "a number"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Refused(f"the key {key!r} stands there twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"the number {text[:_AROUND]} is too large")
    return value


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
)


def _check_leaves(value: object) -> None:
    """Refuse halves of a character, which nothing could store or send, and endless depth."""
    level: list[Any] = [value]
    for _ in range(NESTING_MAX):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                known = cast("dict[str, Any]", item)
                deeper += (*known.keys(), *known.values())
            elif isinstance(item, list):
                deeper += cast("list[Any]", item)
        if not deeper:
            return
        level = deeper
    raise _Refused(f"it is nested in more than {NESTING_MAX} levels")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _Refused(f"{text[error.start]!r} is half of a character") from error

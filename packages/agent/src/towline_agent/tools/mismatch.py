"""Values against a hand-written JSON Schema: the part of the standard that tools use (A4.16)."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from towline_protocol import UsageError

__all__ = ["CHECKS_MAX", "find_mismatch", "read_schema"]

CHECKS_MAX: Final = 200_000
"""Parts of a value held against a schema, more than one answer can have; forms within forms are
tried again for each form above them, which without a bound never ends."""

_Check = Callable[["_Place", Any], Iterator[str]]


class _Place:
    """Where in a value and in its schema the check stands."""

    def __init__(
        self, step: str, schema: dict[str, Any], work: "_Work", above: "_Place | None" = None
    ) -> None:
        self.step = step
        self.schema = schema
        self.work = work
        self.above = above

    @property
    def path(self) -> str:
        """Put together when it is told: a name in it may be long, and the places below it many."""
        steps: list[str] = []
        place: _Place | None = self
        while place is not None:
            steps.append(place.step)
            place = place.above
        return "".join(reversed(steps))

    def into(self, step: str, schema: Any) -> "_Place":
        known = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        return _Place(step, known, self.work, self)


class _Work:
    """One check: the whole schema, and how much may still be looked at."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.left = CHECKS_MAX


class _TooMuch(Exception):
    """A check goes beyond its bound."""


def read_schema(schema: dict[str, Any] | str, tool: str) -> dict[str, Any]:
    """A tool's schema out of a dict or JSON text, ready for a provider.

    Raises:
        UsageError: It is no schema of an object, or points at a definition it does not have.
    """
    try:
        value: Any = json.loads(schema) if isinstance(schema, str) else schema
    except ValueError as error:
        raise UsageError(f"The schema of tool {tool!r} is no JSON ({error}).") from error
    if not isinstance(value, dict):
        raise UsageError(f"The schema of tool {tool!r} must be a JSON object.")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"The schema of tool {tool!r} holds what JSON can't ({error}); write it in plain "
            "values."
        ) from error
    known = dict(cast("dict[str, Any]", value))
    if known.setdefault("type", "object") != "object":
        raise UsageError(
            f"The schema of tool {tool!r} is of type {known['type']!r}; arguments are an object, "
            "so write `type: object`."
        )
    known.setdefault("properties", {})
    _check_schema(known, known, tool)
    return known


def find_mismatch(schema: dict[str, Any], value: object) -> str | None:
    """What of a value does not fit, as a clause; `None` when all does.

    Checked are types, `enum`, `const`, properties, items, bounds, `anyOf`, `oneOf`, `allOf` and
    local `$ref`; all else, such as `pattern` and `format`, is left to the tool. What needs more
    than `CHECKS_MAX` steps does not fit.
    """
    try:
        return next(_mismatches(_Place("$", schema, _Work(schema)), value), None)
    except _TooMuch:
        return "it has too many parts, or too many levels of forms within forms; send less"


def _check_schema(node: Any, root: dict[str, Any], tool: str) -> None:
    """Refuse a schema that `find_mismatch` could not read."""
    if not isinstance(node, dict):
        return
    known = cast("dict[str, Any]", node)
    for keyword, fits in _SHAPES.items():
        if keyword in known and not fits(known[keyword]):
            raise UsageError(
                f"The schema of tool {tool!r} has {keyword}: {known[keyword]!r}, which is no JSON "
                "Schema; correct it."
            )
    if "$ref" in known and _resolve(known["$ref"], root) is None:
        raise UsageError(
            f"The schema of tool {tool!r} refers to {known['$ref']!r}, which is not in it; use "
            "`#/$defs/NAME`."
        )
    for inner in _inner_schemas(known):
        _check_schema(inner, root, tool)


def _inner_schemas(schema: dict[str, Any]) -> Iterator[Any]:
    for keyword in ("properties", "$defs", "definitions"):
        yield from schema.get(keyword, {}).values()
    for keyword in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(keyword, [])
    for keyword in ("items", "additionalProperties"):
        yield schema.get(keyword)


def _resolve(pointer: str, root: dict[str, Any]) -> dict[str, Any] | None:
    node: Any = root
    if not pointer.startswith("#"):
        return None
    for part in pointer[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            return None
        node = cast("dict[str, Any]", node)[name]
    return cast("dict[str, Any]", node) if isinstance(node, dict) else None


def _mismatches(place: _Place, value: Any) -> Iterator[str]:
    place.work.left -= 1
    if place.work.left < 0:
        raise _TooMuch
    for keyword, check in _CHECKS.items():
        if keyword in place.schema:
            yield from check(place, value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _is_type(value: object) -> bool:
    names = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _is_names(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(name, str) for name in cast("list[Any]", value))


_SHAPES: Final[dict[str, Callable[[Any], bool]]] = {
    "$ref": lambda value: isinstance(value, str),
    "type": _is_type,
    "required": _is_names,
    **dict.fromkeys(("properties", "$defs", "definitions"), _TYPES["object"]),
    **dict.fromkeys(("enum", "anyOf", "oneOf", "allOf"), _TYPES["array"]),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_number),
}
"""What a keyword's own value must be."""


def _name_type(value: object) -> str:
    return next(name for name, fits in _TYPES.items() if fits(value))


def _check_type(place: _Place, value: Any) -> Iterator[str]:
    kind: Any = place.schema["type"]
    names: list[Any] = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    if not any(_TYPES[name](value) for name in names):
        wanted = " or ".join(names)
        yield f"expected {wanted}, got {_name_type(value)} at `{place.path}`"


def _check_enum(place: _Place, value: Any) -> Iterator[str]:
    allowed: list[Any] = place.schema["enum"]
    if not any(_same(value, one) for one in allowed):
        yield f"expected one of {allowed!r}, got {value!r} at `{place.path}`"


def _check_const(place: _Place, value: Any) -> Iterator[str]:
    if not _same(value, place.schema["const"]):
        yield f"expected {place.schema['const']!r}, got {value!r} at `{place.path}`"


def _same(left: object, right: object) -> bool:
    """Equal as JSON, where `true` is not 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _check_required(place: _Place, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name in place.schema["required"]:
            if name not in value:
                yield f"{name!r} is missing at `{place.path}`"


def _check_properties(place: _Place, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        known: dict[str, Any] = place.schema["properties"]
        for name, item in cast("dict[str, Any]", value).items():
            if name in known:
                yield from _mismatches(place.into(f".{name}", known[name]), item)


def _check_additional(place: _Place, value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    extra: Any = place.schema["additionalProperties"]
    known: dict[str, Any] = place.schema.get("properties", {})
    for name, item in cast("dict[str, Any]", value).items():
        if name in known:
            continue
        if extra is False:
            yield f"{name!r} is not expected at `{place.path}`"
        yield from _mismatches(place.into(f".{name}", extra), item)


def _check_items(place: _Place, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _mismatches(place.into(f"[{number}]", place.schema["items"]), item)


def _check_all(place: _Place, value: Any) -> Iterator[str]:
    for option in place.schema["allOf"]:
        yield from _mismatches(place.into("", option), value)


def _check_any(place: _Place, value: Any) -> Iterator[str]:
    options: list[Any] = place.schema["anyOf"]
    firsts = [next(_mismatches(place.into("", option), value), None) for option in options]
    if firsts and None not in firsts:
        yield " or ".join(str(first) for first in firsts)


def _check_one(place: _Place, value: Any) -> Iterator[str]:
    options: list[Any] = place.schema["oneOf"]
    firsts = [next(_mismatches(place.into("", option), value), None) for option in options]
    fitting = firsts.count(None)
    if firsts and fitting == 0:
        yield " or ".join(str(first) for first in firsts)
    elif fitting > 1:
        yield f"it fits {fitting} of the forms of which it must be one at `{place.path}`"


def _check_reference(place: _Place, value: Any) -> Iterator[str]:
    yield from _mismatches(place.into("", _resolve(place.schema["$ref"], place.work.root)), value)


def _bound(keyword: str, words: str, measure: Callable[[Any], float | None]) -> _Check:
    """A check that `measure` keeps to a bound; `None` is not measured."""
    lower = "min" in keyword.lower()

    def check(place: _Place, value: Any) -> Iterator[str]:
        size, limit = measure(value), place.schema[keyword]
        if size is None:
            return
        beyond = size < limit if lower else size > limit
        if beyond or (size == limit and keyword.startswith("exclusive")):
            yield f"expected {words} {limit} at `{place.path}`"

    return check


def _size_of(kind: type) -> Callable[[Any], float | None]:
    return lambda value: len(value) if isinstance(value, kind) else None


def _number(value: Any) -> float | None:
    return value if _is_number(value) else None


_CHECKS: Final[dict[str, _Check]] = {
    "$ref": _check_reference,
    "type": _check_type,
    "enum": _check_enum,
    "const": _check_const,
    "required": _check_required,
    "properties": _check_properties,
    "additionalProperties": _check_additional,
    "items": _check_items,
    "allOf": _check_all,
    "anyOf": _check_any,
    "oneOf": _check_one,
    "minimum": _bound("minimum", "at least", _number),
    "maximum": _bound("maximum", "at most", _number),
    "exclusiveMinimum": _bound("exclusiveMinimum", "more than", _number),
    "exclusiveMaximum": _bound("exclusiveMaximum", "less than", _number),
    "minLength": _bound("minLength", "a length of at least", _size_of(str)),
    "maxLength": _bound("maxLength", "a length of at most", _size_of(str)),
    "minItems": _bound("minItems", "a count of at least", _size_of(list)),
    "maxItems": _bound("maxItems", "a count of at most", _size_of(list)),
}
"""What is checked, by keyword, in the order in which it is told."""

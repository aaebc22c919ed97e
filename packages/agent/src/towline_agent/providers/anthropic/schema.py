"""JSON Schemas as the API's structured output takes them."""

from typing import Any, Final, cast

__all__ = ["fit_schema"]

_Json = dict[str, Any]

_DROPPED: Final = frozenset(
    {
        "$schema",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "uniqueItems",
    }
)
"""What the API refuses in a schema. Whoever asked checks the answer against the whole schema."""
_MAPS: Final = frozenset({"properties", "$defs", "definitions"})
"""Keys whose values are schemas by names of the caller's own."""
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
"""Keys whose values are no schemas."""


class _OpenObject(Exception):
    """An object may have any keys."""


def fit_schema(schema: _Json) -> _Json | None:
    """The schema without what the API refuses.

    `None` when it allows objects with keys that it does not name, which the API cannot.
    """
    try:
        return _fit_object(schema)
    except _OpenObject:
        return None


def _fit_object(schema: _Json) -> _Json:
    kept: _Json = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            kept[key] = {name: _fit(part) for name, part in cast("_Json", value).items()}
        elif key not in _DROPPED:
            new_key = "anyOf" if key == "oneOf" else key
            kept[new_key] = value if key in _VALUES else _fit(value)
    if kept.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed and (schema.get("additionalProperties") or not schema.get("properties")):
            raise _OpenObject
        kept["additionalProperties"] = False
    return kept


def _fit(value: Any) -> Any:
    """A schema, a list of them, or any other value as it is."""
    if isinstance(value, dict):
        return _fit_object(cast("_Json", value))
    if isinstance(value, list):
        return [_fit(part) for part in cast("list[Any]", value)]
    return value

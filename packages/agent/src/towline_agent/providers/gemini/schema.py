"""JSON Schema as far as Gemini takes it (A2.45).

Gemini knows a part of OpenAPI 3.0 and refuses a whole request for one keyword that it does not
know. So only known keywords are kept, and what has another form there is put into it. What is lost
is not lost to us: arguments are checked against the full schema when the call is run.
"""

import json
from typing import Any, Final, cast

from towline_agent.providers.fragments import to_json

__all__ = ["fit_parameters", "fit_schema"]

_Json = dict[str, Any]

_WORDS: Final = ("title", "description")
_NUMBERS: Final = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_FORMATS: Final = {
    "string": ("date-time",),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}
"""What is kept, by the type that it belongs to."""
_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object")
_MAX_DEPTH: Final = 24
"""Levels of a schema; what lies deeper may be anything."""
_MAX_NODES: Final = 2000
"""Schemas inside one schema; the rest may be anything. Real ones have some hundred, but references
to references can make millions."""


def fit_schema(schema: _Json) -> _Json:
    """A JSON Schema in Gemini's form."""
    return _Fitter(schema).fit(schema, 0)


def fit_parameters(schema: _Json) -> bytes | None:
    """The schema of a tool's arguments in Gemini's form, as JSON.

    `None` stands for no arguments: an object without properties is better left out.
    """
    fitted = _one_object(fit_schema(schema))
    return to_json(fitted) if fitted.get("properties") else None


def _one_object(schema: _Json) -> _Json:
    """Alternatives of objects as one: arguments must be a single object."""
    choices: list[_Json] | None = schema.get("anyOf")
    if choices is None:
        return schema
    whole: _Json = {"type": "object", "properties": {}}
    for choice in choices:
        whole["properties"].update(choice.get("properties", {}))
    names = [
        name
        for name in whole["properties"]
        if all(name in choice.get("required", ()) for choice in choices)
    ]
    return {**whole, "required": names} if names else whole


class _Fitter:
    """One schema with its definitions."""

    def __init__(self, root: _Json) -> None:
        self._root = root
        self._nodes = 0
        self._open: list[str] = []  # references that are being followed

    def fit(self, schema: Any, depth: int) -> _Json:
        self._nodes += 1
        if not isinstance(schema, dict):
            return {"type": "string"}  # it may be anything, but a type must be named
        opened: list[str] = []
        found = self._expand(cast("_Json", schema), opened)
        types, nullable = _types(found)
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            return _leaf(types[0])
        self._open.extend(opened)
        choices: Any = found.get("anyOf") or found.get("oneOf")
        if isinstance(choices, list) and choices:
            beside = {key: value for key, value in found.items() if key not in ("anyOf", "oneOf")}
            each = [_beside(beside, choice) for choice in cast("list[Any]", choices)]
            fitted = self._fit_choice(each, depth, nullable=nullable)
        elif len(types) > 1:
            each = [{**found, "type": name, "nullable": False} for name in types]
            fitted = self._fit_choice(each, depth, nullable=nullable)
        else:
            fitted = self._fit_plain(found, types[0], depth)
            if nullable:
                fitted["nullable"] = True
        del self._open[len(self._open) - len(opened) :]
        return fitted

    def _fit_plain(self, found: _Json, kind: str, depth: int) -> _Json:
        fitted: _Json = {"type": kind}
        fitted.update({key: found[key] for key in _WORDS if isinstance(found.get(key), str)})
        fitted.update({k: found[k] for k in _NUMBERS.get(kind, ()) if _is_number(found.get(k))})
        if found.get("format") in _FORMATS.get(kind, ()):
            fitted["format"] = found["format"]
        if kind == "string" and isinstance(found.get("pattern"), str):
            fitted["pattern"] = found["pattern"]
        if found.get("default") is not None:
            fitted["default"] = found["default"]
        _bound(found, fitted)
        _choose(found, fitted)
        if kind == "object":
            self._fit_object(found, fitted, depth)
        elif kind == "array":
            fitted["items"] = self._fit_items(found, depth)
        return fitted

    def _fit_object(self, found: _Json, fitted: _Json, depth: int) -> None:
        properties = found.get("properties")
        if not isinstance(properties, dict) or not properties:
            rest = found.get("additionalProperties")
            if isinstance(rest, dict) and rest:
                types, _ = _types(self._expand(cast("_Json", rest), []))
                _describe(fitted, f"Any keys; the type of each value: {' or '.join(types)}.")
            return
        named = cast("_Json", properties)
        fitted["properties"] = {key: self.fit(value, depth + 1) for key, value in named.items()}
        for key in ("required", "propertyOrdering"):
            names = found.get(key)
            if isinstance(names, list):
                known = [name for name in cast("list[Any]", names) if name in list(named)]
                fitted.update({key: known} if known else {})

    def _fit_items(self, found: _Json, depth: int) -> _Json:
        """What stands in an array; a tuple's places become alternatives."""
        items: Any = found.get("items")
        for places in (items, None if isinstance(items, dict) else found.get("prefixItems")):
            if isinstance(places, list) and places:
                return self._fit_choice(cast("list[Any]", places), depth, nullable=False)
        return self.fit(items, depth + 1)

    def _fit_choice(self, choices: list[Any], depth: int, *, nullable: bool) -> _Json:
        """Alternatives; nothing may stand beside them."""
        each: list[_Json] = []
        for choice in choices:
            if _is_null(choice):
                nullable = True
                continue
            one = self.fit(choice, depth + 1)
            inner: list[_Json] = one.get("anyOf", [one])
            each.extend(item for item in inner if item not in each)
        if nullable:
            each = [{**one, "nullable": True} for one in each]
        if not each:
            return {"type": "string", "nullable": True}
        return each[0] if len(each) == 1 else {"anyOf": each}

    def _expand(self, schema: _Json, opened: list[str], depth: int = 0) -> _Json:
        """The schema with its reference and its `allOf` put into it.

        Args:
            schema: The schema.
            opened: Takes in the references that were followed.
            depth: How many `allOf` it stands in.
        """
        found = schema
        while isinstance(found.get("$ref"), str):
            reference: str = found["$ref"]
            target = self._lookup(reference)
            rest = {key: value for key, value in found.items() if key != "$ref"}
            if target is None or reference in self._open or reference in opened:
                kind = _types(target or {"type": "object"})[0][0]
                return {"type": kind, **{k: rest[k] for k in _WORDS if k in rest}}
            opened.append(reference)
            found = {**target, **rest}
        parts: Any = found.get("allOf")
        if not isinstance(parts, list):
            return found
        whole = {key: value for key, value in found.items() if key != "allOf"}
        for part in cast("list[Any]", parts):
            if isinstance(part, dict) and depth < _MAX_DEPTH and len(opened) < _MAX_NODES:
                whole = _merge(whole, self._expand(cast("_Json", part), opened, depth + 1))
        return whole

    def _lookup(self, reference: str) -> _Json | None:
        """What `#/$defs/Name` names; `None` when it is not in this schema."""
        node: Any = self._root
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            node = cast("_Json", node).get(name) if isinstance(node, dict) else None
        found = reference.startswith("#") and isinstance(node, dict)
        return cast("_Json", node) if found else None


def _types(found: _Json) -> tuple[list[str], bool]:
    """The types that a schema allows, at least one, and whether null is allowed."""
    given: Any = found.get("type")
    listed = cast("list[Any]", given) if isinstance(given, list) else [given]
    names = [name.lower() for name in listed if isinstance(name, str)]
    known = list(dict.fromkeys(name for name in names if name in _TYPES))
    values = _values(found)
    nullable = "null" in names or found.get("nullable") is True or None in values
    return known or [_guess(found, values)], nullable


def _guess(found: _Json, values: list[Any]) -> str:
    """The type of a schema that names none."""
    if any(key in found for key in ("properties", "additionalProperties", "required")):
        return "object"
    if any(key in found for key in ("items", "prefixItems", "minItems")):
        return "array"
    kinds: set[type] = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "boolean"
    if kinds and kinds <= {int, float}:
        return "integer" if kinds == {int} else "number"
    bounded = any(key in found for key in ("minimum", "maximum", "multipleOf"))
    return "number" if bounded and not kinds else "string"


def _values(found: _Json) -> list[Any]:
    """The values that `enum` or `const` leave."""
    if "const" in found:
        return [found["const"]]
    listed: Any = found.get("enum")
    return cast("list[Any]", listed) if isinstance(listed, list) else []


def _choose(found: _Json, fitted: _Json) -> None:
    """Keep the values that are allowed: texts as such, others only in words."""
    values = [value for value in _values(found) if value is not None]
    if not values:
        return
    if fitted["type"] == "string" and all(isinstance(v, str) and v for v in values):
        fitted["enum"] = list(dict.fromkeys(values))
    else:
        listed = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
        _describe(fitted, f"One of: {listed}.")


def _bound(found: _Json, fitted: _Json) -> None:
    """Exclusive bounds as inclusive ones."""
    step = {"integer": 1, "number": 0}.get(fitted["type"])
    if step is None:
        return
    for key, name, sign in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        if _is_number(found.get(key)):
            fitted.setdefault(name, found[key] + sign * step)


def _describe(fitted: _Json, words: str) -> None:
    fitted["description"] = f"{fitted.get('description', '')} {words}".strip()


def _beside(beside: _Json, choice: Any) -> Any:
    """An alternative together with what stands beside all of them."""
    if isinstance(choice, dict) and not _is_null(cast("Any", choice)):
        return _merge(beside, cast("_Json", choice))
    return cast("Any", choice)


def _merge(first: _Json, second: _Json) -> _Json:
    """Two schemas that both hold."""
    whole = {**first, **second}
    for key, join in (("properties", _join_objects), ("required", _join_lists)):
        if key in first and key in second:
            whole[key] = join(first[key], second[key])
    return whole


def _join_objects(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return {**cast("_Json", first), **cast("_Json", second)}
    return second


def _join_lists(first: Any, second: Any) -> Any:
    if isinstance(first, list) and isinstance(second, list):
        return [*cast("list[Any]", first), *cast("list[Any]", second)]
    return second


def _leaf(kind: str) -> _Json:
    return {"type": kind, "items": {"type": "string"}} if kind == "array" else {"type": kind}


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("_Json", schema).get("type") == "null"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

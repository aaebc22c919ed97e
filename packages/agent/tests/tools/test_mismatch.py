"""Hand-written schemas."""

import json
import tracemalloc
from typing import Any

import pytest

from towline_agent.tools.mismatch import find_mismatch, read_schema
from towline_protocol import UsageError


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Tree"}},
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            "additionalProperties": False,
        }
    },
}


CASES: list[tuple[dict[str, Any], dict[str, Any], str | None]] = [
    (_object(a={"type": "integer"}), {"a": 1}, None),
    (_object(a={"type": "integer"}), {"a": 2.0}, None),
    (_object(a={"type": "integer"}), {"a": 2.5}, "expected integer, got number at `$.a`"),
    (_object(a={"type": "integer"}), {"a": True}, "expected integer, got boolean at `$.a`"),
    (_object(a={"type": "number"}), {"a": "1"}, "expected number, got string at `$.a`"),
    (_object(a={"type": ["string", "null"]}), {"a": None}, None),
    (_object(a={"type": ["string", "null"]}), {"a": []}, "string or null, got array"),
    ({"type": "object", "required": ["a"]}, {}, "'a' is missing at `$`"),
    (_object(a={"required": ["b"]}), {"a": {}}, "'b' is missing at `$.a`"),
    ({"additionalProperties": False}, {"a": 1}, "'a' is not expected at `$`"),
    ({"additionalProperties": {"type": "string"}}, {"a": 1}, "expected string"),
    (_object(a={"items": {"type": "string"}}), {"a": ["x", 1]}, "at `$.a[1]`"),
    (_object(a={"enum": ["x", 1]}), {"a": 1}, None),
    (_object(a={"enum": ["x", 1]}), {"a": True}, "expected one of ['x', 1], got True"),
    (_object(a={"const": 1}), {"a": 2}, "expected 1, got 2"),
    (_object(a={"anyOf": [{"type": "string"}, {"type": "null"}]}), {"a": None}, None),
    (
        _object(a={"anyOf": [{"type": "string"}, {"type": "null"}]}),
        {"a": 1},
        "expected string, got integer at `$.a` or expected null, got integer at `$.a`",
    ),
    (_object(a={"oneOf": [{"type": "integer"}, {"type": "number"}]}), {"a": 1.5}, None),
    (_object(a={"oneOf": [{"type": "integer"}, {"type": "number"}]}), {"a": 1}, "fits 2"),
    (_object(a={"oneOf": [{"type": "integer"}]}), {"a": "x"}, "expected integer"),
    (_object(a={"allOf": [{"minimum": 1}, {"maximum": 3}]}), {"a": 4}, "at most 3"),
    (_object(a={"minimum": 1}), {"a": 0}, "expected at least 1 at `$.a`"),
    (_object(a={"exclusiveMinimum": 1}), {"a": 1}, "expected more than 1"),
    (_object(a={"exclusiveMinimum": 1}), {"a": 2}, None),
    (_object(a={"exclusiveMaximum": 1}), {"a": 1}, "expected less than 1"),
    (_object(a={"exclusiveMaximum": 1}), {"a": 3}, "expected less than 1"),
    (_object(a={"minLength": 2}), {"a": "x"}, "a length of at least 2"),
    (_object(a={"maxLength": 2}), {"a": "xyz"}, "a length of at most 2"),
    (_object(a={"minItems": 1}), {"a": []}, "a count of at least 1"),
    (_object(a={"maxItems": 1}), {"a": [1, 2]}, "a count of at most 1"),
    (_object(a={"minLength": 2}), {"a": 1}, None),
    (_object(a={"pattern": "^x$", "format": "date"}), {"a": "y"}, None),
    (TREE, {"tree": {"below": [{"below": []}]}}, None),
    (TREE, {"tree": {"below": [{"beyond": 1}]}}, "'beyond' is not expected at"),
]


@pytest.mark.rules("A4.16", "A4.17")
@pytest.mark.parametrize(("schema", "value", "told"), CASES)
def test_the_first_mismatch_is_told_with_its_place(
    schema: dict[str, Any], value: dict[str, Any], told: str | None
) -> None:
    found = find_mismatch(read_schema(schema, "probe"), value)
    assert (found is None) if told is None else (found is not None and told in found)


@pytest.mark.rules("A4.43")
def test_a_schema_may_be_a_dict_or_json_text() -> None:
    schema = _object(a={"type": "string"})
    assert read_schema(schema, "probe") == schema
    assert read_schema(json.dumps(schema), "probe") == schema
    assert read_schema({}, "probe") == {"type": "object", "properties": {}}


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = _object(
        type={"type": "string"}, required={"type": "boolean"}, enum={"enum": [{"type": "x"}]}
    )
    schema["required"] = ["type"]
    read = read_schema(schema, "probe")
    assert find_mismatch(read, {"type": "a", "required": True}) is None
    assert find_mismatch(read, {"enum": {"type": "x"}}) == "'type' is missing at `$`"


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("{", "is no JSON"),
        ("[]", "must be a JSON object"),
        ({"type": "string"}, "is of type 'string'"),
        (_object(a={"type": "int"}), "type: 'int'"),
        (_object(a={"type": []}), "type: []"),
        ({"required": "a"}, "required: 'a'"),
        ({"properties": []}, "properties: []"),
        (_object(a={"enum": "x"}), "enum: 'x'"),
        (_object(a={"anyOf": {}}), "anyOf: {}"),
        (_object(a={"minimum": "1"}), "minimum: '1'"),
        (_object(a={"$ref": "#/$defs/A"}), "'#/$defs/A', which is not in it"),
        (_object(a={"$ref": "https://example.org/a"}), "which is not in it"),
        (_object(a={"items": {"type": "x"}}), "type: 'x'"),
        ({"$defs": {"A": {"type": "x"}}}, "type: 'x'"),
    ],
)
def test_a_bad_schema_is_refused_when_the_tool_is_made(
    schema: dict[str, Any] | str, told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read_schema(schema, "probe")
    assert told in refused.value.message
    assert "'probe'" in refused.value.message


@pytest.mark.rules("A4.16")
def test_forms_within_forms_are_checked_up_to_a_bound() -> None:
    below = {"$ref": "#/$defs/form"}
    forms = [{"properties": {"in": below, "kind": {"const": kind}}} for kind in ("a", "b")]
    schema = {"properties": {"in": below}, "$defs": {"form": {"anyOf": forms}}}
    value: dict[str, Any] = {}
    for _ in range(5):
        value = {"in": value, "kind": "b"}
    assert find_mismatch(schema, value) is None
    for _ in range(40):
        value = {"in": value, "kind": "b"}
    assert find_mismatch(schema, value) == (
        "it has too many parts, or too many levels of forms within forms; send less"
    )


@pytest.mark.rules("A4.16")
def test_a_long_name_is_not_copied_for_each_part_below_it() -> None:
    anything = {"items": {"$ref": "#/$defs/any"}}
    schema = {"additionalProperties": {"$ref": "#/$defs/any"}, "$defs": {"any": anything}}
    value: list[Any] = []
    for _ in range(90):
        value = [value]
    tracemalloc.start()
    try:
        assert find_mismatch(schema, {"x" * 100_000: value}) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000

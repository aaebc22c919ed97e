"""JSON Schema as far as Gemini takes it (A2.45)."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.gemini.schema import fit_parameters, fit_schema

_Json = dict[str, Any]

KNOWN = frozenset({
    "type", "title", "description", "nullable", "enum", "format", "items", "properties", "required",
    "propertyOrdering", "anyOf", "default", "pattern", "minimum", "maximum", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
})  # fmt: skip
"""The fields of `Schema` in the Gemini API's reference that are made here."""
TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})


def check(schema: _Json) -> None:
    """What the API refuses is not there."""
    assert schema.keys() <= KNOWN
    if "anyOf" in schema:
        assert schema.keys() == {"anyOf"}
        assert len(schema["anyOf"]) > 1
        for choice in schema["anyOf"]:
            assert "anyOf" not in choice
            check(choice)
        return
    assert schema["type"] in TYPES
    assert ("items" in schema) == (schema["type"] == "array")
    if "enum" in schema:
        assert schema["type"] == "string"
        assert all(isinstance(value, str) and value for value in schema["enum"])
    if "items" in schema:
        check(schema["items"])
    for inner in schema.get("properties", {}).values():
        check(inner)
    assert set(schema.get("required", ())) <= set(schema.get("properties", {}))


def fit(schema: _Json) -> _Json:
    fitted = fit_schema(schema)
    check(fitted)
    return fitted


@pytest.mark.rules("A2.45")
@pytest.mark.parametrize(
    ("schema", "fitted"),
    [
        ({"type": "string", "$schema": "x", "$id": "y", "$comment": "z"}, {"type": "string"}),
        ({"type": "STRING", "description": "A"}, {"type": "string", "description": "A"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "string", "nullable": True}, {"type": "string", "nullable": True}),
        ({"type": "null"}, {"type": "string", "nullable": True}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", "a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
        ({"enum": ["", "a"]}, {"type": "string", "description": 'One of: "", "a".'}),
        ({"const": True}, {"type": "boolean", "description": "One of: true."}),
        ({"type": "string", "format": "email"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "integer", "format": "int64"}, {"type": "integer", "format": "int64"}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "number", "exclusiveMaximum": 2.5}, {"type": "number", "maximum": 2.5}),
        ({"type": "number", "multipleOf": 2, "minimum": 1}, {"type": "number", "minimum": 1}),
        ({"type": "string", "minimum": 1, "minLength": 2}, {"type": "string", "minLength": 2}),
        ({"type": "string", "default": "x"}, {"type": "string", "default": "x"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {"type": "string"}}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        (
            {"type": "array", "items": [{"type": "integer"}], "uniqueItems": True},
            {"type": "array", "items": {"type": "integer"}},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}, "description": "M."},
            {"type": "object", "description": "M. Any keys; the type of each value: integer."},
        ),
        (
            {"type": "object", "properties": {"a": {}, "b": True}, "required": ["a", "x"]},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["a"],
            },
        ),
        ({}, {"type": "string"}),
    ],
)
def test_each_keyword_is_kept_rewritten_or_left_out(schema: _Json, fitted: _Json) -> None:
    assert fit(schema) == fitted


@pytest.mark.rules("A2.45")
def test_alternatives_stand_alone_and_take_in_what_stood_beside_them() -> None:
    schema = {
        "description": "A place.",
        "anyOf": [{"type": "string"}, {"type": "integer", "description": "By number."}],
    }
    assert fit(schema) == {
        "anyOf": [
            {"type": "string", "description": "A place."},
            {"type": "integer", "description": "By number."},
        ]
    }
    assert fit({"type": ["string", "integer", "null"], "title": "T"}) == {
        "anyOf": [
            {"type": "string", "title": "T", "nullable": True},
            {"type": "integer", "title": "T", "nullable": True},
        ]
    }
    nested = {"oneOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "string"}]}
    assert fit(nested) == {"anyOf": [{"type": "string"}, {"type": "number"}]}


@pytest.mark.rules("A2.45")
def test_an_alternative_of_null_becomes_nullable() -> None:
    schema = {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "N", "default": None}
    assert fit(schema) == {"type": "integer", "description": "N", "nullable": True}
    assert fit({"anyOf": [{"type": "null"}]}) == {"type": "string", "nullable": True}


@pytest.mark.rules("A2.45")
def test_references_are_replaced_by_what_they_name() -> None:
    point = {"type": "object", "properties": {"x": {"$ref": "#/definitions/n~1m"}}}
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/Point", "description": "From."},
            "b": {"allOf": [{"$ref": "#/$defs/Point"}, {"required": ["x"]}]},
            "c": {"$ref": "#/$defs/Missing", "description": "Lost."},
            "d": {"$ref": "https://elsewhere.test/schema"},
            "e": {"type": "array", "items": {"$ref": "#"}},
        },
        "$defs": {"Point": point},
        "definitions": {"n/m": {"type": "number"}},
    }
    fitted = fit(schema)["properties"]
    whole = {"type": "object", "properties": {"x": {"type": "number"}}}
    assert fitted["a"] == {**whole, "description": "From."}
    assert fitted["b"] == {**whole, "required": ["x"]}
    assert fitted["c"] == {"type": "object", "description": "Lost."}
    assert fitted["d"] == {"type": "object"}
    assert fitted["e"]["items"]["properties"]["e"] == {"type": "array", "items": {"type": "object"}}


@pytest.mark.rules("A2.45")
def test_a_reference_that_leads_into_itself_ends() -> None:
    tree = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        },
    }
    fitted = fit({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}})
    assert fitted["properties"]["children"] == {"type": "array", "items": {"type": "object"}}
    assert fit({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}})["type"] in TYPES


@pytest.mark.rules("A2.45")
def test_references_that_multiply_are_bounded() -> None:
    defs: _Json = {
        f"L{n}": {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/L{n + 1}"} for key in "abcd"},
        }
        for n in range(20)
    }
    schema = {"$ref": "#/$defs/L0", "$defs": {**defs, "L20": {"type": "string"}}}
    assert len(json.dumps(fit(schema))) < 400_000


@pytest.mark.rules("A2.45")
def test_the_arguments_of_a_tool_are_one_object_or_none() -> None:
    assert fit_parameters({"type": "object", "properties": {}}) is None
    assert fit_parameters({}) is None
    choices = {
        "oneOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        ]
    }
    fitted = json.loads(cast("bytes", fit_parameters(choices)))
    check(fitted)
    assert fitted == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a"],
    }


def test_a_schema_is_not_changed_and_gives_the_same_bytes_each_time() -> None:
    schema = {"type": "object", "properties": {"a": {"const": "x"}}, "additionalProperties": False}
    before = json.dumps(schema)
    assert fit_parameters(schema) == fit_parameters(json.loads(before))
    assert json.dumps(schema) == before


_ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text("ab#/$", max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from([
                "type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref",
                "$defs", "required", "minimum", "additionalProperties", "prefixItems", "nullable",
                "format", "description", "a",
            ]),
            st.one_of(inner, st.sampled_from(["#", "#/$defs/a", "string", "object", "null"])),
            max_size=4,
        ),
    ),
    max_leaves=15,
)  # fmt: skip


@pytest.mark.rules("A2.45")
@given(_ANY)
def test_whatever_a_tool_calls_a_schema_comes_out_as_one(value: Any) -> None:
    schema: _Json = {"type": "object", "properties": {"a": value}, "$defs": {"a": value}}
    assert isinstance(fit(schema), dict)
    if isinstance(value, dict):
        assert isinstance(fit(cast("_Json", value)), dict)

"""Schemas and values out of signatures."""

import dataclasses
import enum
import functools
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.schema import describe_schema, read_parameters
from towline_agent.tools.tool import ToolContext
from towline_protocol import UsageError


@dataclasses.dataclass
class Point:
    """A place on the map."""

    x: int
    y: int = 3


class Order(msgspec.Struct):
    item: str
    tags: list[str] = []


class Node(BaseModel):
    label: str = Field(min_length=1)
    below: "list[Node]" = []


class Box(BaseModel):
    node: Node


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Bag(TypedDict):
    size: int


def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    return read_parameters(function, "probe").schema


def _check(function: Callable[..., Any], text: str) -> dict[str, Any]:
    return read_parameters(function, "probe").check(text)


@pytest.mark.rules("A4.57")
def test_a_signature_and_its_docstring_become_a_schema() -> None:
    def probe(
        context: ToolContext,
        city: str,
        unit: Literal["C", "F"] = "C",
        days: Annotated[int, msgspec.Meta(ge=1, le=7)] = 1,
        limit: float | None = None,
        *,
        note: Annotated[str, "A word for the log."] = "",
    ) -> None:
        """Tell the weather.

        Args:
            context: Not told.
            city: Its name.
            unit: Of the temperature.
        """

    assert _schema(probe) == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name."},
            "unit": {"enum": ["C", "F"], "default": "C", "description": "Of the temperature."},
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
            "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "note": {"type": "string", "default": "", "description": "A word for the log."},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert read_parameters(probe, "probe").takes_context


@pytest.mark.rules("A4.57")
def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def probe() -> None: ...

    assert _schema(probe) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert _check(probe, "") == {}


@pytest.mark.rules("A4.57")
def test_dataclasses_and_structs_are_told_and_made() -> None:
    def probe(point: Point, orders: list[Order]) -> None: ...

    schema = _schema(probe)
    assert schema["properties"]["point"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Point"] == {
        "type": "object",
        "description": "A place on the map.",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 3}},
        "required": ["x"],
    }
    assert _check(probe, '{"point": {"x": 1}, "orders": [{"item": "tea"}]}') == {
        "point": Point(1, 3),
        "orders": [Order(item="tea")],
    }


@pytest.mark.rules("A4.57")
def test_pydantic_models_are_told_and_made_also_when_they_nest() -> None:
    def probe(box: Box, spare: Node | None = None, more: list[Node] = []) -> None: ...  # noqa: B006

    schema = _schema(probe)
    assert schema["$defs"].keys() == {"Node"}
    assert schema["properties"]["box"]["properties"] == {"node": {"$ref": "#/$defs/Node"}}
    assert schema["properties"]["more"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Node"},
        "default": [],
    }
    assert "title" not in str(schema)
    made = _check(probe, '{"box": {"node": {"label": "a", "below": [{"label": "b"}]}}}')
    assert made["box"] == Box(node=Node(label="a", below=[Node(label="b")]))
    assert (made["spare"], made["more"]) == (None, [])


@pytest.mark.rules("A4.17")
def test_a_pydantic_mismatch_is_told_without_the_value_in_it() -> None:
    def probe(box: Box) -> None: ...

    with pytest.raises(ToolInputInvalid) as refused:
        _check(probe, '{"box": {"node": {"label": "", "below": "hidden"}}}')
    told = refused.value.message
    assert "node.label: String should have at least 1 character" in told
    assert "node.below: Input should be a valid list" in told
    assert "hidden" not in told
    assert "http" not in told


@pytest.mark.rules("A4.57")
@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (int | str | None, '"a"', "a"),
        (int | str | None, "null", None),
        (Colour, '"blue"', Colour.BLUE),
        (date, '"2026-02-03"', date(2026, 2, 3)),
        (Bag, '{"size": 2}', {"size": 2}),
        (dict[str, list[int]], '{"a": [1]}', {"a": [1]}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (Point | None, "null", None),
        (Any, '{"free": [1]}', {"free": [1]}),
    ],
)
def test_a_value_becomes_what_the_annotation_says(kind: Any, raw: str, value: object) -> None:
    def probe(value: Any) -> None: ...

    probe.__annotations__["value"] = kind
    assert _check(probe, f'{{"value": {raw}}}') == {"value": value}


def test_a_default_is_the_very_object_of_the_signature() -> None:
    marker = object()

    def probe(a: Any = marker, b: list[int] = [1]) -> None: ...  # noqa: B006

    assert "default" not in _schema(probe)["properties"]["a"]
    assert _schema(probe)["properties"]["b"]["default"] == [1]
    assert _check(probe, "{}")["a"] is marker


def test_a_parameter_without_annotation_takes_any_value() -> None:
    def probe(a, b=2) -> None: ...  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]

    assert _schema(probe)["properties"] == {"a": {}, "b": {"default": 2}}  # pyright: ignore[reportUnknownArgumentType]


def test_methods_partials_and_callable_objects_are_read_too() -> None:
    class Shop:
        def sell(self, item: str, count: int = 1) -> None: ...

        def __call__(self, item: str) -> None: ...

    assert _schema(Shop().sell)["required"] == ["item"]
    assert _schema(Shop())["required"] == ["item"]
    bound = functools.partial(Shop().sell, count=2)
    assert _schema(bound)["properties"]["count"]["default"] == 2


@pytest.mark.rules("A4.16", "A4.17")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "missing required field `count`"),
        ("null", "missing required field `count`"),
        ('{"count": "3"}', "Expected `int`, got `str` - at `$.count`"),
        ('{"count": true}', "Expected `int`, got `bool`"),
        ('{"count": 1.5}', "Expected `int`, got `float`"),
        ('{"count": 1, "size": 2}', "unknown field `size`"),
        ('{"count": 1, "unit": "K"}', "Invalid enum value 'K' - at `$.unit`"),
    ],
)
def test_a_mismatch_says_what_came_and_what_was_expected(text: str, told: str) -> None:
    def probe(count: int, unit: Literal["C", "F"] = "C", place: Point | None = None) -> None: ...

    with pytest.raises(ToolInputInvalid) as refused:
        _check(probe, text)
    assert told in refused.value.message
    expected = "{count: integer, unit?: 'C' | 'F', place?: {x: integer, y?: integer} | null}"
    assert refused.value.message.endswith(f"Expected: {expected}.")


@pytest.mark.rules("A4.17")
def test_what_a_list_holds_is_told_and_a_type_within_itself_has_an_end() -> None:
    def mark(points: list[Point], tree: Node | None = None) -> None: ...

    told = describe_schema(_schema(mark))
    assert told.startswith("{points: array of {x: integer, y?: integer}, tree?: ")
    loop = {"$defs": {"Loop": {"type": "array", "items": {"$ref": "#/$defs/Loop"}}}}
    loop["properties"] = {"all": {"$ref": "#/$defs/Loop"}, "lost": {"$ref": "#/$defs/None"}}
    told = describe_schema(loop)
    assert told == "{all?: array of array of array of array, lost?: object}"


def _variadic(*words: str) -> None: ...
def _keywords(**words: str) -> None: ...
def _positional(word: str, /) -> None: ...
def _late(word: str, context: ToolContext) -> None: ...
def _callable(done: Callable[[], None]) -> None: ...
def _two(place: Point | Order) -> None: ...
def _mixed(place: Node | int) -> None: ...
def _umlaut(größe: int) -> None: ...
def _unknown(word: Any) -> None: ...


_unknown.__annotations__["word"] = "Nowhere"


BAD: list[Callable[..., Any]] = [
    _variadic,
    _keywords,
    _positional,
    _late,
    _callable,
    _two,
    _mixed,
    _umlaut,
    _unknown,
]


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize("function", BAD)
def test_a_bad_signature_is_refused_with_the_tools_name(function: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="'probe'"):
        read_parameters(function, "probe")


def test_types_that_hold_one_another_many_times_are_told_in_a_moment() -> None:
    many = {f"field_{at}": {"$ref": "#/$defs/node"} for at in range(2_000)}
    node = {"type": "object", "properties": many, "anyOf": [{"$ref": "#/$defs/node"}] * 2_000}
    told = describe_schema({"properties": many, "$defs": {"node": node}})
    assert told.startswith("{field_0?: ")
    assert len(told) == 501

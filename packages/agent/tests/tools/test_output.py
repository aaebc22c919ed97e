"""Answers of a given type."""

import dataclasses
import enum
import json
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.output import OutputSpec
from towline_protocol import UsageError


@dataclasses.dataclass
class Point:
    x: int
    y: int = 3


class Tree(msgspec.Struct):
    label: str
    below: list["Tree"] = []


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Bag(TypedDict):
    size: int
    note: NotRequired[str]


class Line(BaseModel):
    text: Annotated[str, Field(description="What it says.")]
    price: Annotated[float, Field(ge=0)]
    kind: Literal["in", "out"] | None = None


class Invoice(BaseModel):
    lines: list[Line]
    day: date


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def _objects(node: Any) -> list[dict[str, Any]]:
    """All schemas with properties in a schema."""
    if isinstance(node, list):
        return [found for item in cast("list[Any]", node) for found in _objects(item)]
    if not isinstance(node, dict):
        return []
    known = cast("dict[str, Any]", node)
    inner = [found for value in known.values() for found in _objects(value)]
    return [known, *inner] if isinstance(known.get("properties"), dict) else inner


@pytest.mark.rules("A4.60")
def test_an_object_type_is_its_own_schema_with_everything_required() -> None:
    assert OutputSpec.of(Point).schema == {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }


@pytest.mark.rules("A4.60")
def test_what_is_no_object_stands_in_value() -> None:
    spec = OutputSpec.of(list[Literal["a", "b"]])
    assert spec.schema == {
        "type": "object",
        "properties": {
            "value": {"type": "array", "items": {"enum": ["a", "b"], "type": "string"}},
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    assert spec.wrapped


KINDS: list[tuple[Any, str, object]] = [
    (Point, '{"x": 1}', Point(1)),
    (Tree, '{"label": "a", "below": [{"label": "b"}]}', Tree("a", [Tree("b")])),
    (Bag, '{"size": 2}', {"size": 2}),
    (Line, '{"text": "t", "price": 1}', Line(text="t", price=1)),
    (
        Invoice,
        '{"lines": [{"text": "t", "price": 2.5, "kind": "in"}], "day": "2027-01-15"}',
        Invoice(lines=[Line(text="t", price=2.5, kind="in")], day=date(2027, 1, 15)),
    ),
    (Cat | Dog, '{"value": {"type": "Dog", "name": "Rex"}}', Dog("Rex")),
    (list[Point], '{"value": [{"x": 1, "y": 2}]}', [Point(1, 2)]),
    (dict[str, int], '{"value": {"a": 1}}', {"a": 1}),
    (int | None, '{"value": null}', None),
    (Colour, '{"value": "red"}', Colour.RED),
    (bool, '{"value": true}', True),
    (float, '{"value": 1}', 1.0),
    (tuple[int, str], '{"value": [1, "a"]}', (1, "a")),
    (str, '{"value": "x"}', "x"),
]


@pytest.mark.rules("A4.60")
@pytest.mark.parametrize(("kind", "text", "value"), KINDS, ids=lambda part: str(part)[:30])
def test_each_kind_of_type_is_read(kind: Any, text: str, value: object) -> None:
    spec = OutputSpec.of(kind)
    assert spec.parse(text) == value
    assert spec.parse(f"Here it is:\n\n```json\n{text}\n```\nDone.") == value
    assert spec.parse(f"I think {text}") == value
    if spec.wrapped:
        bare = json.dumps(json.loads(text)["value"])
        assert spec.parse(bare) == value


@pytest.mark.rules("A4.60")
@pytest.mark.parametrize("kind", [kind for kind, _, _ in KINDS], ids=str)
def test_a_schema_is_what_strict_modes_take(kind: Any) -> None:
    schema = OutputSpec.of(kind).schema
    assert schema["type"] == "object"
    for found in _objects(schema):
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])
    text = json.dumps(schema)
    for word in ('"default"', '"oneOf"', '"discriminator"', '"title"'):
        assert word not in text
    assert '{"description": "What it says.", "type": "string"}' in text or kind not in (
        Line,
        Invoice,
    )


def test_a_type_that_holds_itself_keeps_its_definition() -> None:
    schema = OutputSpec.of(Tree).schema
    assert schema["properties"]["below"]["items"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["required"] == ["label", "below"]
    assert "$defs" not in OutputSpec.of(Point).schema
    assert set(OutputSpec.of(Invoice).schema["$defs"]) == {"Line"}


@pytest.mark.rules("A4.60")
@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (Point, '{"x": "1"}', "expected integer, got string at `$.x`. Expected: {x: integer, y: i"),
        (Point, '{"y": 1}', "'x' is missing at `$`"),
        (Point, '{"x": 1, "z": 2}', "'z' is not expected at `$`"),
        (Point, '{"x": 1, "x": 2}', "the key 'x' stands there twice"),
        (Point, "I can't say.", "it holds no JSON"),
        (Point, "", "it holds no JSON"),
        (Point, '{"x": NaN}', "NaN is no JSON number"),
        (Line, '{"text": "t", "price": -1}', "expected at least 0 at `$.price`"),
        (Invoice, '{"lines": [], "day": "soon"}', "day: Input should be a valid date"),
        (int, '{"value": "1"}', "expected integer, got string at `$.value`. Expected: {value: int"),
        (list[int], '[1, "a"]', "expected integer, got string at `$.value[1]`"),
        (list[int], '{"a": 1}', "'value' is missing"),
        (Literal["a"], '{"value": "b"}', "expected one of ['a'], got 'b'"),
    ],
)
def test_what_does_not_fit_is_told_with_what_was_expected(
    kind: Any, text: str, problem: str
) -> None:
    with pytest.raises(ToolInputInvalid, match="The answer does not fit") as caught:
        OutputSpec.of(kind).parse(text)
    assert problem in caught.value.message
    assert "Expected: {" in caught.value.message


def test_a_part_of_json_that_breaks_off_is_not_taken_for_the_whole() -> None:
    cut = '{"label": "a", "below": [{"label": "b", "below": []}'
    for text in (cut, f"Here: {cut}", f"```json\n{cut}\n```", f"{cut},], ..."):
        with pytest.raises(ToolInputInvalid, match="at character"):
            OutputSpec.of(Tree).parse(text)


def test_the_last_value_that_fits_counts() -> None:
    spec = OutputSpec.of(Point)
    assert spec.parse('First {"x": 1}, then {"x": 2}. See {this} [1] and [the docs].') == Point(2)
    assert spec.parse('```\n{"x": 1}\n```\n```\n{"x": 2}\n```\nor {"x": 3}') == Point(2)
    assert OutputSpec.of(Bag).parse('{"x": 1} {"size": 1} {"y": 2}') == {"size": 1}


@pytest.mark.parametrize(
    ("kind", "text"),
    [(str, "Just words."), (str, 'A {"half'), (Literal["yes", "no"], " yes\n"), (str, '"quoted')],
)
def test_words_alone_are_an_answer_where_words_are_wanted(kind: Any, text: str) -> None:
    assert OutputSpec.of(kind).parse(text) == text.strip()


def test_words_are_no_answer_where_broken_json_stands() -> None:
    spec = OutputSpec.of(int | str)
    assert spec.parse("none") == "none"
    with pytest.raises(ToolInputInvalid):
        spec.parse('{"value": 1')


def test_a_type_that_json_cannot_hold_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match=r"can't be of type .*object.*use JSON types"):
        OutputSpec.of(list[object().__class__ | complex])


@pytest.mark.rules("A4.60")
def test_a_model_is_told_the_schema_and_asked_once_more_with_the_reason() -> None:
    spec = OutputSpec.of(Point)
    assert json.dumps(spec.schema) in spec.instruction
    with pytest.raises(ToolInputInvalid) as caught:
        spec.parse("no")
    again = spec.ask_again(caught.value)
    assert again.startswith("The answer does not fit: it holds no JSON.")
    assert again.endswith(spec.instruction)


def test_endless_brackets_are_given_up() -> None:
    spec = OutputSpec.of(list[int])
    for text in ("[" * 100_000, "{ " * 100_000, "[x] " * 30_000, '{"a":' * 100_000):
        with pytest.raises(ToolInputInvalid):
            spec.parse(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)


ANYTHING = OutputSpec.of(dict[str, Any])


@pytest.mark.rules("A4.60")
@given(
    value=st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    words=st.sampled_from(["", "So: ", "A\n"]),
)
def test_any_json_comes_back_as_it_was(value: dict[str, Any], words: str) -> None:
    text = words + json.dumps({"value": value}, ensure_ascii=False)
    assert ANYTHING.parse(text) == value

"""What a function may return."""

import dataclasses
from typing import Any

import pytest
from pydantic import BaseModel

from towline_agent.tools.result import to_output
from towline_agent.tools.tool import ToolOutput
from towline_protocol import Image, ResultBlock, Text, UsageError, mend_text


@dataclasses.dataclass
class Point:
    x: int


class Model(BaseModel):
    label: str


@pytest.mark.rules("A4.58")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        ({"a": [1, "ä"]}, '{"a":[1,"ä"]}'),
        ([], "[]"),
        (("a", 1), '["a",1]'),
        (Point(1), '{"x":1}'),
        ([Model(label="a")], '[{"label":"a"}]'),
        ([Text(text="a"), "b"], '[{"type":"text","text":"a"},"b"]'),
    ],
)
def test_a_value_becomes_text(value: object, text: str) -> None:
    assert to_output(value) == ToolOutput(content=(Text(text=text),))


@pytest.mark.rules("A4.58")
def test_blocks_and_whole_outputs_pass() -> None:
    picture = Image(media_type="image/png", data="aGk=")
    assert to_output(picture).content == (picture,)
    blocks: list[ResultBlock] = [Text(text="a"), picture]
    assert to_output(blocks).content == (Text(text="a"), picture)
    whole = ToolOutput(content=(), is_error=True)
    assert to_output(whole) == whole


@pytest.mark.parametrize("value", [object(), {1: object()}, {"a": object(), "b": "\ud83d"}])
def test_what_is_no_json_is_the_authors_mistake(value: Any) -> None:
    with pytest.raises(UsageError, match="can't be made into JSON"):
        to_output(value)


def test_an_endless_value_is_the_authors_mistake() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UsageError, match="list"):
        to_output(loop)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00", "\N{GRINNING FACE}"),
        ("name\udcff.txt", "name\ufffd.txt"),
        ("\ud83d", "\ufffd"),
    ],
)
def test_no_half_of_a_character_gets_out(text: str, mended: str) -> None:
    assert mend_text(text) == mended
    assert to_output(Text(text=text)).content == (Text(text=mended),)
    assert to_output(ToolOutput(content=(Text(text=text),))).content == (Text(text=mended),)

"""Arguments that come in pieces, by the path where each belongs (A2.49)."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.base import ArgumentsPiece, Piece, StepAnswer, StepFailed, StepResult
from towline_agent.providers.errors import Peer
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.gemini.partial import PartialArguments
from towline_protocol import SseEvent, Text, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1beta")
_Json = dict[str, Any]


def decode(*calls: _Json | str, finish: str = "STOP") -> tuple[StepResult, list[Piece]]:
    """An answer of these pieces of calls, or of words."""
    pieces: list[Piece] = []
    decoder = GeminiDecoder(PEER, GeminiFlags(vertex=True), pieces.append)
    for call in calls:
        part: _Json = {"text": call} if isinstance(call, str) else {"functionCall": call}
        value = {"candidates": [{"content": {"parts": [part]}}]}
        decoder.feed(SseEvent(json.dumps(value).encode()))
    decoder.feed(SseEvent(json.dumps({"candidates": [{"finishReason": finish}]}).encode()))
    return decoder.finish(), pieces


def calls(*given: _Json | str, finish: str = "STOP") -> list[tuple[str, str, str | None]]:
    result, _ = decode(*given, finish=finish)
    assert isinstance(result, StepAnswer)
    return [(b.name, b.arguments, b.wire_id) for b in result.content if isinstance(b, ToolCall)]


def piece(path: str, more: bool | None = None, **value: Any) -> _Json:
    going = {} if more is None else {"willContinue": more}
    return {"jsonPath": path, **value, **going}


def text(*pieces: _Json) -> str:
    arguments = PartialArguments()
    arguments.add(list(pieces))
    return arguments.text(whole=True)


@pytest.mark.rules("A2.49")
def test_pieces_of_texts_numbers_and_containers_become_one_object() -> None:
    assert json.loads(
        text(
            piece("$.a", True, stringValue="Bos"),
            piece("$.b", numberValue=20),
            piece("$.a", stringValue="ton"),
            piece("$.c.d[0].e", boolValue=True),
            piece("$.c.d[0].f", nullValue="NULL_VALUE"),
            piece("$.c.d[1].e", numberValue=2.5),
            piece("$['x.y']", stringValue="1"),
            piece('$["it\\"s"]', stringValue="2"),
            piece("plain", stringValue="3"),
            piece("$.list[0]", stringValue="p"),
            piece("$.list[1]", stringValue="q"),
        )
    ) == {
        "a": "Boston",
        "b": 20,
        "c": {"d": [{"e": True, "f": None}, {"e": 2.5}]},
        "x.y": "1",
        'it"s': "2",
        "plain": "3",
        "list": ["p", "q"],
    }


@pytest.mark.rules("A2.49")
def test_a_text_that_has_ended_is_replaced_not_lengthened() -> None:
    assert text(piece("$.a", stringValue="old"), piece("$.a", stringValue="new")) == '{"a":"new"}'


@pytest.mark.rules("A2.49")
def test_odd_paths_and_values_lose_nothing_else() -> None:
    found = json.loads(
        text(
            piece("$", stringValue="root"),
            piece("$[0]", stringValue="array"),
            piece("$.a[999999999]", numberValue=1),
            piece("$.b[x]", numberValue=2),
            piece("$.c", somethingNew=3),
            piece("$.d.e", numberValue=4),
            piece("$.d[0]", numberValue=5),
            {"stringValue": "no path"},
            piece("$.z", boolValue=False),
        )
    )
    assert found == {
        "$": "root",
        "$[0]": "array",
        "a": [1],
        "$.b[x]": 2,
        "d": [5],
        "z": False,
    }


_KEY = st.text("ab_é", min_size=1, max_size=3)
_TREE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(_KEY, inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def _pieces(value: Any, path: str) -> list[_Json]:
    """A value as Vertex streams it: each leaf by its path, a text letter by letter."""
    match value:
        case dict():
            named = cast("_Json", value).items()
            return [p for key, inner in named for p in _pieces(inner, f"{path}.{key}")]
        case list():
            listed = enumerate(cast("list[Any]", value))
            return [p for place, inner in listed for p in _pieces(inner, f"{path}[{place}]")]
        case str():
            return [
                *(piece(path, True, stringValue=letter) for letter in value),
                piece(path, stringValue=""),
            ]
        case bool():
            return [piece(path, boolValue=value)]
        case None:
            return [piece(path, nullValue=None)]
        case _:
            return [piece(path, numberValue=value)]


@pytest.mark.rules("A2.49")
@given(st.dictionaries(_KEY, _TREE, max_size=4))
def test_any_object_that_is_streamed_comes_out_as_it_was(value: _Json) -> None:
    assert json.loads(text(*_pieces(value, "$"))) == value


@pytest.mark.rules("A2.49")
def test_calls_that_are_streamed_one_after_the_other_stay_apart() -> None:
    found = calls(
        {"name": "f", "id": "1", "willContinue": True},
        {"partialArgs": [piece("$.a", True, stringValue="x")], "willContinue": True},
        "some words",
        {"partialArgs": [piece("$.a", stringValue="y")], "willContinue": True},
        {},
        {"name": "f", "willContinue": True},
        {"partialArgs": [piece("$.a", stringValue="z")]},
        {},
        {"name": "g"},
    )
    assert found == [("f", '{"a":"xy"}', "1"), ("f", '{"a":"z"}', None), ("g", "{}", None)]


@pytest.mark.rules("A2.49", "A1.23")
def test_streamed_arguments_are_told_once_their_call_is_whole() -> None:
    result, pieces = decode(
        {"name": "f", "willContinue": True},
        {"partialArgs": [piece("$.a", stringValue="x")], "willContinue": True},
        {},
    )
    assert pieces == [ArgumentsPiece(0, '{"a":"x"}')]
    assert isinstance(result, StepAnswer)


@pytest.mark.rules("A2.49")
def test_a_call_that_names_itself_again_goes_on_and_one_with_another_id_begins() -> None:
    one = {"name": "f", "id": "1", "willContinue": True}
    assert calls(
        {**one, "partialArgs": [piece("$.a", numberValue=1)]},
        {**one, "partialArgs": [piece("$.b", numberValue=2)]},
        {"name": "f", "id": "2", "args": {"c": 3}},
    ) == [("f", '{"a":1,"b":2}', "1"), ("f", '{"c":3}', "2")]


@pytest.mark.rules("A2.21", "A2.49")
@pytest.mark.parametrize("finish", ["MAX_TOKENS", "STOP"])
def test_a_call_whose_end_never_came_is_never_taken_for_whole(finish: str) -> None:
    cut = calls(
        {"name": "f", "willContinue": True},
        {"partialArgs": [piece("$.a", True, stringValue="{half")], "willContinue": True},
        finish=finish,
    )
    assert cut == [("f", '{"a":"{half"', None)]
    bare = calls({"name": "f", "willContinue": True}, finish=finish)
    assert bare == [("f", "{", None)]


@pytest.mark.rules("A2.21")
def test_a_whole_call_in_an_answer_that_was_cut_stays_whole() -> None:
    assert calls({"name": "f", "args": {}}, finish="MAX_TOKENS") == [("f", "{}", None)]


def test_words_between_the_pieces_of_a_call_are_a_block_of_their_own() -> None:
    result, _ = decode({"name": "f", "willContinue": True}, "words", {})
    assert [type(block) for block in result.content] == [ToolCall, Text]


def test_the_end_of_no_call_is_nothing() -> None:
    assert calls({}, {"partialArgs": [piece("$.a", numberValue=1)]}, {"name": ""}) == []


@pytest.mark.rules("A3.9")
def test_arguments_without_end_are_given_up() -> None:
    more = {"partialArgs": [piece("$.a", True, stringValue="x" * 9999)], "willContinue": True}
    result, _ = decode({"name": "f", "willContinue": True}, *([more] * 40))
    assert isinstance(result, StepFailed)
    assert result.error.reason == "too_long"


def test_arguments_that_nest_without_end_break_their_call_alone() -> None:
    deep: Any = 1
    for _ in range(700):
        deep = {"a": deep}
    result, _ = decode({"name": "f", "args": deep}, "words")
    assert isinstance(result, StepAnswer)
    assert Text(text="words") in result.content

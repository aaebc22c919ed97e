"""Halves of characters in JSON escapes: joined, replaced, never lost (R55)."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.base import Piece, StepAnswer
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.surrogates import mend, mend_all, split_half
from towline_protocol import SseEvent, Text, Thinking, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
HIGH, LOW = "\ud83d", "\ude00"
UNITS = st.text(st.sampled_from([HIGH, LOW, "a", "é", "😀", "\ud800", "\udfff"]), max_size=12)


def _reference(text: str) -> str:
    """The definition: pairs become one character, all other halves the replacement."""

    def join(found: re.Match[str]) -> str:
        high, low = map(ord, found[0])
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))

    paired = re.sub("[\ud800-\udbff][\udc00-\udfff]", join, text)
    return re.sub("[\ud800-\udfff]", "\ufffd", paired)


@pytest.mark.rules("A2.22", "A2.23", "R55")
@given(UNITS)
def test_mending_joins_pairs_and_replaces_the_rest(text: str) -> None:
    assert mend(text) == _reference(text)
    assert mend_all({text: [text, 1, None]}) == {_reference(text): [_reference(text), 1, None]}


@pytest.mark.rules("A2.22", "A2.23", "R55")
@given(st.lists(UNITS, max_size=6))
def test_a_text_cut_anywhere_is_mended_as_a_whole(parts: list[str]) -> None:
    mended, half = "", ""
    for part in parts:
        text, half = split_half(half + part)
        mended += text
    assert mended + ("\ufffd" if half else "") == _reference("".join(parts))


def _decode(*deltas: dict[str, Any]) -> tuple[StepAnswer, list[Piece]]:
    pieces: list[Piece] = []
    decoder = ChatDecoder(PEER, ChatFlags(), pieces.append)
    for delta in deltas:
        value = {"choices": [{"index": 0, "delta": delta}]}
        decoder.feed(SseEvent(json.dumps(value).encode()))
    decoder.feed(SseEvent(b"[DONE]"))
    result = decoder.finish()
    assert isinstance(result, StepAnswer)
    return result, pieces


def _call(arguments: str, name: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.rules("A2.22", "A2.24", "R55")
@pytest.mark.parametrize("field", ["content", "reasoning", "reasoning_content", "refusal"])
def test_two_halves_in_one_block_become_one_character(field: str) -> None:
    result, pieces = _decode({field: "a" + HIGH}, {field: LOW + "b"})
    (block,) = result.content
    assert isinstance(block, Text | Thinking)
    assert block.text == "a😀b"
    assert [piece.text for piece in pieces] == ["a", "😀b"]


@pytest.mark.rules("A2.22", "R55")
def test_halves_in_names_and_arguments_are_joined() -> None:
    result, _ = _decode(
        _call("", "f" + HIGH), _call("", LOW), _call('{"a":"' + HIGH), _call(LOW + '"}')
    )
    (block,) = result.content
    assert isinstance(block, ToolCall)
    assert (block.name, block.arguments) == ("f😀", '{"a":"😀"}')


@pytest.mark.rules("A2.22", "R55")
def test_halves_of_calls_that_come_interleaved_find_their_own_call() -> None:
    result, _ = _decode(
        _call("x" + HIGH, "f", 0),
        _call("y" + HIGH, "g", 1),
        _call(LOW, None, 0),
        _call(LOW, None, 1),
    )
    found = [block.arguments for block in result.content if isinstance(block, ToolCall)]
    assert found == ["x😀", "y😀"]


@pytest.mark.rules("A2.23", "A2.24", "R55")
@pytest.mark.parametrize(
    ("deltas", "texts"),
    [
        ([{"content": HIGH}], ["\ufffd"]),
        ([{"content": LOW}], ["\ufffd"]),
        ([{"content": "a" + HIGH}, {"content": "b"}], ["a\ufffdb"]),
        ([{"reasoning": HIGH}, {"content": LOW + "b"}], ["\ufffd", "\ufffdb"]),
        ([{"content": "a" + HIGH}, _call("{}", "f"), {"content": LOW}], ["a\ufffd", "\ufffd"]),
    ],
)
def test_a_half_that_never_meets_its_other_half_is_replaced(
    deltas: list[dict[str, Any]], texts: list[str]
) -> None:
    result, pieces = _decode(*deltas)
    found = [block.text for block in result.content if isinstance(block, Text | Thinking)]
    assert found == texts
    told: dict[int, str] = {}
    for piece in pieces:
        told[piece.block] = told.get(piece.block, "") + piece.text
    assert [told[place] for place in sorted(told) if told[place] != "{}"] == texts


@pytest.mark.rules("A2.23", "R55")
def test_a_half_at_the_end_of_arguments_is_replaced() -> None:
    result, pieces = _decode(_call("x" + HIGH, "f"))
    (block,) = result.content
    assert isinstance(block, ToolCall)
    assert block.arguments == "x\ufffd"
    assert [piece.text for piece in pieces] == ["x", "\ufffd"]


_DELTA = st.one_of(
    st.fixed_dictionaries({"content": UNITS}),
    st.fixed_dictionaries({"reasoning": UNITS}),
    st.builds(_call, UNITS, st.one_of(st.none(), UNITS), st.integers(0, 2)),
    st.fixed_dictionaries({"reasoning_details": st.lists(st.fixed_dictionaries({"text": UNITS}))}),
)


@pytest.mark.rules("A2.23", "A2.25", "R55")
@given(st.lists(_DELTA, max_size=8))
def test_whatever_comes_all_that_leaves_is_utf8_and_nothing_fails(deltas: list[Any]) -> None:
    result, pieces = _decode(*deltas)
    for piece in pieces:
        assert piece.text.encode()
    for block in result.content:
        assert json.dumps(str(block), ensure_ascii=False).encode()


@pytest.mark.rules("A2.25", "R55")
def test_ids_reasons_errors_and_kept_details_are_utf8_too() -> None:
    flags = ChatFlags(replay="reasoning_details")
    decoder = ChatDecoder(PEER, flags, lambda _: None)
    delta = {
        "tool_calls": [{"index": 0, "id": "i" + HIGH, "function": {"name": "f"}}],
        "reasoning_details": [{"type": "reasoning.encrypted", "data": HIGH}],
    }
    value = {"choices": [{"delta": delta, "finish_reason": "odd" + LOW}]}
    decoder.feed(SseEvent(json.dumps(value).encode()))
    result = decoder.finish()
    assert isinstance(result, StepAnswer)
    assert str(result).encode()
    assert result.raw_stop_reason == "odd\ufffd"
    broken = ChatDecoder(PEER, flags, lambda _: None)
    broken.feed(SseEvent(json.dumps({"error": {"message": "no" + HIGH, "type": LOW}}).encode()))
    assert str(broken.finish()).encode()

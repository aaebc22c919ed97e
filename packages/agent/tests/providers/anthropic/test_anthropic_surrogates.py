"""Halves of characters, and anything at all in the place of anything (R55)."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.base import Model, Piece, Request, StepAnswer, StepResult
from towline_agent.providers.errors import Peer
from towline_protocol import Message, Opaque, SseEvent, Text, Thinking, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
MODEL = Model(provider="p", id="m")
HIGH, LOW = "\ud83d", "\ude00"
UNITS = st.text(st.sampled_from([HIGH, LOW, "a", "é", "😀", "\ud800", "\udfff"]), max_size=8)
_Json = dict[str, Any]


def decode(*events: _Json) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    decoder = MessagesDecoder(PEER, pieces.append)
    for event in events:
        decoder.feed(SseEvent(json.dumps(event).encode()))
    return decoder.finish(), pieces


def begin(index: int, kind: str, **fields: Any) -> _Json:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": kind, **fields},
    }


def delta(index: int, kind: str, **fields: Any) -> _Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


STOP: _Json = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}


@pytest.mark.rules("A2.22", "A2.24", "R55")
def test_two_halves_in_one_block_become_one_character() -> None:
    result, pieces = decode(
        begin(0, "thinking", thinking=""),
        delta(0, "thinking_delta", thinking="a" + HIGH),
        delta(0, "thinking_delta", thinking=LOW + "b"),
        begin(1, "text", text=""),
        delta(1, "text_delta", text="a" + HIGH),
        delta(1, "text_delta", text=LOW + "b"),
        begin(2, "tool_use", id="t", name="f" + HIGH + LOW, input={}),
        delta(2, "input_json_delta", partial_json='{"a":"' + HIGH),
        delta(2, "input_json_delta", partial_json=LOW + '"}'),
        STOP,
    )
    thought, text, call = result.content
    assert isinstance(thought, Thinking)
    assert isinstance(text, Text)
    assert isinstance(call, ToolCall)
    assert (thought.text, text.text) == ("a😀b", "a😀b")
    assert (call.name, call.arguments) == ("f😀", '{"a":"😀"}')
    assert [piece.text for piece in pieces] == ["a", "😀b", "a", "😀b", '{"a":"', '😀"}']


@pytest.mark.rules("A2.23", "R55")
def test_halves_of_blocks_that_come_interleaved_find_their_own_block() -> None:
    result, _ = decode(
        begin(0, "tool_use", id="a", name="f"),
        begin(1, "tool_use", id="b", name="g"),
        delta(0, "input_json_delta", partial_json="x" + HIGH),
        delta(1, "input_json_delta", partial_json="y" + HIGH),
        delta(0, "input_json_delta", partial_json=LOW),
        STOP,
    )
    found = [block.arguments for block in result.content if isinstance(block, ToolCall)]
    assert found == ["x😀", "y\ufffd"]


@pytest.mark.rules("A2.23", "R55")
def test_a_half_that_never_meets_its_other_half_is_replaced() -> None:
    result, _ = decode(
        begin(0, "text", text=""),
        delta(0, "text_delta", text="a" + HIGH),
        begin(1, "text", text=""),
        delta(1, "text_delta", text=LOW + "b" + HIGH),
        STOP,
    )
    assert [block.text for block in result.content if isinstance(block, Text)] == [
        "a\ufffd",
        "\ufffdb\ufffd",
    ]


@pytest.mark.rules("A2.25", "R55")
def test_ids_proofs_reasons_errors_and_vendor_blocks_are_utf8_too() -> None:
    result, _ = decode(
        begin(0, "thinking", thinking="", signature="s" + HIGH),
        begin(1, "tool_use", id="i" + HIGH, name="f"),
        begin(2, "server_tool_use", id="s", name="web_search", input={"query": HIGH}),
        delta(2, "input_json_delta", partial_json='{"query":"' + LOW + '"}'),
        begin(3, "web_search_tool_result", tool_use_id="s", content=[{"url": HIGH, "title": LOW}]),
        begin(4, "text", text="t", citations=[{"url": HIGH, "cited_text": HIGH}]),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "odd" + LOW, "stop_details": {"explanation": HIGH}},
        },
    )
    assert isinstance(result, StepAnswer)
    assert str(result).encode()
    assert len(result.searches) == 1
    failed, _ = decode({"type": "error", "error": {"type": "x" + HIGH, "message": LOW}})
    assert str(failed).encode()


_STREAM: list[_Json] = [
    {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}},
    begin(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Hm"),
    delta(0, "signature_delta", signature="s"),
    {"type": "content_block_stop", "index": 0},
    begin(1, "server_tool_use", id="s", name="web_search", input={}),
    delta(1, "input_json_delta", partial_json='{"query":"q"}'),
    {"type": "content_block_stop", "index": 1},
    begin(2, "web_search_tool_result", tool_use_id="s", content=[{"url": "u", "title": "t"}]),
    {"type": "content_block_stop", "index": 2},
    begin(3, "text", text="", citations=[]),
    delta(3, "citations_delta", citation={"url": "u", "cited_text": "c"}),
    delta(3, "text_delta", text="So"),
    {"type": "content_block_stop", "index": 3},
    begin(4, "tool_use", id="t", name="f", input={}, caller={"type": "direct"}),
    delta(4, "input_json_delta", partial_json="{}"),
    {"type": "content_block_stop", "index": 4},
    begin(5, "redacted_thinking", data="x"),
    delta(5, "of_tomorrow", data="y"),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_details": {"explanation": "e"}},
        "usage": {"output_tokens": 1, "output_tokens_details": {"thinking_tokens": 1}},
    },
    {"type": "message_stop"},
]

_SCALAR = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), UNITS,
    st.sampled_from(["text", "tool_use", "error", "message_start", "pause_turn", "{", '{"a":1}']),
)  # fmt: skip
_VALUE = st.recursive(
    _SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["type", "text", "id", "error", "url", "a"]), inner),
    ),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    elif isinstance(value, list):
        children = list(enumerate(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    for key, child in children:
        found.extend(_places(child, (*path, key)))
    return found


_PLACES = _places(_STREAM)


def _replaced(path: tuple[Any, ...], value: Any) -> list[Any]:
    events: Any = copy.deepcopy(_STREAM)
    inner: Any = events
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return events


def _check(result: StepResult, pieces: list[Piece]) -> None:
    """All that leaves is UTF-8, in its place, and can go back."""
    told: dict[int, str] = {}
    for piece in pieces:
        assert piece.text.encode()
        told[piece.block] = told.get(piece.block, "") + piece.text
    assert str(result.content).encode("utf-8")
    if not isinstance(result, StepAnswer):
        return
    for place, block in enumerate(result.content):
        if isinstance(block, Text | Thinking):
            assert told.get(place, "") == block.text
        elif isinstance(block, Opaque):
            assert json.dumps(block.raw, ensure_ascii=False).encode()
    answer = Message("assistant", result.content, model=MODEL.name)
    request = Request(
        model="m", messages=(Message("user", (Text(text="Hi"),)), answer), trailing="now"
    )
    for flags in (AnthropicFlags(), AnthropicFlags(cache_marks=False, unsigned_thinking=True)):
        assert json.loads(encode_request(request, MODEL, flags, stream=True).body)


@pytest.mark.rules("A1.24", "A2.18", "A2.24", "A2.25", "R55")
@given(st.sampled_from(_PLACES), _VALUE)
def test_any_value_in_any_place_raises_nothing_and_leaves_nothing_unsendable(
    path: tuple[Any, ...], value: Any
) -> None:
    _check(*decode(*_replaced(path, value)))


@pytest.mark.rules("A1.24", "A2.20", "A2.25")
@given(st.one_of(_VALUE, st.fixed_dictionaries({"content": st.lists(_VALUE, max_size=4)})))
def test_any_document_raises_nothing(value: Any) -> None:
    pieces: list[Piece] = []
    decoder = MessagesDecoder(PEER, pieces.append)
    decoder.read(json.dumps(value).encode())
    _check(decoder.finish(), pieces)


@pytest.mark.rules("A1.24")
@given(st.lists(st.one_of(st.binary(max_size=12), _VALUE.map(lambda v: json.dumps(v).encode()))))
def test_any_bytes_raise_nothing(parts: list[bytes]) -> None:
    pieces: list[Piece] = []
    decoder = MessagesDecoder(PEER, pieces.append)
    for part in parts:
        decoder.feed(SseEvent(part))
    _check(decoder.finish(), pieces)


@pytest.mark.rules("A1.23", "A2.8")
@given(st.permutations(_STREAM[1:-2]))
def test_any_order_of_events_raises_nothing(events: list[_Json]) -> None:
    _check(*decode(*events, *_STREAM[-2:]))

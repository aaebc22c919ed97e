"""Halves of characters (R55), and events in which anything stands anywhere: nothing raises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.base import Model, Piece, Request, StepAnswer, StepResult
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_agent.providers.openai_responses.encode import encode_request
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_protocol import CallId, Message, Opaque, SseEvent, Text, Thinking, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
HIGH, LOW = "\ud83d", "\ude00"
_Json = dict[str, Any]


def event(kind: str, **fields: Any) -> _Json:
    return {"type": f"response.{kind}", **fields}


def text(delta: str, **more: Any) -> _Json:
    return event("output_text.delta", delta=delta, **more)


def decode(*values: Any) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    decoder = ResponsesDecoder(PEER, pieces.append)
    for value in values:
        decoder.feed(SseEvent(json.dumps(value).encode()))
    return decoder.finish(), pieces


def answer(*values: Any) -> tuple[StepAnswer, list[Piece]]:
    result, pieces = decode(*values, event("completed", response={}))
    assert isinstance(result, StepAnswer)
    return result, pieces


@pytest.mark.rules("A2.22", "A2.24", "R55")
@pytest.mark.parametrize(
    "kind", ["output_text", "refusal", "reasoning_summary_text", "reasoning_text"]
)
def test_two_halves_in_one_part_become_one_character(kind: str) -> None:
    result, pieces = answer(
        event(f"{kind}.delta", output_index=0, delta="a" + HIGH),
        event(f"{kind}.delta", output_index=0, delta=LOW + "b"),
    )
    block = result.content[-1]
    assert isinstance(block, Text | Thinking)
    assert block.text == "a😀b"
    assert [piece.text for piece in pieces] == ["a", "😀b"]


@pytest.mark.rules("A2.22", "R55")
def test_halves_in_names_and_arguments_are_joined() -> None:
    item = {"type": "function_call", "name": "f" + HIGH + LOW, "call_id": "c" + HIGH}
    result, _ = answer(
        event("output_item.added", output_index=0, item=item),
        event("function_call_arguments.delta", output_index=0, delta='{"a":"' + HIGH),
        event("function_call_arguments.delta", output_index=0, delta=LOW + '"}'),
    )
    (block,) = result.content
    assert isinstance(block, ToolCall)
    assert (block.name, block.arguments, block.wire_id) == ("f😀", '{"a":"😀"}', "c\ufffd")


@pytest.mark.rules("A2.23", "R55")
def test_halves_of_parts_that_come_interleaved_never_mix() -> None:
    result, _ = answer(
        text("x" + HIGH, output_index=0, content_index=0),
        text("y" + HIGH, output_index=0, content_index=1),
        text(LOW, output_index=0, content_index=0),
        text(LOW, output_index=0, content_index=1),
    )
    assert [block.text for block in result.content if isinstance(block, Text)] == [
        "x\ufffd\ufffd",  # its words had ended when the next part began
        "y😀",
    ]


@pytest.mark.rules("A2.23", "A2.24", "R55")
@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([text(HIGH)], ["\ufffd"]),
        ([text(LOW)], ["\ufffd"]),
        ([text("a" + HIGH), text("b")], ["a\ufffdb"]),
        ([event("reasoning_text.delta", delta=HIGH), text(LOW + "b")], ["\ufffd", "\ufffdb"]),
        ([text("a" + HIGH), event("output_text.done", text="a😀b")], ["a😀b"]),
        ([event("output_text.done", text="a" + HIGH + LOW + HIGH)], ["a😀\ufffd"]),
    ],
)
def test_a_half_that_never_meets_its_other_half_is_replaced(
    values: list[_Json], texts: list[str]
) -> None:
    result, pieces = answer(*values)
    found = [block.text for block in result.content if isinstance(block, Text | Thinking)]
    assert found == texts
    assert "".join(piece.text for piece in pieces) == "".join(texts)


@pytest.mark.rules("A2.25", "R55")
def test_what_is_kept_of_items_is_utf8_too() -> None:
    output = [
        {"type": "reasoning", "id": HIGH, "encrypted_content": LOW},
        {"type": "odd" + HIGH, "deep": [{HIGH: LOW}]},
        {"type": "function_call", "name": "f", "call_id": "c", "extra": HIGH},
        {"type": "web_search_call", "action": {"type": "search", "query": HIGH}},
        {
            "type": "message",
            "phase": HIGH,
            "content": [
                {
                    "type": "output_text",
                    "text": "Hi",
                    "annotations": [{"type": "url_citation", "url": "https://a" + HIGH}],
                }
            ],
        },
    ]
    details = {"reason": "odd" + HIGH}
    response = {"output": output, "status": "incomplete", "incomplete_details": details}
    result, _ = decode(event("incomplete", response=response))
    assert isinstance(result, StepAnswer)
    assert result.raw_stop_reason == "odd\ufffd"
    assert "\ufffd" in repr(result.searches)
    assert json.dumps(repr(result), ensure_ascii=False).encode()
    failed, _ = decode(event("failed", response={"error": {"message": HIGH, "code": LOW}}))
    assert str(failed).encode()


_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.sampled_from([HIGH, LOW, "a", "é", "{", '"']), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=3,
)
_SMALL = st.sampled_from([0, 1, 2])
_NAME = st.sampled_from(["a", "b", "c"])
_KINDS = [
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_part.done",
    "response.content_part.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_text.annotation.added",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
]
_PART = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["output_text", "refusal", "summary_text", "reasoning_text"]),
        "text": _VALUE,
        "refusal": _VALUE,
        "annotations": _VALUE | st.lists(st.fixed_dictionaries({"url": _VALUE, "title": _VALUE})),
    },
)
_ITEM = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["message", "reasoning", "function_call", "web_search_call", "custom_tool_call"]
        )
        | _VALUE,
        "id": _NAME | _VALUE,
        "call_id": _NAME | _VALUE,
        "name": _VALUE,
        "arguments": _VALUE,
        "role": st.sampled_from(["assistant", "user"]) | _VALUE,
        "content": st.lists(_PART, max_size=3) | _VALUE,
        "summary": st.lists(_PART, max_size=3) | _VALUE,
        "encrypted_content": _VALUE,
        "phase": _VALUE,
        "action": st.fixed_dictionaries(
            {"type": st.just("search")}, optional={"queries": _VALUE, "sources": _VALUE}
        )
        | _VALUE,
    },
)
_RESPONSE = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["completed", "incomplete", "queued"]) | _VALUE,
        "output": st.lists(_ITEM, max_size=4) | _VALUE,
        "usage": _VALUE,
        "error": _VALUE,
        "incomplete_details": _VALUE,
    },
)
_EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from(_KINDS) | _VALUE},
    optional={
        "delta": _VALUE,
        "output_index": _SMALL | _VALUE,
        "item_id": _NAME | _VALUE,
        "content_index": _SMALL | _VALUE,
        "summary_index": _SMALL | _VALUE,
        "text": _VALUE,
        "arguments": _VALUE,
        "annotation": _VALUE,
        "part": _PART | _VALUE,
        "item": _ITEM | _VALUE,
        "response": _RESPONSE | _VALUE,
        "error": _VALUE,
    },
)


def _check(result: StepResult, pieces: list[Piece]) -> None:
    told: dict[int, str] = {}
    for piece in pieces:
        assert piece.text
        assert piece.text.encode()
        told[piece.block] = told.get(piece.block, "") + piece.text
    if not isinstance(result, StepAnswer):
        return
    assert json.dumps(repr(result), ensure_ascii=False).encode()
    for place, block in enumerate(result.content):
        if isinstance(block, Text | Thinking):
            assert told[place] == block.text
        elif isinstance(block, Opaque):
            assert place not in told
    named = tuple(
        ToolCall(id=CallId(str(place)), name=block.name, arguments=block.arguments)
        if isinstance(block, ToolCall)
        else block
        for place, block in enumerate(result.content)
    )
    request = Request(model="m", messages=(Message("assistant", named),))
    body = encode_request(request, Model(provider="p", id="m"), ResponsesFlags(), stream=True).body
    assert isinstance(json.loads(body)["input"], list)


@pytest.mark.rules("A1.24", "A2.23", "A2.25", "R55")
@given(st.lists(_EVENT, max_size=5))
def test_whatever_stands_in_an_event_nothing_raises_and_all_is_utf8(values: list[Any]) -> None:
    _check(*decode(*values))
    _check(*decode(*values, event("completed", response={})))


@pytest.mark.rules("A1.24", "A2.20", "A2.25")
@given(_RESPONSE | _VALUE)
def test_whatever_stands_in_a_document_nothing_raises(value: Any) -> None:
    pieces: list[Piece] = []
    decoder = ResponsesDecoder(PEER, pieces.append)
    decoder.read(json.dumps(value).encode())
    _check(decoder.finish(), pieces)


@pytest.mark.rules("A1.24")
@given(st.binary(max_size=40))
def test_whatever_bytes_come_there_is_one_result(data: bytes) -> None:
    decoder = ResponsesDecoder(PEER, lambda _: None)
    decoder.feed(SseEvent(data))
    assert isinstance(decoder.finish(), StepResult)
    whole = ResponsesDecoder(PEER, lambda _: None)
    whole.read(data)
    assert isinstance(whole.finish(), StepResult)

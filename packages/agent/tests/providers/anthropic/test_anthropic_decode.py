"""What the decoder of the Messages API stands, rule by rule."""

import json
from typing import Any

import pytest

from towline_agent.providers.answer import NOTICE_MAX_CHARS, STEP_MAX_NOTICES
from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.base import (
    ArgumentsPiece,
    Piece,
    StepAnswer,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import Peer
from towline_protocol import Block, Opaque, SseEvent, Text, Thinking, ToolCall, Usage

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
_Json = dict[str, Any]
STOP: _Json = {"type": "message_stop"}


def feed(*events: _Json | bytes, names: bool = True) -> tuple[MessagesDecoder, list[Piece]]:
    pieces: list[Piece] = []
    decoder = MessagesDecoder(PEER, pieces.append)
    for event in events:
        if isinstance(event, bytes):
            decoder.feed(SseEvent(event))
        else:
            name = str(event.get("type", "")) if names else ""
            decoder.feed(SseEvent(json.dumps(event).encode(), event=name))
    return decoder, pieces


def decode(*events: _Json | bytes) -> StepResult:
    return feed(*events)[0].finish()


def answer(*events: _Json | bytes) -> StepAnswer:
    result = decode(*events)
    assert isinstance(result, StepAnswer), result
    return result


def read(document: Any) -> StepResult:
    decoder = MessagesDecoder(PEER, lambda _: None)
    decoder.read(document if isinstance(document, bytes) else json.dumps(document).encode())
    return decoder.finish()


def start(id_: str = "msg_1", **usage: int) -> _Json:
    message: _Json = {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "content": [],
        "usage": usage,
    }
    return {"type": "message_start", "message": message}


def begin(index: int | None, kind: str, **fields: Any) -> _Json:
    event: _Json = {"type": "content_block_start", "content_block": {"type": kind, **fields}}
    return event if index is None else {**event, "index": index}


def delta(index: int | None, kind: str, **fields: Any) -> _Json:
    event: _Json = {"type": "content_block_delta", "delta": {"type": kind, **fields}}
    return event if index is None else {**event, "index": index}


def end(index: int | None = 0) -> _Json:
    event: _Json = {"type": "content_block_stop"}
    return event if index is None else {**event, "index": index}


def stop(reason: str | None = "end_turn", **usage: int) -> _Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def words(text: str, index: int = 0) -> list[_Json]:
    return [
        begin(index, "text", text=""), delta(index, "text_delta", text=text), end(index),
    ]  # fmt: skip


def called(index: int, *parts: str, id_: str = "toolu_1", name: str = "f") -> list[_Json]:
    return [
        begin(index, "tool_use", id=id_, name=name, input={}),
        *(delta(index, "input_json_delta", partial_json=part) for part in parts),
        end(index),
    ]


def calls(blocks: tuple[Block, ...]) -> list[tuple[str, str, str | None]]:
    return [(b.name, b.arguments, b.wire_id) for b in blocks if isinstance(b, ToolCall)]


@pytest.mark.rules("A1.23", "A2.37")
def test_each_piece_is_told_at_its_place() -> None:
    decoder, pieces = feed(
        start(),
        begin(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Hm"),
        delta(0, "signature_delta", signature="ab"),
        delta(0, "signature_delta", signature="cd"),
        end(0),
        *words("Hi", 1),
        *called(2, "", '{"a"', ":1}"),
        stop("tool_use"),
        STOP,
    )
    assert decoder.finish().content == (
        Thinking(text="Hm", signature="abcd"),
        Text(text="Hi"),
        ToolCall(id="", name="f", arguments='{"a":1}', wire_id="toolu_1"),  # pyright: ignore[reportArgumentType]
    )
    assert pieces == [
        ThinkingPiece(0, "Hm"),
        TextPiece(1, "Hi"),
        ArgumentsPiece(2, '{"a"'),
        ArgumentsPiece(2, ":1}"),
    ]


@pytest.mark.rules("R37")
def test_a_block_without_a_word_takes_no_place() -> None:
    result = answer(
        begin(0, "text", text=""),
        delta(0, "text_delta", text=""),
        end(0),
        begin(1, "thinking", thinking=""),
        end(1),
        *words("Hi", 2),
        stop(),
    )
    assert result.content == (Text(text="Hi"),)


@pytest.mark.rules("A2.37")
def test_thinking_that_shows_nothing_keeps_its_proof() -> None:
    result = answer(
        begin(0, "thinking", thinking=""),
        delta(0, "signature_delta", signature="s"),
        end(0),
        stop(),
    )
    assert result.content == (Thinking(text="", signature="s"),)


@pytest.mark.rules("A2.38", "A1.3")
def test_redacted_thinking_is_kept_in_its_place() -> None:
    result = answer(
        *words("a"), begin(1, "redacted_thinking", data="xyz"), end(1), *words("b", 2), stop()
    )
    assert result.content[1] == Thinking(text="", signature="xyz", redacted=True)


@pytest.mark.rules("A2.38", "A1.8")
def test_vendor_blocks_are_kept_with_their_input_and_unknown_pieces() -> None:
    result = answer(
        begin(0, "server_tool_use", id="s1", name="web_fetch", input={}, caller={"type": "direct"}),
        delta(0, "input_json_delta", partial_json='{"url"'),
        delta(0, "input_json_delta", partial_json=':"u"}'),
        end(0),
        begin(1, "web_fetch_tool_result", tool_use_id="s1", content={"a": [1]}),
        end(1),
        begin(2, "compaction", content=None, encrypted_content=None),
        delta(2, "compaction_delta", content="all", encrypted_content="zz"),
        end(2),
        begin(3, "of_tomorrow", text="a"),
        delta(3, "tomorrow_delta", text="b", more={"c": 1}),
        end(3),
        stop(),
        STOP,
    )
    assert [block.raw for block in result.content if isinstance(block, Opaque)] == [
        {
            "type": "server_tool_use",
            "id": "s1",
            "name": "web_fetch",
            "input": {"url": "u"},
            "caller": {"type": "direct"},
        },
        {"type": "web_fetch_tool_result", "tool_use_id": "s1", "content": {"a": [1]}},
        {"type": "compaction", "content": "all", "encrypted_content": "zz"},
        {"type": "of_tomorrow", "text": "ab", "more": {"c": 1}},
    ]


@pytest.mark.rules("A2.38")
@pytest.mark.parametrize(
    ("reason", "kept"), [("max_tokens", False), ("end_turn", False), ("tool_use", True)]
)
def test_a_vendor_call_without_an_answer_is_kept_only_while_one_may_come(
    reason: str, *, kept: bool
) -> None:
    result = answer(
        begin(0, "server_tool_use", id="s1", name="web_search", input={"query": "q"}),
        end(0),
        *called(1, "{}"),
        stop(reason),
    )
    (block,) = [block for block in result.content if isinstance(block, Opaque)]
    assert bool(block.raw) is kept


@pytest.mark.rules("A2.38")
def test_a_vendor_call_whose_input_is_broken_has_nothing_to_send_back() -> None:
    result = answer(
        begin(0, "server_tool_use", id="s1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query": "wea'),
        stop("max_tokens"),
    )
    assert result.content == (Opaque(dialect="anthropic", raw={}),)
    assert result.searches == ()


@pytest.mark.rules("A2.63", "A2.62")
def test_a_search_becomes_an_artifact_and_its_citations_stay_beside_the_words() -> None:
    cite = {"type": "web_search_result_location", "url": "u1", "cited_text": " so. "}
    page = {"type": "web_search_result", "url": "u1", "title": "T", "encrypted_content": "e"}
    result = answer(
        begin(0, "server_tool_use", id="s1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query":"why"}'),
        end(0),
        begin(
            1, "web_search_tool_result", tool_use_id="s1", content=[page, 3, {"title": "no url"}]
        ),
        end(1),
        begin(2, "text", text="", citations=[]),
        delta(2, "citations_delta", citation=cite),
        delta(2, "text_delta", text="So."),
        end(2),
        *words("!", 3),
        begin(4, "web_search_tool_result", tool_use_id="s2", content={"error_code": "too_long"}),
        end(4),
        stop(),
    )
    assert result.content[2:5] == (
        Text(text="So."),
        Opaque(dialect="anthropic", raw={"citations": [cite]}),
        Text(text="!"),
    )
    first, second = result.searches
    assert (first.query, second.error_code) == ("why", "too_long")
    assert [(item.title, item.url, item.snippet) for item in first.items] == [("T", "u1", "so.")]


@pytest.mark.rules("A1.14", "A2.14")
@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("of_tomorrow", "end_turn"),
        ("compaction", "end_turn"),
    ],
)
def test_stop_reasons_are_ours_and_the_raw_word_is_kept(raw: str, meant: str) -> None:
    result = answer(*words("Hi"), stop(raw), STOP)
    assert (result.stop_reason, result.raw_stop_reason) == (meant, raw)


@pytest.mark.rules("A2.14")
@pytest.mark.parametrize("raw", ["tool_use", "end_turn", None, "of_tomorrow"])
def test_a_call_counts_whatever_the_stop_reason_says(raw: str | None) -> None:
    result = answer(*called(0, "{}"), stop(raw), STOP)
    assert result.stop_reason == "tool_calls"


@pytest.mark.rules("A2.21")
def test_a_call_that_is_cut_by_length_stays_broken() -> None:
    result = answer(begin(0, "tool_use", id="t", name="f", input={}), stop("max_tokens"), STOP)
    assert calls(result.content) == [("f", "", "t")]
    result = answer(*called(0, '{"pa'), stop("max_tokens"), STOP)
    assert calls(result.content) == [("f", '{"pa', "toolu_1")]


@pytest.mark.rules("R19", "A2.12")
def test_arguments_may_come_whole_late_or_never() -> None:
    cases: list[tuple[_Json, str]] = [
        ({"input": {}}, "{}"),
        ({}, "{}"),
        ({"input": None}, "{}"),
        ({"input": {"a": 1}}, '{"a":1}'),
        ({"input": '{"a":1}'}, '{"a":1}'),
    ]
    for given, meant in cases:
        result = answer(begin(0, "tool_use", id="t", name="f", **given), end(), stop("tool_use"))
        assert calls(result.content) == [("f", meant, "t")]
    result = answer(
        begin(0, "tool_use", id="t", name="f", input={"a": 1}),
        delta(0, "input_json_delta", partial_json='{"a":1}'),
        stop("tool_use"),
    )
    assert calls(result.content) == [("f", '{"a":1}', "t")]


@pytest.mark.rules("A2.8")
def test_blocks_may_come_interleaved_or_begin_anew_at_a_number() -> None:
    result = answer(
        begin(0, "tool_use", id="a", name="f"),
        begin(1, "tool_use", id="b", name="g"),
        delta(0, "input_json_delta", partial_json='{"x"'),
        delta(1, "input_json_delta", partial_json="{}"),
        delta(0, "input_json_delta", partial_json=":1}"),
        begin(1, "tool_use", id="c", name="h"),
        stop("tool_use"),
    )
    assert calls(result.content) == [("f", '{"x":1}', "a"), ("g", "{}", "b"), ("h", "{}", "c")]


@pytest.mark.rules("A1.13")
def test_usage_grows_and_knows_its_parts() -> None:
    result = answer(
        start(input_tokens=9, cache_read_input_tokens=100, output_tokens=1),
        *words("Hi"),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {
                "input_tokens": 0,
                "output_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
                "output_tokens_details": {"thinking_tokens": 20},
            },
        },
    )
    assert result.usage == Usage(input=9, output=30, cache_read=100, cache_write=7, reasoning=20)
    odd = {"input_tokens": True, "output_tokens": -1, "cache_read_input_tokens": "x"}
    assert answer(*words("a"), {**stop(), "usage": odd}).usage == Usage()


@pytest.mark.rules("A1.14")
def test_why_a_model_refused_is_said() -> None:
    details = {"type": "refusal", "explanation": "No " * 400}
    event = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    result = answer(start(), event, STOP)
    assert result.stop_reason == "refusal"
    (notice,) = result.notices
    assert len(notice) == NOTICE_MAX_CHARS
    many = [
        {"type": "message_delta", "delta": {"stop_details": {"explanation": f"no {n}"}}}
        for n in range(STEP_MAX_NOTICES + 9)
    ]
    assert len(answer(start(), *many, STOP).notices) == STEP_MAX_NOTICES


@pytest.mark.rules("A2.20", "A2.4", "A2.19")
def test_a_whole_document_is_the_same_answer() -> None:
    content: list[Any] = [
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        {"type": "text", "text": "Hi", "citations": [{"type": "c"}]},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "ü"}},
        "odd",
    ]
    document: _Json = {"id": "m", "content": content, "stop_reason": "tool_use", "usage": {}}
    result = read(b"\n " + json.dumps(document).encode())
    assert isinstance(result, StepAnswer)
    assert result.content[:3] == (
        Thinking(text="Hm", signature="s"),
        Text(text="Hi"),
        Opaque(dialect="anthropic", raw={"citations": [{"type": "c"}]}),
    )
    assert calls(result.content) == [("f", '{"a":"ü"}', "t")]
    assert result.stop_reason == "tool_calls"


@pytest.mark.rules("A1.6")
def test_a_call_that_a_program_made_says_so_when_it_goes_back() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "s"}
    result = answer(
        begin(0, "tool_use", id="t", name="f", input={}, caller=caller),
        begin(1, "tool_use", id="u", name="f", input={}, caller={"type": "direct"}),
        stop("tool_use"),
    )
    made = [block.signature for block in result.content if isinstance(block, ToolCall)]
    assert made == [json.dumps(caller, separators=(",", ":")), None]

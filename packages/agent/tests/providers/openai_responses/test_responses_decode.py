"""From the events of Responses to one result: how answers come, end and fail."""

import json
from typing import Any

import pytest

from towline_agent.errors import (
    ContextOverflow,
    ProviderUnavailable,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
)
from towline_agent.providers.answer import ANSWER_MAX_CHARS
from towline_agent.providers.base import (
    ArgumentsPiece,
    Piece,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import Peer, network_error
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_agent.providers.transport import TransportFailed
from towline_protocol import Opaque, SseEvent, Text, Thinking, ToolCall, Usage

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
_Json = dict[str, Any]


def event(kind: str, **fields: Any) -> _Json:
    return {"type": f"response.{kind}", **fields}


def added(index: int, **item: Any) -> _Json:
    return event("output_item.added", output_index=index, item=item)


def ended(index: int, **item: Any) -> _Json:
    return event("output_item.done", output_index=index, item=item)


def text(delta: str, index: int = 0, **more: Any) -> _Json:
    return event("output_text.delta", output_index=index, content_index=0, delta=delta, **more)


def said(words: str, **more: Any) -> _Json:
    return {"type": "message", "content": [{"type": "output_text", "text": words}], **more}


def completed(*output: _Json, **more: Any) -> _Json:
    return event("completed", response={"status": "completed", "output": list(output), **more})


def decode(*values: _Json | bytes) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    decoder = ResponsesDecoder(PEER, pieces.append)
    for value in values:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        decoder.feed(SseEvent(data))
    return decoder.finish(), pieces


def answer(*values: _Json | bytes) -> StepAnswer:
    result, _ = decode(*values)
    assert isinstance(result, StepAnswer), result
    return result


def failed(*values: _Json | bytes) -> StepFailed:
    result, _ = decode(*values)
    assert isinstance(result, StepFailed), result
    return result


@pytest.mark.rules("A1.22", "A1.23", "A2.30")
def test_words_are_told_as_they_come() -> None:
    result, pieces = decode(
        event("created", response={"status": "in_progress", "output": []}),
        event("in_progress", response={}),
        {"type": "keepalive", "sequence_number": 3},
        added(0, type="message", role="assistant", content=[]),
        text("Hel"),
        text(""),
        text("lo"),
        completed(said("Hello"), usage={"input_tokens": 3, "output_tokens": 2}),
    )
    assert result == StepAnswer(
        content=(Text(text="Hello"),),
        stop_reason="end_turn",
        raw_stop_reason="completed",
        usage=Usage(input=3, output=2),
    )
    assert pieces == [TextPiece(0, "Hel"), TextPiece(0, "lo")]


@pytest.mark.rules("A2.28", "A1.8")
def test_reasoning_is_told_as_thinking_and_kept_whole_before_it() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [
            {"type": "summary_text", "text": "One."},
            {"type": "summary_text", "text": "Two."},
        ],
        "encrypted_content": "xyz",
    }
    result, pieces = decode(
        added(0, type="reasoning", id="rs_1", summary=[]),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="One"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="."),
        event("reasoning_summary_text.done", output_index=0, summary_index=0, text="One."),
        event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Two."),
        ended(0, **item),
        ended(1, **said("Hi")),
        completed(),
    )
    assert result.content == (
        Opaque(dialect="openai_responses", raw=item),
        Thinking(text="One."),
        Thinking(text="Two."),
        Text(text="Hi"),
    )
    assert pieces == [
        ThinkingPiece(1, "One"),
        ThinkingPiece(1, "."),
        ThinkingPiece(2, "Two."),
        TextPiece(3, "Hi"),
    ]


@pytest.mark.rules("A1.8")
def test_what_a_message_holds_besides_its_words_is_kept_before_them() -> None:
    mark = {"type": "url_citation", "url": "https://a.test", "title": "A"}
    part = {"type": "output_text", "text": "Hi", "annotations": [mark], "logprobs": [1]}
    item = {"type": "message", "id": "msg_1", "phase": "commentary", "role": "assistant"}
    result = answer(
        added(0, **item, content=[]),
        text("Hi"),
        ended(0, **item, status="completed", content=[part]),
        completed(),
    )
    kept, words = result.content
    assert isinstance(kept, Opaque)
    assert kept.raw == {
        **item,
        "status": "completed",
        "content": [{"type": "output_text", "annotations": [mark]}],
    }
    assert words == Text(text="Hi")


@pytest.mark.rules("A1.6", "A1.14")
def test_calls_that_come_interleaved_stay_apart() -> None:
    call = {"type": "function_call", "arguments": ""}
    result, pieces = decode(
        added(0, **call, id="fc_a", call_id="call_a", name="f"),
        added(1, **call, id="fc_b", call_id="call_b", name="g"),
        event("function_call_arguments.delta", output_index=0, item_id="fc_a", delta='{"a":'),
        event("function_call_arguments.delta", output_index=1, item_id="fc_b", delta="{}"),
        event("function_call_arguments.delta", output_index=0, item_id="fc_a", delta="1}"),
        event("function_call_arguments.done", output_index=0, item_id="fc_a", arguments='{"a":1}'),
        completed(),
    )
    first, second = result.content
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.name, first.arguments, first.wire_id) == ("f", '{"a":1}', "call_a")
    assert (second.name, second.arguments, second.wire_id) == ("g", "{}", "call_b")
    assert json.loads(first.signature or "") == {"id": "fc_a"}
    assert pieces == [
        ArgumentsPiece(0, '{"a":'),
        ArgumentsPiece(1, "{}"),
        ArgumentsPiece(0, "1}"),
    ]
    assert isinstance(result, StepAnswer)
    assert result.stop_reason == "tool_calls"


@pytest.mark.rules("A2.31", "A1.8")
@pytest.mark.parametrize(
    "kind", ["web_search_call", "custom_tool_call", "mcp_call", "compaction", "never_heard_of"]
)
def test_items_that_only_the_vendor_understands_keep_their_place(kind: str) -> None:
    item = {"type": kind, "id": "x_1", "status": "completed", "deep": {"list": [1, None, "é"]}}
    result = answer(
        ended(0, **said("Before")),
        added(1, type=kind, id="x_1", status="in_progress"),
        event(f"{kind}.in_progress", output_index=1, item_id="x_1"),
        event(f"{kind}_input.delta", output_index=1, item_id="x_1", delta={"any": 1}),
        added(2, type="message", role="assistant"),
        text("After", 2),
        ended(1, **item),
        completed(),
    )
    kept = Opaque(dialect="openai_responses", raw=item)
    assert result.content == (Text(text="Before"), kept, Text(text="After"))
    assert result.stop_reason == "end_turn"


@pytest.mark.rules("A2.31")
def test_a_vendor_item_that_never_became_whole_is_not_kept() -> None:
    result = answer(added(0, type="web_search_call", id="ws_1", status="in_progress"), completed())
    assert result.content == (Opaque(dialect="openai_responses"),)


@pytest.mark.rules("A1.14", "A2.30")
def test_a_refusal_is_words_with_its_own_stop_reason() -> None:
    part = {"type": "refusal", "refusal": "I cannot."}
    streamed = answer(
        added(0, type="message", id="msg_1", role="assistant"),
        event("refusal.delta", output_index=0, content_index=0, delta="I can"),
        event("refusal.delta", output_index=0, content_index=0, delta="not."),
        event("refusal.done", output_index=0, content_index=0, refusal="I cannot."),
        ended(0, type="message", id="msg_1", role="assistant", content=[part]),
        completed(),
    )
    whole = answer(completed({"type": "message", "role": "assistant", "content": [part]}))
    for result in (streamed, whole):
        assert result.content[-1] == Text(text="I cannot.")
        assert result.stop_reason == "refusal"
    kept = streamed.content[0]
    assert isinstance(kept, Opaque)
    assert kept.raw["content"] == [{"type": "refusal"}]


@pytest.mark.rules("A1.14", "A2.30", "A2.21")
@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "refusal"),
        ("something_new", "end_turn"),
    ],
)
def test_an_incomplete_answer_says_why_it_ended(reason: str, stop: str) -> None:
    response: _Json = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    result = answer(text("So far"), event("incomplete", response=response))
    assert (result.stop_reason, result.raw_stop_reason) == (stop, reason)
    assert result.content == (Text(text="So far"),)


@pytest.mark.rules("A2.21")
def test_arguments_that_a_limit_cut_stay_broken() -> None:
    response = {"incomplete_details": {"reason": "max_output_tokens"}}
    call = {"type": "function_call", "name": "f", "call_id": "call_1", "arguments": ""}
    for deltas, arguments in ((['{"a'], '{"a'), ([], "")):
        pieces = [event("function_call_arguments.delta", output_index=0, delta=d) for d in deltas]
        result = answer(added(0, **call), *pieces, event("incomplete", response=response))
        (block,) = result.content
        assert isinstance(block, ToolCall)
        assert block.arguments == arguments
        assert result.stop_reason == "max_tokens"
    assert answer(added(0, **call), completed()).content[0] == ToolCall(
        id=block.id, name="f", arguments="{}", wire_id="call_1"
    )


@pytest.mark.rules("A2.17", "A2.30", "A3.20")
@pytest.mark.parametrize(
    ("value", "kind", "delay_s"),
    [
        (
            event("failed", response={"error": {"code": "server_error", "message": "Oh."}}),
            ProviderUnavailable,
            None,
        ),
        (
            event(
                "failed",
                response={
                    "status": "failed",
                    "error": {
                        "code": "rate_limit_exceeded",
                        "message": "Rate limit reached. Please try again in 2s.",
                    },
                },
            ),
            RateLimited,
            2.0,
        ),
        (
            event("failed", response={"error": {"code": "invalid_prompt", "message": "No."}}),
            RequestRejected,
            None,
        ),
        (event("failed", response={"status": "failed", "error": None}), ProviderUnavailable, None),
        (event("cancelled", response={"status": "cancelled"}), ProviderUnavailable, None),
        (event("failed", response={"error": "rate limit reached"}), RateLimited, None),
        (
            {"type": "error", "code": "context_length_exceeded", "message": "Too long."},
            ContextOverflow,
            None,
        ),
        ({"type": "error", "error": {"type": "rate_limit_error"}}, RateLimited, None),
        ({"error": {"message": "busy", "code": 503}}, ProviderUnavailable, None),
    ],
)
def test_a_failure_in_the_stream_keeps_its_kind(
    value: _Json, kind: type, delay_s: float | None
) -> None:
    result = failed(text("So far"), value, text(" and on"), completed())
    assert type(result.error) is kind
    assert result.error.retry_after_s == delay_s
    assert result.content == (Text(text="So far"),)
    assert result.streamed
    assert not failed(value).streamed


@pytest.mark.rules("A2.17")
@pytest.mark.parametrize("data", [b'{"message":"overloaded"}', b"overloaded", b'{"type":"odd"}'])
def test_an_event_named_error_fails_the_step_whatever_it_holds(data: bytes) -> None:
    decoder = ResponsesDecoder(PEER, lambda _: None)
    assert decoder.feed(SseEvent(data, "error"))
    result = decoder.finish()
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)


@pytest.mark.rules("A2.30", "A3.9", "R09")
@pytest.mark.parametrize(
    "values",
    [
        [],
        [event("created", response={})],
        [text("So far")],
        [ended(0, **said("So far"))],
        [text("So far"), b"[DONE]"],
        [b"[DONE]"],
        [added(0, type="function_call", name="f", call_id="c"), b"[DONE]"],
    ],
)
def test_a_stream_without_its_end_is_incomplete_and_keeps_the_words(values: list[Any]) -> None:
    result = failed(*values)
    assert isinstance(result.error, ResponseMalformed)
    assert result.error.reason == "incomplete"
    assert all(block == Text(text="So far") for block in result.content)


@pytest.mark.rules("A2.30")
@pytest.mark.parametrize("error", [None, {}, {"code": None, "message": ""}, "", 0, []])
def test_an_error_that_says_nothing_is_none(error: Any) -> None:
    assert answer(text("Hi"), completed(error=error)).content == (Text(text="Hi"),)


@pytest.mark.rules("A3.9", "A2.18")
def test_done_ends_a_stream_whose_items_all_came_whole() -> None:
    call = {"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}
    result = answer(text("Hi"), ended(0, **said("Hi")), ended(1, **call), b"[DONE]")
    assert result.content[0] == Text(text="Hi")
    assert (result.stop_reason, result.raw_stop_reason) == ("tool_calls", None)


@pytest.mark.rules("A2.18")
def test_nothing_after_the_end_changes_the_answer() -> None:
    pieces: list[Piece] = []
    decoder = ResponsesDecoder(PEER, pieces.append)
    for value in (text("Hi"), completed()):
        over = decoder.feed(SseEvent(json.dumps(value).encode()))
    assert over
    for data in (b"[DONE]", json.dumps(text("more")).encode(), b"{broken", b'{"type":"error"}'):
        assert decoder.feed(SseEvent(data))
    result = decoder.fail(network_error(PEER, TransportFailed("lost"), 1.0))
    assert result.content == (Text(text="Hi"),)
    assert isinstance(result, StepAnswer)
    assert len(pieces) == 1


@pytest.mark.rules("A3.9", "A1.24")
def test_a_connection_that_breaks_before_the_end_fails_the_step() -> None:
    decoder = ResponsesDecoder(PEER, lambda _: None)
    decoder.feed(SseEvent(json.dumps(text("Hi")).encode()))
    result = decoder.fail(network_error(PEER, TransportFailed("lost"), 1.0))
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)
    assert result.content == (Text(text="Hi"),)


@pytest.mark.rules("A2.24", "A2.30")
def test_signs_of_life_are_no_answer_and_rubbish_is_malformed() -> None:
    for sign in (b"", b" ", b"null", b"1", b'"ping"', b"[]", b"{}"):
        assert answer(sign, text("Hi"), completed()).content == (Text(text="Hi"),)
    result = failed(text("Hi"), b'{"type": "response.output_text.delta", ')
    assert result.error.reason == "malformed"
    assert result.content == (Text(text="Hi"),)


@pytest.mark.rules("A2.4", "A2.20", "A3.19")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error":{"message":"busy","code":503}}', ProviderUnavailable),
        (
            b'{"status":"failed","error":{"code":"server_error","message":"Oh."}}',
            ProviderUnavailable,
        ),
        (b'{"status":"failed","output":[]}', ProviderUnavailable),
        (b'{"output":[],"error":{"code":"rate_limit_exceeded","message":"no"}}', RateLimited),
        (b'{"status":"queued","output":[]}', ResponseMalformed),
        (b"<html><title>Sign in</title></html>", ResponseMalformed),
        (b'{"choices":[{"message":{"content":"Hi"}}]}', ResponseMalformed),
        (b"[]", ResponseMalformed),
        (b"", ResponseMalformed),
        (b"[" * 100_000, ResponseMalformed),
    ],
)
def test_a_document_without_an_answer_is_an_error(body: bytes, kind: type) -> None:
    decoder = ResponsesDecoder(PEER, lambda _: None)
    decoder.read(body)
    result = decoder.finish()
    assert isinstance(result, StepFailed)
    assert type(result.error) is kind


@pytest.mark.rules("A2.4", "A2.19")
def test_a_document_is_read_into_the_same_blocks_as_a_stream() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        said("Hi", id="msg_1"),
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    usage = {"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}
    document = {"status": "completed", "output": output, "usage": usage}
    told: list[Piece] = []
    decoder = ResponsesDecoder(PEER, told.append)
    decoder.read(b"\n " + json.dumps(document).encode())
    result = decoder.finish()
    streamed, pieces = decode(
        *(ended(place, **item) for place, item in enumerate(output)), completed(usage=usage)
    )
    assert result == streamed
    assert told == pieces
    assert result.usage == Usage(input=2, output=2, cache_read=1)


@pytest.mark.rules("A1.13")
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({}, Usage()),
        ([1], Usage()),
        ({"input_tokens": "9", "output_tokens": None, "input_tokens_details": []}, Usage()),
        ({"input_tokens": 5, "output_tokens_details": None}, Usage(input=5)),
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(input=30, output=50, cache_read=60, cache_write=10, reasoning=40),
        ),
    ],
)
def test_tokens_are_counted_once(usage: Any, expected: Usage) -> None:
    assert answer(text("Hi"), completed(usage=usage)).usage == expected
    assert failed(event("failed", response={"usage": usage})).usage == expected


@pytest.mark.rules("A1.23")
def test_an_answer_without_an_end_is_broken_off() -> None:
    half = "x" * (ANSWER_MAX_CHARS // 2 + 1)
    result = failed(text(half), text(half), completed())
    assert result.error.reason == "too_long"
    assert result.content == (Text(text=half),)
    empty = failed(*(added(n, type="odd") for n in range(ANSWER_MAX_CHARS // 16 + 1)), completed())
    assert empty.error.reason == "too_long"
    whole = failed(completed(*({"type": "odd"} for _ in range(ANSWER_MAX_CHARS // 16 + 1))))
    assert whole.error.reason == "too_long"


@pytest.mark.rules("A1.8")
def test_what_is_too_large_to_keep_is_left_out_and_said() -> None:
    huge = {"type": "image_generation_call", "id": "ig_1", "result": "x" * (9 * ANSWER_MAX_CHARS)}
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    result = answer(
        ended(0, **huge), ended(1, type="odd", deep=deep), ended(2, **said("Hi")), completed()
    )
    empty = Opaque(dialect="openai_responses")
    assert result.content == (empty, empty, Text(text="Hi"))
    assert len(result.notices) == 1

"""Answers of the Messages API that break, end early, pause or come in odd dress."""

import json
from typing import Any

import pytest

from towline_agent.errors import (
    AuthenticationFailed,
    ModelNotFound,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
)
from towline_agent.providers.answer import ANSWER_MAX_CHARS
from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.vendor_blocks import VENDOR_MAX_CHARS
from towline_agent.providers.base import (
    Piece,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
)
from towline_agent.providers.errors import Peer, malformed_error
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


def failure(*events: _Json | bytes) -> StepFailed:
    result = decode(*events)
    assert isinstance(result, StepFailed), result
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


@pytest.mark.rules("R09", "A3.9", "A2.37")
def test_a_stream_that_ends_inside_is_incomplete_and_keeps_its_words() -> None:
    failed = failure(
        start(input_tokens=5),
        *words("Well"),
        begin(1, "tool_use", id="t", name="f", input={}),
        delta(1, "input_json_delta", partial_json='{"pa'),
    )
    assert (type(failed.error), failed.error.reason) == (ResponseMalformed, "incomplete")
    assert failed.content == (Text(text="Well"),)
    assert failed.streamed
    assert failed.usage == Usage(input=5)
    assert not failure().streamed


@pytest.mark.rules("A3.9", "A2.18")
def test_a_stop_reason_or_an_end_mark_makes_an_answer_whole() -> None:
    for last in (stop(), STOP, b"[DONE]"):
        assert answer(*words("Hi"), last).content == (Text(text="Hi"),)
    lost = malformed_error(PEER)
    decoder, _ = feed(*words("Hi"), stop())
    assert isinstance(decoder.fail(lost), StepAnswer)
    decoder, _ = feed(*words("Hi"))
    assert decoder.fail(lost) == StepFailed(error=lost, content=(Text(text="Hi"),), streamed=True)


@pytest.mark.rules("A2.18")
def test_what_comes_after_the_end_spoils_nothing() -> None:
    after: list[_Json | bytes] = [
        *words("more", 1),
        {"type": "error", "error": {}},
        b"{",
        start("msg_2"),
    ]
    result = answer(*words("Hi"), stop(), STOP, b"[DONE]", *after)
    assert result.content == (Text(text="Hi"),)


@pytest.mark.rules("A2.42", "A2.17")
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", ProviderUnavailable),
        ("api_error", ProviderUnavailable),
        ("timeout_error", ProviderUnavailable),
        ("rate_limit_error", RateLimited),
        ("authentication_error", AuthenticationFailed),
        ("permission_error", AuthenticationFailed),
        ("billing_error", QuotaExhausted),
        ("not_found_error", ModelNotFound),
        ("invalid_request_error", RequestRejected),
        ("request_too_large", RequestRejected),
    ],
)
def test_an_error_in_the_stream_keeps_its_kind(kind: str, error: type) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "Because."}}
    for named in (True, False):
        decoder, _ = feed(*words("so far"), body, *words("more", 1), stop(), names=named)
        failed = decoder.finish()
        assert isinstance(failed, StepFailed)
        assert type(failed.error) is error
        assert "Because." in failed.error.message
        assert failed.content == (Text(text="so far"),)
    if kind == "overloaded_error":
        assert failure(body).error.reason == "overloaded"


@pytest.mark.rules("A2.42", "A2.43")
def test_errors_of_gateways_are_seen_in_any_dress() -> None:
    for event in (
        SseEvent(b'{"error":{"message":"slow down","code":429}}'),
        SseEvent(b'{"type":"rate_limit_error","message":"slow down"}', event="error"),
        SseEvent(b"slow down: too many requests", event="error"),
        SseEvent(b'{"message":"too many requests"}', event="error"),
    ):
        decoder = MessagesDecoder(PEER, lambda _: None)
        assert decoder.feed(event)
        result = decoder.finish()
        assert isinstance(result, StepFailed)
        assert isinstance(result.error, RateLimited), event


@pytest.mark.rules("A2.18", "A2.43")
@pytest.mark.parametrize(
    "odd",
    [
        {"type": "ping"},
        {"type": "of_tomorrow", "index": 0, "delta": {"type": "new"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "of_tomorrow", "x": 1}},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "content_block_delta", "index": "x", "delta": {"type": "text_delta", "text": 3}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta"}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "citations_delta"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta"}},
        {"type": "content_block_start", "index": 9, "content_block": None},
        {"type": "content_block_start", "index": 9, "content_block": {"type": 5}},
        {"type": "content_block_stop", "index": 44},
        {"type": "message_start", "message": None},
        {"type": "message_delta", "delta": {"stop_reason": 5}, "usage": [1]},
        {"type": 5},
        b"",
        b"null",
        b"[1]",
        b" ",
    ],
)
def test_what_nobody_knows_fails_nothing(odd: _Json | bytes) -> None:
    result = answer(
        start(), odd, begin(0, "text", text=""), odd, delta(0, "text_delta", text="a"), odd,
        delta(0, "text_delta", text="b"), odd, end(), odd, stop(), STOP,
    )  # fmt: skip
    assert "".join(block.text for block in result.content if isinstance(block, Text)) == "ab"


def test_a_call_that_never_began_is_said() -> None:
    result = answer(*words("a"), delta(4, "input_json_delta", partial_json="{}"), stop(), STOP)
    assert len(result.notices) == 1


@pytest.mark.rules("A2.24")
@pytest.mark.parametrize("rubbish", [b"{", b"not json", b"\xff", b'{"a":1}}', b"[" * 100_000])
def test_rubbish_in_the_stream_is_malformed(rubbish: bytes) -> None:
    failed = failure(*words("so far"), rubbish)
    assert failed.error.reason == "malformed"
    assert failed.content == (Text(text="so far"),)


@pytest.mark.rules("A2.43")
def test_gateways_may_leave_out_numbers_begins_ends_and_names() -> None:
    decoder, _ = feed(
        begin(None, "text", text="H"),
        delta(None, "text_delta", text="i"),
        begin(None, "tool_use", id="t", name="f"),
        delta(None, "input_json_delta", partial_json='{"a":'),
        delta(None, "input_json_delta", partial_json="1}"),
        end(None),
        stop("tool_use"),
        names=False,
    )
    result = decoder.finish()
    assert result.content[0] == Text(text="Hi")
    assert calls(result.content) == [("f", '{"a":1}', "t")]
    result = answer(
        delta(0, "thinking_delta", thinking="Hm"), delta(1, "text_delta", text="Hi"), stop()
    )
    assert result.content == (Thinking(text="Hm"), Text(text="Hi"))
    decoder = MessagesDecoder(PEER, lambda _: None)  # the name of the event stands in for the type
    decoder.feed(
        SseEvent(b'{"delta":{"type":"thinking_delta","thinking":"a"}}', "content_block_delta")
    )
    decoder.feed(SseEvent(b"{}", "message_stop"))
    assert decoder.finish().content == (Thinking(text="a"),)


@pytest.mark.rules("A2.43")
def test_a_piece_of_another_kind_begins_a_block() -> None:
    result = answer(
        begin(0, "text", text=""),
        delta(0, "thinking_delta", thinking="Hm"),
        delta(0, "text_delta", text="Hi"),
        stop(),
    )
    assert result.content == (Thinking(text="Hm"), Text(text="Hi"))


@pytest.mark.rules("R11")
def test_a_second_message_within_the_first_is_no_answer() -> None:
    failed = failure(start("msg_1"), *words("so far"), start("msg_2"), *words("anew"), stop(), STOP)
    assert failed.error.reason == "malformed"
    assert failed.content == (Text(text="so far"),)
    same = answer(start("msg_1"), *words("a"), start("msg_1"), *words("b", 1), stop(), STOP)
    assert same.content == (Text(text="a"), Text(text="b"))
    early = answer(start("msg_1"), start("msg_2"), *words("a"), stop(), STOP)
    assert early.content == (Text(text="a"),)


@pytest.mark.rules("A2.20", "A3.19")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', "overloaded"),
        (b'{"error":{"type":"rate_limit_error","message":"x"},"content":[]}', "rate_limit"),
        (b'{"detail":"invalid_request: no"}', "request_rejected"),
        (b"<html><title>Gateway</title>", "malformed"),
        (b"{}", "malformed"),
        (b"[]", "malformed"),
        (b"", "malformed"),
        (b'{"content":null}', "malformed"),
    ],
)
def test_a_document_that_is_no_answer_fails_by_its_kind(body: bytes, reason: str) -> None:
    result = read(body)
    assert isinstance(result, StepFailed)
    assert result.error.reason == reason


@pytest.mark.rules("A3.9")
def test_an_endless_answer_is_broken_off() -> None:
    piece = "x" * 50_000
    flood = [delta(0, "text_delta", text=piece)] * (ANSWER_MAX_CHARS // 50_000 + 2)
    failed = failure(begin(0, "text", text=""), *flood)
    assert failed.error.reason == "too_long"
    (kept,) = failed.content
    assert isinstance(kept, Text)
    assert 200_000 <= len(kept.text) <= ANSWER_MAX_CHARS
    proof = [delta(0, "signature_delta", signature=piece)] * 7
    assert failure(begin(0, "thinking", thinking=""), *proof).error.reason == "too_long"


@pytest.mark.rules("A3.9", "A2.38")
def test_vendor_blocks_have_a_bound_of_their_own() -> None:
    page = {"type": "web_search_tool_result", "tool_use_id": "s", "content": "x" * 300_000}
    block = {"type": "content_block_start", "index": 0, "content_block": page}
    assert answer(*[block] * 4, *words("Hi", 1), stop()).content[-1] == Text(text="Hi")
    assert failure(*[block] * (VENDOR_MAX_CHARS // 300_000 + 1)).error.reason == "too_long"
    opened = begin(0, "server_tool_use", id="s", name="n", input={})
    flood = [delta(0, "input_json_delta", partial_json="x" * 300_000)] * 8
    assert failure(opened, *flood).error.reason == "too_long"
    odd = [delta(0, "of_tomorrow", content="x" * 300_000)] * 8
    assert failure(opened, *odd).error.reason == "too_long"


def test_a_block_that_nobody_could_keep_is_malformed() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    failed = failure(begin(0, "server_tool_use", id="s", input=deep))
    assert failed.error.reason == "malformed"


@pytest.mark.rules("A2.39")
def test_a_paused_answer_goes_on_in_the_same_blocks() -> None:
    search = begin(1, "server_tool_use", id="s1", name="web_search", input={"query": "q"})
    found = begin(0, "web_search_tool_result", tool_use_id="s1", content=[])
    pieces: list[Piece] = []
    decoder = MessagesDecoder(PEER, pieces.append)

    def play(*events: _Json) -> None:
        for event in events:
            decoder.feed(SseEvent(json.dumps(event).encode()))

    play(
        start("msg_1", input_tokens=5), *words("Wait."), search, stop("pause_turn", output_tokens=7)
    )
    play(STOP)
    assert decoder.paused
    first = decoder.finish()
    assert isinstance(first, StepAnswer)
    assert isinstance(first.content[1], Opaque)
    assert first.content[1].raw["id"] == "s1"
    decoder.resume()
    assert not decoder.paused
    play(start("msg_2", input_tokens=6), found, *words("Done.", 1), stop(output_tokens=8), STOP)
    result = decoder.finish()
    assert isinstance(result, StepAnswer)
    assert [type(block) for block in result.content] == [Text, Opaque, Opaque, Text]
    assert pieces == [TextPiece(0, "Wait."), TextPiece(3, "Done.")]
    assert result.usage == Usage(input=11, output=15)
    assert [search.query for search in result.searches] == ["q"]
    assert (result.stop_reason, result.raw_stop_reason) == ("end_turn", "end_turn")


@pytest.mark.rules("A2.39")
def test_an_answer_with_calls_or_an_error_is_not_paused() -> None:
    decoder, _ = feed(*called(0, "{}"), stop("pause_turn"), STOP)
    assert not decoder.paused
    result = decoder.finish()
    assert isinstance(result, StepAnswer)
    assert result.stop_reason == "tool_calls"
    decoder, _ = feed(*words("a"), stop("pause_turn"), {"type": "error", "error": {"type": "x"}})
    assert not decoder.paused

"""What the decoder of Chat Completions stands, rule by rule."""

import json
from typing import Any

import pytest

from towline_agent.errors import (
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
)
from towline_agent.providers.base import (
    Piece,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.testing import event_stream
from towline_protocol import Block, Opaque, SseDecoder, Text, Thinking, ToolCall, Usage

PEER = Peer(provider="p", model="m", url="https://example.test/v1")


def decode(body: bytes, flags: ChatFlags | None = None) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    decoder = ChatDecoder(PEER, flags or ChatFlags(), pieces.append)
    for event in SseDecoder().feed(body):
        decoder.feed(event)
    return decoder.finish(), pieces


def answer(body: bytes, flags: ChatFlags | None = None) -> StepAnswer:
    result, _ = decode(body, flags)
    assert isinstance(result, StepAnswer), result
    return result


def failure(body: bytes, flags: ChatFlags | None = None) -> StepFailed:
    result, _ = decode(body, flags)
    assert isinstance(result, StepFailed), result
    return result


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]}


def words(text: str) -> dict[str, Any]:
    return chunk({"content": text})


def piece(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    """A chunk with a piece of one call."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    part: dict[str, Any] = {**fields, "function": function}
    if index is not None:
        part["index"] = index
    return chunk({"tool_calls": [part]})


def stream(*chunks: Any, finish: str | None = "stop") -> bytes:
    return event_stream(*chunks, chunk(finish=finish))


def calls(blocks: tuple[Block, ...]) -> list[tuple[str, str, str | None]]:
    return [(b.name, b.arguments, b.wire_id) for b in blocks if isinstance(b, ToolCall)]


@pytest.mark.rules("A2.6", "R21")
@pytest.mark.parametrize(
    "odd",
    [
        {"choices": []},
        {"choices": None},
        {},
        {"choices": [{"index": 0}]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        None,
        [],
        "ping",
    ],
)
def test_chunks_without_words_are_passed_over(odd: Any) -> None:
    assert answer(stream(odd, words("a"), odd, words("b"))).content == (Text(text="ab"),)


@pytest.mark.rules("A2.6")
def test_a_stream_of_whole_messages_is_read_once() -> None:
    whole = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
    assert answer(event_stream(whole)).content == (Text(text="Hello"),)
    beside = {"choices": [{"message": {"content": "Hello"}, "delta": {"content": "lo"}}]}
    assert answer(stream(words("Hel"), beside)).content == (Text(text="Hello"),)


@pytest.mark.rules("A2.7", "A1.13")
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_usage_is_read_wherever_it_stands(place: int) -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    empty: dict[str, Any] = {"choices": []}
    chunks = [words("a"), words("b"), chunk(finish="stop"), empty]
    chunks[place] = chunks[place] | {"usage": usage}
    assert answer(event_stream(*chunks)).usage == Usage(
        input=5, output=7, cache_read=4, cache_write=1, reasoning=3
    )


@pytest.mark.rules("A2.7", "A1.13")
def test_thinking_that_a_vendor_counts_beside_the_output_is_output() -> None:
    usage = {
        "prompt_tokens": 470,
        "completion_tokens": 68,
        "total_tokens": 723,
        "completion_tokens_details": {"reasoning_tokens": 185},
    }
    got = answer(stream(words("a"), {"choices": [], "usage": usage})).usage
    assert (got.output, got.reasoning) == (253, 185)


@pytest.mark.rules("A2.7")
def test_broken_counts_are_no_counts() -> None:
    usage = {"prompt_tokens": None, "completion_tokens": "7", "prompt_tokens_details": None}
    assert answer(stream(words("a"), {"choices": [], "usage": usage})).usage == Usage()


@pytest.mark.rules("A2.14", "A1.14")
@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("eos", "end_turn"),
        ("", "end_turn"),
        ("tool_calls", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("something new", "end_turn"),
    ],
)
def test_finish_reasons_of_words(finish: str, reason: str) -> None:
    got = answer(event_stream(words("a"), chunk(finish=finish), chunk(finish=finish)))
    assert (got.stop_reason, got.raw_stop_reason) == (reason, finish or None)


@pytest.mark.rules("A2.14")
@pytest.mark.parametrize("finish", ["stop", "tool_calls", "", None])
def test_an_answer_with_calls_asks_for_tools_whatever_the_reason(finish: str | None) -> None:
    got = answer(stream(piece(0, id="A", name="f", arguments="{}"), finish=finish))
    assert got.stop_reason == "tool_calls"


@pytest.mark.rules("A2.14")
def test_the_first_of_two_reasons_counts() -> None:
    got = answer(event_stream(words("a"), chunk(finish="length"), chunk(finish="stop")))
    assert got.stop_reason == "max_tokens"


@pytest.mark.rules("A2.15")
@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning": "hm", "reasoning_content": "hm"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
def test_thinking_is_told_once_whatever_its_fields(delta: dict[str, Any]) -> None:
    result, pieces = decode(stream(chunk(delta), words("yes")))
    assert result.content == (Thinking(text="hm"), Text(text="yes"))
    assert pieces == [ThinkingPiece(0, "hm"), TextPiece(1, "yes")]


@pytest.mark.rules("A2.6", "A2.15")
def test_content_may_be_a_list_of_parts_or_a_bare_value() -> None:
    parts: list[Any] = ["", "a", {"type": "text", "text": ""}, {"type": "text", "text": "b"}, 7,
             {"type": "thinking", "thinking": "hm"}, {"type": "thinking", "thinking": []},
             {"type": "picture"}]  # fmt: skip
    got = answer(stream(chunk({"content": parts}), chunk({"content": {"x": 1}})))
    assert got.content == (Text(text="ab"), Thinking(text="hm"), Text(text='{"x":1}'))
    assert got.notices == ("A part of the kind 'picture' was left out.",)


@pytest.mark.rules("A1.8", "A2.15")
def test_details_that_must_go_back_are_kept_whole() -> None:
    flags = ChatFlags(replay="reasoning_details")
    body = stream(
        chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "h"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "m"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "index": 0, "data": "x"}]}),
        words("yes"),
    )
    assert answer(body, flags).content == (
        Thinking(text="hm"),
        Text(text="yes"),
        Opaque(
            dialect="openai_chat",
            raw={
                "reasoning_details": [
                    {"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"},
                    {"type": "reasoning.encrypted", "index": 0, "data": "x"},
                ]
            },
        ),
    )


@pytest.mark.rules("A2.16")
def test_think_tags_are_text_unless_the_catalog_says_otherwise() -> None:
    text = "<think>\nhm</think>\n\nyes <think>"
    for chunks in ([words(text)], [words(char) for char in text]):
        assert answer(stream(*chunks)).content == (Text(text=text),)
        assert answer(stream(*chunks), ChatFlags(think_tags=True)).content == (
            Thinking(text="\nhm"),
            Text(text="\n\nyes <think>"),
        )


@pytest.mark.rules("A2.16")
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<thin", (Text(text="<thin"),)),
        ("<b>bold</b>", (Text(text="<b>bold</b>"),)),
        (" <think>hm</thi", (Thinking(text="hm</thi"),)),
        ("<think></think>yes", (Text(text="yes"),)),
    ],
)
def test_what_only_looks_like_a_tag_is_not_lost(text: str, content: tuple[Block, ...]) -> None:
    for chunks in ([words(text)], [words(char) for char in text]):
        assert answer(stream(*chunks), ChatFlags(think_tags=True)).content == content


@pytest.mark.rules("A2.17", "R11")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "Overloaded", "type": "overloaded_error"}, ProviderUnavailable),
        ({"message": "slow down", "code": 429}, RateLimited),
        ({"message": "no", "type": "invalid_request_error"}, RequestRejected),
        ({"message": "You have run out of credit balance"}, QuotaExhausted),
        ("Internal Server Error", ProviderUnavailable),
    ],
)
def test_an_error_in_the_stream_fails_the_step_and_keeps_the_words(error: Any, kind: type) -> None:
    data = json.dumps({"error": error})
    for frame in (f"data: {data}\n\n", f"event: error\ndata: {data}\n\n"):
        failed = failure(event_stream(words("so far"), done=False) + frame.encode())
        assert type(failed.error) is kind
        assert failed.content == (Text(text="so far"),)
        assert failed.streamed


@pytest.mark.rules("A2.17")
def test_an_error_event_needs_no_error_key_and_no_json() -> None:
    for data, said in ((b'{"message":"Bad luck"}', "Bad luck"), (b"bad luck", "bad luck")):
        failed = failure(b"event: error\ndata: " + data + b"\n\n")
        assert said in failed.error.message
        assert not failed.streamed
        late = stream(words("a")).partition(b"data: [DONE]")[0]
        failed = failure(late + b"event: error\ndata: " + data + b"\n\n")
        assert said in failed.error.message


@pytest.mark.rules("A2.17")
def test_an_error_in_a_choice_or_as_a_finish_reason_fails_the_step() -> None:
    inside = chunk(finish="error")
    inside["choices"][0]["error"] = {"code": 502, "message": "Upstream is gone"}
    assert "Upstream is gone" in failure(event_stream(words("a"), inside)).error.message
    bare = failure(event_stream(words("a"), chunk(finish="network_error")))
    assert isinstance(bare.error, ProviderUnavailable)


@pytest.mark.rules("A2.17")
def test_the_first_error_counts_and_nothing_after_it_is_told() -> None:
    first = {"error": {"message": "one", "type": "overloaded_error"}}
    second = {"error": {"message": "two", "type": "invalid_request_error"}}
    failed = failure(event_stream(first, second))
    assert "one" in failed.error.message


@pytest.mark.rules("A2.18")
def test_framing_that_vendors_vary_changes_nothing() -> None:
    body = stream(words("Hello"), words(" you"))
    varied = [
        body.replace(b"\n", b"\r\n"),
        body.replace(b"data: ", b"data:"),
        body.replace(b"data: ", b": warm\n\ndata: "),
        body.replace(b"data: [DONE]\n\n", b""),
        body + b"data: [DONE]\n\ndata: {}\n\ndata: rubbish\n\n",
        body.replace(b"[DONE]", b"[DONE] "),
        b"\n\n \n" + body,
    ]
    for other in varied:
        assert other != body
        assert answer(other) == answer(body)


@pytest.mark.rules("A2.7", "A2.18")
def test_what_comes_after_done_is_still_read() -> None:
    late = event_stream({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    got = answer(stream(words("a")) + late)
    assert got.usage == Usage(input=3, output=2)


@pytest.mark.rules("A3.9")
def test_a_stream_without_reason_and_done_is_incomplete_and_keeps_its_words() -> None:
    failed = failure(event_stream(words("so far"), done=False))
    assert isinstance(failed.error, ResponseMalformed)
    assert failed.error.reason == "incomplete"
    assert failed.content == (Text(text="so far"),)
    assert failed.streamed


@pytest.mark.rules("A3.9")
def test_either_sign_of_the_end_is_enough() -> None:
    assert answer(event_stream(words("a"), done=True)).content == (Text(text="a"),)
    assert answer(event_stream(words("a"), chunk(finish="stop"), done=False)).content


@pytest.mark.rules("A3.10", "R07")
def test_a_vendor_known_to_end_so_may_and_only_with_words_and_usage() -> None:
    flags = ChatFlags(ends_without_finish=True)
    usage: Any = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    got = answer(event_stream(words("a"), usage, done=False), flags)
    assert got.content == (Text(text="a"),)
    assert got.notices != ()
    call = piece(0, id="A", name="f", arguments="{}")
    for chunks in ([words("a")], [usage], [call, usage], [words("a"), call, usage]):
        assert failure(event_stream(*chunks, done=False), flags).error.reason == "incomplete"
    assert failure(event_stream(words("a"), usage, done=False)).error.reason == "incomplete"


@pytest.mark.rules("A2.24")
def test_only_what_no_reader_takes_is_malformed() -> None:
    failed = failure(event_stream(words("a"), done=False) + b"data: {oops\n\n")
    assert isinstance(failed.error, ResponseMalformed)
    assert failed.content == (Text(text="a"),)
    deep = b"data: " + b"[" * 100_000 + b"\n\n"
    assert failure(deep).error.reason == "malformed"
    odd = {"choices": [{"index": "0", "delta": {"content": "b"}}]}
    assert answer(stream(words("a"), odd)).content == (Text(text="ab"),)

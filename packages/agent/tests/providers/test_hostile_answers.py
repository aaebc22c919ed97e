"""Answers that are made to cost time or room, and ends that do not end, in all dialects."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from towline_agent.providers.answer import (
    ANSWER_MAX_BLOCKS,
    ANSWER_MAX_CALLS,
    ANSWER_MAX_CHARS,
    NOTICE_MAX_CHARS,
    STEP_MAX_NOTICES,
    AnswerWriter,
)
from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.usage import UsageCount
from towline_agent.providers.base import Piece, StepAnswer, StepFailed, StepResult
from towline_agent.providers.endpoint import Decoder
from towline_agent.providers.errors import Peer
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.gemini.usage import read_usage as read_gemini_usage
from towline_agent.providers.json_stream import JsonSplitter
from towline_agent.providers.openai_chat.decode import DETAILS, ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.usage import read_usage
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_agent.providers.openai_responses.usage import read_usage as read_responses_usage
from towline_protocol import ProtocolError, SseEvent, Text, ToolCall, Usage

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
AT_ONCE_S = 5.0
"""Far more than a linear reader takes for these answers, far less than a quadratic one."""

_Json = dict[str, Any]


def ignore(piece: Piece) -> None:
    assert piece


def chat(flags: ChatFlags | None = None, tell: Callable[[Piece], None] = ignore) -> ChatDecoder:
    return ChatDecoder(PEER, flags or ChatFlags(), tell)


def feed(decoder: Decoder, *values: _Json | bytes) -> list[bool]:
    datas = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    return [decoder.feed(SseEvent(data)) for data in datas]


def delta(finish: str | None = None, **fields: Any) -> _Json:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(
    number: int | None, name: str | None, arguments: str | None = None, id_: Any = None
) -> Any:
    function = {"name": name, "arguments": arguments}
    return [{"index": number, "id": id_, "function": function}]


def failed(result: StepResult) -> StepFailed:
    assert isinstance(result, StepFailed)
    return result


def answered(result: StepResult) -> StepAnswer:
    assert isinstance(result, StepAnswer)
    return result


def block_start(index: int, **block: Any) -> _Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


@pytest.mark.rules("A1.24")
def test_blocks_that_begin_and_never_end_cost_no_more_than_others() -> None:
    decoder = MessagesDecoder(PEER, ignore)
    began = time.process_time()
    feed(decoder, *(block_start(n, type="text", text="") for n in range(60_000)))
    decoder.finish()
    assert time.process_time() - began < AT_ONCE_S


@pytest.mark.slow
@pytest.mark.rules("A1.24", "A2.6")
def test_a_chunk_costs_the_same_after_many_blocks() -> None:
    decoder = chat()
    began = time.process_time()
    feed(decoder, *(delta(tool_calls=call(n, "f", None, f"{n}")) for n in range(1000)))
    chunk = json.dumps({"choices": [{"message": {}}]}).encode()
    feed(decoder, *([chunk] * 50_000))
    assert time.process_time() - began < AT_ONCE_S


@pytest.mark.rules("A1.24", "A2.10")
@pytest.mark.parametrize("piece", ["}", "{x}", '"}', "{}", " }", '\\"}'])
def test_a_name_in_each_piece_of_one_call_costs_no_parse_of_the_whole(piece: str) -> None:
    decoder = chat()
    began = time.process_time()
    feed(decoder, delta(tool_calls=call(0, "f", '{"a":"', "1")))
    feed(decoder, *([json.dumps(delta(tool_calls=call(0, "f", piece))).encode()] * 20_000))
    decoder.finish()
    assert time.process_time() - began < AT_ONCE_S


@pytest.mark.rules("A2.10", "A2.11")
@pytest.mark.parametrize(
    "pieces",
    [
        ('{"a":', '"}"', "}"), ('{"a\\', '"}":[{', "}]}"), (" {", "} "), ('{"a":"\\\\"', "}"),
    ],
)  # fmt: skip
def test_a_whole_call_is_followed_by_another_of_its_name(pieces: tuple[str, ...]) -> None:
    decoder = chat()
    feed(decoder, *(delta(tool_calls=call(0, "f", piece)) for piece in pieces))
    feed(decoder, delta("tool_calls", tool_calls=call(0, "f", "{}")))
    calls = answered(decoder.finish()).content
    assert [one.arguments for one in calls if isinstance(one, ToolCall)] == ["".join(pieces), "{}"]


@pytest.mark.rules("A1.24")
def test_an_array_of_a_million_empty_chunks_is_left_soon() -> None:
    decoder = GeminiDecoder(PEER, GeminiFlags(), ignore)
    began = time.process_time()
    decoder.read(b"[" + b",".join([b"{}"] * 1_000_000) + b"]")
    assert failed(decoder.finish()).error.reason == "too_long"
    assert time.process_time() - began < AT_ONCE_S


@pytest.mark.parametrize("body", [b"[" * 1000, b"[]" * 1000, b"[],\n" * 1000])
def test_arrays_without_a_value_are_left_soon(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="without a value"):
        JsonSplitter().feed(body)


@pytest.mark.rules("A1.24")
def test_a_chunk_of_many_odd_parts_is_read_once() -> None:
    decoder = GeminiDecoder(PEER, GeminiFlags(), ignore)
    parts = [{"executableCode": {"code": "x" * 9}}] * 4000
    began = time.process_time()
    feed(decoder, {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    assert len(answered(decoder.finish()).content) == len(parts)
    assert time.process_time() - began < AT_ONCE_S


@pytest.mark.rules("A1.24")
def test_a_whole_that_is_repeated_is_not_compared_for_ever() -> None:
    decoder = ResponsesDecoder(PEER, ignore)
    kind = "response.function_call_arguments"
    feed(decoder, {"type": f"{kind}.delta", "output_index": 0, "delta": "{" + " " * 200_000 + "}"})
    done = json.dumps({"type": f"{kind}.done", "output_index": 0, "arguments": "{1}"}).encode()
    began = time.process_time()
    feed(decoder, *([done] * 20_000))
    assert failed(decoder.finish()).error.reason == "too_long"
    assert time.process_time() - began < AT_ONCE_S


def many_blocks(count: int) -> dict[str, tuple[Decoder, list[_Json]]]:
    """In each dialect, so many blocks that hold nothing."""
    item = {"type": "function_call", "name": "f"}
    kinds = ("content", "reasoning_content")
    turns = [delta(**{kinds[number % 2]: "x"}) for number in range(count)]
    signed = [{"text": "", "thoughtSignature": "s"}]
    return {
        "chat": (chat(), turns),
        "anthropic": (
            MessagesDecoder(PEER, ignore),
            [block_start(0, type="text", text="x")] * count,
        ),
        "gemini": (
            GeminiDecoder(PEER, GeminiFlags(), ignore),
            [{"candidates": [{"content": {"parts": signed}}]}] * count,
        ),
        "responses": (
            ResponsesDecoder(PEER, ignore),
            [
                {"type": "response.output_item.added", "output_index": n, "item": item}
                for n in range(count)
            ],
        ),
    }


@pytest.mark.rules("A1.24")
@pytest.mark.parametrize("dialect", ["chat", "anthropic", "gemini", "responses"])
def test_an_answer_has_only_so_many_blocks_in_every_dialect(dialect: str) -> None:
    decoder, values = many_blocks(ANSWER_MAX_BLOCKS + 1)[dialect]
    feed(decoder, *values)
    result = failed(decoder.finish())
    assert result.error.reason == "too_long"
    assert f"more than {ANSWER_MAX_BLOCKS if dialect != 'responses' else ANSWER_MAX_CALLS} " in str(
        result.error
    )
    assert len(result.content) <= ANSWER_MAX_BLOCKS


@pytest.mark.rules("A1.24")
def test_an_answer_has_only_so_many_calls() -> None:
    decoder = chat()
    calls = [delta(tool_calls=call(n, "f")) for n in range(ANSWER_MAX_CALLS)]
    feed(decoder, *calls, delta("tool_calls"))
    assert len(answered(decoder.finish()).content) == ANSWER_MAX_CALLS
    decoder = chat()
    feed(decoder, *calls, delta(tool_calls=call(5000, "f")), delta("tool_calls"))
    assert f"{ANSWER_MAX_CALLS} calls" in failed(decoder.finish()).error.message


def test_nothing_is_told_of_a_block_that_has_no_place() -> None:
    pieces: list[Piece] = []
    answer = AnswerWriter(pieces.append)
    for _ in range(ANSWER_MAX_BLOCKS // 2 + 1):
        answer.say("a")
        answer.think("b")
    assert len(pieces) == ANSWER_MAX_BLOCKS == len(answer.content(cut=False))
    assert answer.room < 0


@pytest.mark.rules("A1.24")
def test_a_proof_that_belongs_to_a_call_counts_too() -> None:
    decoder = chat()
    extra = {"google": {"thought_signature": "s" * (ANSWER_MAX_CHARS // 2)}}
    for number in range(3):
        part = call(number, "f")
        part[0]["extra_content"] = extra
        feed(decoder, delta(tool_calls=part))
    assert failed(decoder.finish()).error.reason == "too_long"


def test_details_grow_by_pieces_and_end_somewhere() -> None:
    decoder = chat(ChatFlags(replay=DETAILS))
    feed(decoder, delta(reasoning_details=[{"index": 0, "text": "a"}]))
    feed(
        decoder, delta(reasoning_details=[{"index": 0, "text": "b"}, {"index": 0, "summary": "c"}])
    )
    feed(decoder, delta("stop", reasoning_details=[{"index": 1, "data": "d"}]))
    (*_, kept) = answered(decoder.finish()).content
    assert kept.raw[DETAILS] == [  # type: ignore[union-attr]
        {"index": 0, "text": "ab", "summary": "c"},
        {"index": 1, "data": "d"},
    ]
    decoder = chat(ChatFlags(replay=DETAILS))
    feed(decoder, *([delta(reasoning_details=[{"index": 1}] * 1000)] * 20))
    assert failed(decoder.finish()).error.reason == "too_long"


@pytest.mark.rules("A1.19")
def test_notices_are_few_and_short() -> None:
    decoder = chat()
    kinds = [{"type": f"{n}" * 300} for n in range(300)]
    feed(decoder, delta("stop", content=kinds))
    notices = answered(decoder.finish()).notices
    assert len(notices) == STEP_MAX_NOTICES
    assert all(len(notice) <= NOTICE_MAX_CHARS for notice in notices)


ODD: tuple[Any, ...] = (True, False, -1, -(10**30), 2.5, float("inf"), 10**400, None, "x", [], {})


@pytest.mark.rules("A1.13", "A1.24")
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_count_of_tokens_counts_nothing(odd: Any) -> None:
    chat_usage = {"prompt_tokens": odd, "completion_tokens": odd, "total_tokens": odd}
    assert read_usage({**chat_usage, "completion_tokens_details": {"reasoning_tokens": odd}}) == (
        Usage()
    )
    assert read_responses_usage({"input_tokens": odd, "output_tokens": odd}) == Usage()
    assert read_gemini_usage({"promptTokenCount": odd, "candidatesTokenCount": odd}) == Usage()
    count = UsageCount()
    count.take({"input_tokens": odd, "output_tokens": odd, "cache_creation": {"a": odd}})
    assert count.usage() == Usage()


@pytest.mark.rules("A1.13")
def test_whole_numbers_with_a_point_are_counts() -> None:
    assert read_usage({"prompt_tokens": 7.0, "completion_tokens": 2}) == Usage(input=7, output=2)


@pytest.mark.rules("A2.18", "A2.7")
def test_after_the_end_mark_only_the_counts_are_read() -> None:
    pieces: list[Piece] = []
    decoder = chat(tell=pieces.append)
    late = {**delta(content="late", tool_calls=call(0, "f")), "usage": {"prompt_tokens": 3}}
    ended = feed(decoder, delta("stop", content="a"), b"[DONE]", late, b"rubbish", {"error": "bad"})
    assert ended == [True, True, True, True, True]
    decoder.feed(SseEvent(b"{}", "error"))
    result = answered(decoder.finish())
    assert (result.content, result.usage) == ((Text(text="a"),), Usage(input=3))
    assert len(pieces) == 1


@pytest.mark.rules("A3.8", "A3.9")
def test_a_finish_reason_is_the_end_unless_words_follow_it() -> None:
    usage: _Json = {"choices": [], "usage": {"prompt_tokens": 3}}
    decoder = chat()
    assert feed(decoder, delta(content="a"), delta("stop"), usage) == [False, True, True]
    assert answered(decoder.finish()).usage == Usage(input=3)
    assert feed(chat(), *[delta("stop", content="a")] * 3) == [True, False, False]

    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
    messages = MessagesDecoder(PEER, ignore)
    assert feed(messages, text, stop, {"type": "ping"}, text) == [False, True, True, False]

    part: _Json = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
    counted = {"candidates": [part], "usageMetadata": {"candidatesTokenCount": 1}}
    gemini = GeminiDecoder(PEER, GeminiFlags(), ignore)
    assert feed(gemini, {"candidates": [part]}, counted, counted) == [False, True, False]


@pytest.mark.rules("A2.25", "A2.28", "A1.24")
def test_arguments_as_an_object_leave_mended() -> None:
    decoder = ResponsesDecoder(PEER, ignore)
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": "\ud800"}}
    feed(decoder, {"type": "response.completed", "response": {"output": [item]}})
    (one,) = answered(decoder.finish()).content
    assert isinstance(one, ToolCall)
    assert one.arguments == '{"a": "\N{REPLACEMENT CHARACTER}"}'


@pytest.mark.rules("A1.24")
def test_a_place_before_the_first_is_the_first() -> None:
    decoder = ResponsesDecoder(PEER, ignore)
    spot = {"output_index": 0, "content_index": -(10**17)}
    item = {"type": "message", "id": "i", "content": [{"type": "output_text", "text": "Hi"}]}
    feed(decoder, {"type": "response.output_text.delta", **spot, "delta": "Hi"})
    feed(decoder, {"type": "response.output_item.done", "output_index": 0, "item": item})
    feed(decoder, {"type": "response.completed", "response": {"output": [item]}})
    assert Text(text="Hi") in answered(decoder.finish()).content

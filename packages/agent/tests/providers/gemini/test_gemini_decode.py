"""Answers in the many shapes that Google and what stands in for it send them in."""

import json
from typing import Any

import pytest

from towline_agent.errors import (
    ProviderUnavailable,
    RateLimited,
    ResponseMalformed,
)
from towline_agent.providers.base import (
    ArgumentsPiece,
    Piece,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import Peer
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import (
    Opaque,
    SseEvent,
    Text,
    Thinking,
    ToolCall,
    Usage,
)

PEER = Peer(provider="p", model="m", url="https://example.test/v1beta")
_Json = dict[str, Any]


def decoder(*, vertex: bool = False) -> tuple[GeminiDecoder, list[Piece]]:
    pieces: list[Piece] = []
    return GeminiDecoder(PEER, GeminiFlags(vertex=vertex), pieces.append), pieces


def feed(*values: Any, vertex: bool = False) -> tuple[StepResult, list[Piece]]:
    made, pieces = decoder(vertex=vertex)
    for value in values:
        made.feed(SseEvent(value if isinstance(value, bytes) else json.dumps(value).encode()))
    return made.finish(), pieces


def chunk(*parts: _Json, **more: Any) -> _Json:
    content = {"parts": list(parts), "role": "model"} if parts else {}
    return {"candidates": [{"content": content, **more}]}


def answer(*values: Any, vertex: bool = False) -> StepAnswer:
    result, _ = feed(*values, vertex=vertex)
    assert isinstance(result, StepAnswer), result
    return result


def failure(*values: Any) -> StepFailed:
    result, _ = feed(*values)
    assert isinstance(result, StepFailed), result
    return result


STOP = chunk(finishReason="STOP")


@pytest.mark.rules("A1.23", "A2.44")
def test_words_and_thoughts_are_told_as_they_come() -> None:
    result, pieces = feed(
        chunk({"text": "Let me ", "thought": True}),
        chunk({"text": "see.", "thought": True}),
        chunk({"text": "Hel"}),
        chunk({"text": "lo"}, finishReason="STOP"),
    )
    assert pieces == [
        ThinkingPiece(0, "Let me "),
        ThinkingPiece(0, "see."),
        TextPiece(1, "Hel"),
        TextPiece(1, "lo"),
    ]
    assert result.content == (Thinking(text="Let me see."), Text(text="Hello"))


@pytest.mark.rules("A2.46")
def test_a_proof_stays_with_the_part_that_it_came_with() -> None:
    result = answer(
        chunk({"text": "thought", "thought": True, "thoughtSignature": "s0"}),
        chunk({"text": "more", "thought": True}),
        chunk({"text": "first", "thoughtSignature": "s1"}),
        chunk({"text": "second"}),
        chunk({"text": "", "thoughtSignature": "s2"}),
        chunk({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s3"}),
        chunk({"functionCall": {"name": "g", "args": {}}}, finishReason="STOP"),
    )
    assert result.content[:6] == (
        Thinking(text="thought", signature="s0"),
        Thinking(text="more"),
        Text(text="first"),
        Opaque(dialect="gemini", raw={"thoughtSignature": "s1"}),
        Text(text="second"),
        Opaque(dialect="gemini", raw={"thoughtSignature": "s2"}),
    )
    calls = [block for block in result.content[6:] if isinstance(block, ToolCall)]
    assert [(call.name, call.arguments, call.signature) for call in calls] == [
        ("f", '{"a":1}', "s3"),
        ("g", "{}", None),
    ]
    assert result.stop_reason == "tool_calls"


@pytest.mark.rules("A2.46")
@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            {"thought": True, "thoughtSignature": "s"},
            Thinking(text="", signature="s"),
        ),
        ({"thoughtSignature": "s"}, Opaque(dialect="gemini", raw={"thoughtSignature": "s"})),
    ],
)
def test_a_proof_without_words_is_kept(part: _Json, block: Any) -> None:
    assert answer(chunk(part, finishReason="STOP")).content == (block,)


def test_a_part_that_holds_nothing_leaves_nothing() -> None:
    result = answer(
        chunk({}, {"thought": True}, {"partMetadata": {"a": 1}}, {"text": ""}, finishReason="STOP")
    )
    assert result.content == ()


@pytest.mark.rules("A2.48")
def test_a_call_keeps_the_id_that_it_was_given() -> None:
    result = answer(
        chunk(
            {"functionCall": {"name": "f", "args": {"a": [1, 2.5, None, "é"]}, "id": "x1"}},
            {"functionCall": {"name": "f"}},
            finishReason="STOP",
        )
    )
    found = [(b.wire_id, b.arguments) for b in result.content if isinstance(b, ToolCall)]
    assert found == [("x1", '{"a":[1,2.5,null,"é"]}'), (None, "{}")]


@pytest.mark.rules("A1.23")
def test_arguments_are_told_when_their_call_is_whole() -> None:
    _, pieces = feed(chunk({"functionCall": {"name": "f", "args": {"a": 1}}}), STOP)
    assert pieces == [ArgumentsPiece(0, '{"a":1}')]


def test_arguments_may_come_as_a_text() -> None:
    result = answer(chunk({"functionCall": {"name": "f", "args": '{"a": 1}'}}, finishReason="STOP"))
    (call,) = result.content
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"a": 1}'


def test_a_call_beside_an_empty_text_is_a_call() -> None:
    result = answer(
        chunk({"text": "", "functionCall": {"name": "f", "args": {}}}, finishReason="STOP")
    )
    assert [type(block) for block in result.content] == [ToolCall]


@pytest.mark.rules("A1.8")
def test_what_the_providers_own_tools_did_is_kept_as_it_came() -> None:
    parts: list[_Json] = [
        {
            "executableCode": {"language": "PYTHON", "code": "1+1", "id": "e"},
            "thoughtSignature": "s",
        },
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2", "id": "e"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "t", "args": {"queries": ["q"]}}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "t", "response": {}}},
        {"fileData": {"fileUri": "gs://a/b"}},
        {"somethingNew": {"a": 1}},
    ]
    result = answer(chunk({"text": "See: "}, *parts[:3]), chunk(*parts[3:], finishReason="STOP"))
    assert result.content[1:] == tuple(Opaque(dialect="gemini", raw=part) for part in parts)
    assert result.stop_reason == "end_turn"


def test_a_picture_is_kept_with_a_notice_and_a_huge_one_is_left_out() -> None:
    small = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    huge = {"inlineData": {"mimeType": "image/png", "data": "A" * 400_000}}
    kept = answer(chunk(small, finishReason="STOP"))
    assert kept.content == (Opaque(dialect="gemini", raw=small),)
    assert "image/png" in kept.notices[0]
    cut = answer(chunk({"text": "Here."}, huge, {"text": " Done."}, finishReason="STOP"))
    assert cut.content == (Text(text="Here. Done."),)
    assert "too large" in cut.notices[0]


@pytest.mark.rules("A3.9", "R09")
def test_a_stream_without_a_finish_reason_is_incomplete_and_keeps_its_words() -> None:
    for odd in ({}, {"candidates": None}):
        usage = {"usageMetadata": {"promptTokenCount": 5}}
        failed = failure(chunk({"text": "so far"}), odd, usage)
        assert isinstance(failed.error, ResponseMalformed)
        assert failed.error.reason == "incomplete"
        assert failed.error.retryable
        assert failed.content == (Text(text="so far"),)
        assert failed.streamed
        assert failed.usage == Usage(input=5)
    assert failure().error.reason == "incomplete"


def test_words_after_a_finish_reason_are_not_lost() -> None:
    result = answer(
        chunk({"text": "Hel"}, finishReason="STOP"), chunk({"text": "lo"}, finishReason="STOP")
    )
    assert result.content == (Text(text="Hello"),)


@pytest.mark.rules("A3.9")
def test_a_connection_that_breaks_after_the_end_spoils_nothing() -> None:
    made, _ = decoder()
    made.feed(SseEvent(json.dumps(chunk({"text": "Hi"}, finishReason="STOP")).encode()))
    assert isinstance(made.fail(ProviderUnavailable("lost")), StepAnswer)
    broken, _ = decoder()
    broken.feed(SseEvent(json.dumps(chunk({"text": "Hi"})).encode()))
    result = broken.fail(ProviderUnavailable("lost"))
    assert isinstance(result, StepFailed)
    assert result.content == (Text(text="Hi"),)


@pytest.mark.rules("A2.17")
def test_an_error_in_the_stream_fails_with_its_kind() -> None:
    error = {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}
    failed = failure(chunk({"text": "so"}), {"error": error}, chunk({"text": " on"}))
    assert isinstance(failed.error, RateLimited)
    assert failed.content == (Text(text="so"),)
    named, _ = decoder()
    assert named.feed(SseEvent(json.dumps({"error": error}).encode(), event="error"))
    result = named.finish()
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, RateLimited)


@pytest.mark.rules("A2.44")
@pytest.mark.parametrize("space", ["", " \r\n"])
def test_an_array_of_chunks_is_read_as_a_stream(space: str) -> None:
    made, pieces = decoder()
    values = [chunk({"text": "a]"}), chunk({"text": "[b"}, finishReason="STOP")]
    made.read(f"{space}[{json.dumps(values[0])}\n,\r\n{json.dumps(values[1])}]\n".encode())
    assert made.finish().content == (Text(text="a][b"),)
    assert pieces == [TextPiece(0, "a]"), TextPiece(0, "[b")]


@pytest.mark.rules("A2.44", "A3.9")
def test_an_array_that_is_cut_off_keeps_the_chunks_that_came() -> None:
    whole = json.dumps([chunk({"text": "one"}), chunk({"text": "two"}, finishReason="STOP")])
    for at in (1, 40, len(whole) - 20):
        made, _ = decoder()
        made.read(whole[:at].encode())
        result = made.finish()
        assert isinstance(result, StepFailed)
        assert result.error.retryable
        expected = (Text(text="one"),) if at > 50 else ()
        assert result.content == expected
    made, _ = decoder()
    made.read(b"[" + json.dumps(chunk({"text": "one"})).encode() + b"]")
    assert isinstance(made.finish(), StepFailed)


@pytest.mark.rules("A2.20", "A2.44")
def test_an_error_in_an_array_fails_with_its_kind() -> None:
    made, _ = decoder()
    made.read(
        b'[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]'
    )
    result = made.finish()
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)


@pytest.mark.rules("A2.19", "A2.20", "A3.19")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}', RateLimited),
        (b"<html><title>Bad gateway</title>", ResponseMalformed),
        (b"{}", ResponseMalformed),
        (b"{", ResponseMalformed),
    ],
)
def test_a_document_without_an_answer_is_an_error(body: bytes, kind: type) -> None:
    made, _ = decoder()
    made.read(body)
    result = made.finish()
    assert isinstance(result, StepFailed)
    assert type(result.error) is kind


@pytest.mark.rules("A2.4")
def test_a_whole_document_needs_no_finish_reason() -> None:
    made, _ = decoder()
    made.read(b"\n " + json.dumps(chunk({"text": "Hi"})).encode())
    result = made.finish()
    assert isinstance(result, StepAnswer)
    assert (result.stop_reason, result.raw_stop_reason) == ("end_turn", None)
    empty, _ = decoder()
    empty.read(b'{"candidates":[],"usageMetadata":{"promptTokenCount":3}}')
    failed = empty.finish()
    assert isinstance(failed, StepFailed)
    assert failed.error.retryable


@pytest.mark.rules("A2.18", "A2.24")
def test_signs_of_life_and_other_events_change_nothing() -> None:
    result = answer(
        b"", b"1", b'"ping"', b"null", {"sessionResumption": {"a": 1}}, chunk({"text": "Hi"}), STOP,
        b"[DONE]", b"rubbish after the end",
    )  # fmt: skip
    assert result.content == (Text(text="Hi"),)
    assert answer(chunk({"text": "Hi"}), b"[DONE]").content == (Text(text="Hi"),)
    assert failure(chunk({"text": "Hi"}), b"rubbish").error.reason == "malformed"


def test_the_stream_of_another_dialect_is_no_answer_though_it_says_done() -> None:
    chat = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert failure(chat, b"[DONE]").error.reason == "incomplete"
    assert failure(b"[DONE]").error.reason == "incomplete"


def test_the_first_candidate_is_taken() -> None:
    def candidate(index: int | None, text: str) -> _Json:
        named = {} if index is None else {"index": index}
        return {**named, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"}

    result = answer(
        {"candidates": [candidate(None, "a"), candidate(1, "x")]},
        {"candidates": [candidate(0, "b")]},
        {"candidates": [candidate(1, "y")]},
    )
    assert result.content == (Text(text="ab"),)
    assert len(result.notices) == 1


@pytest.mark.rules("A3.9")
def test_an_answer_without_end_is_given_up() -> None:
    made, pieces = decoder()
    done = False
    for _ in range(40):
        value = chunk({"text": "x" * 10_000})
        done = made.feed(SseEvent(json.dumps(value).encode())) or done
    assert done
    result = made.finish()
    assert isinstance(result, StepFailed)
    assert result.error.reason == "too_long"
    assert not result.error.retryable
    assert sum(len(piece.text) for piece in pieces) <= 262_144

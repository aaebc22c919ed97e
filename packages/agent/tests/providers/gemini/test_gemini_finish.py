"""Why an answer ended, what it cost and what was found for it."""

import json
from typing import Any

import pytest

from towline_agent.errors import (
    ProviderError,
    ProviderUnavailable,
    RequestRejected,
    ResponseMalformed,
)
from towline_agent.providers.base import (
    Piece,
    StepAnswer,
    StepFailed,
    StepResult,
)
from towline_agent.providers.errors import Peer
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import (
    SearchArtifact,
    SearchItem,
    SseEvent,
    Text,
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


@pytest.mark.rules("A2.50", "A1.14")
@pytest.mark.parametrize(
    ("reason", "vertex", "stop", "raw"),
    [
        ("STOP", False, "end_turn", "STOP"),
        (1, False, "end_turn", "STOP"),
        (2, True, "max_tokens", "MAX_TOKENS"),
        ("CONTINUATION", False, "max_tokens", "CONTINUATION"),
        ("RECITATION", False, "refusal", "RECITATION"),
        ("PROHIBITED_CONTENT", False, "refusal", "PROHIBITED_CONTENT"),
        (8, False, "refusal", "PROHIBITED_CONTENT"),
        (7, True, "refusal", "PROHIBITED_CONTENT"),
        (10, True, "refusal", "MODEL_ARMOR"),
        ("OTHER", False, "end_turn", "OTHER"),
        (5, True, "end_turn", "OTHER"),
        ("A_NEW_ONE", False, "end_turn", "A_NEW_ONE"),
        (99, False, "end_turn", "99"),
    ],
)
def test_finish_reasons_are_words_or_numbers(
    reason: str | int, vertex: bool, stop: str, raw: str
) -> None:
    result = answer(chunk({"text": "Hi"}, finishReason=reason), vertex=vertex)
    assert (result.stop_reason, result.raw_stop_reason) == (stop, raw)


@pytest.mark.rules("A2.50")
@pytest.mark.parametrize(
    ("reason", "vertex"),
    [
        ("MALFORMED_FUNCTION_CALL", False),
        (10, False),
        (9, True),
        ("MALFORMED_RESPONSE", False),
        ("UNEXPECTED_TOOL_CALL", False),
        ("TOO_MANY_TOOL_CALLS", False),
    ],
)
def test_an_answer_that_the_model_broke_may_be_asked_for_again(
    reason: str | int, vertex: bool
) -> None:
    result, _ = feed(chunk(finishReason=reason, finishMessage="print(f(1"), vertex=vertex)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ResponseMalformed)
    assert result.error.retryable
    assert "print(f(1" in result.error.message


def test_a_missing_proof_in_the_request_is_the_requests_fault() -> None:
    failed = failure(chunk(finishReason="MISSING_THOUGHT_SIGNATURE"))
    assert isinstance(failed.error, RequestRejected)


@pytest.mark.rules("A1.14")
def test_a_filter_that_stops_an_answer_is_a_refusal_that_says_why() -> None:
    result = answer(
        chunk({"text": "Well, "}), chunk(finishReason="SAFETY", finishMessage="Too dangerous.")
    )
    assert result.stop_reason == "refusal"
    assert result.content == (Text(text="Well, "),)
    assert result.notices == (
        "A filter of the provider stopped the answer (SAFETY): Too dangerous.",
    )


@pytest.mark.rules("A1.14")
@pytest.mark.parametrize(
    ("reason", "word"), [("PROHIBITED_CONTENT", "PROHIBITED_CONTENT"), (4, "PROHIBITED_CONTENT")]
)
def test_a_prompt_that_is_not_let_through_is_a_refusal(reason: str | int, word: str) -> None:
    value = {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 7}}
    result = answer(value)
    assert (result.stop_reason, result.raw_stop_reason) == ("refusal", word)
    assert result.usage == Usage(input=7)
    assert "prompt" in result.notices[0]
    made, _ = decoder()
    made.read(json.dumps(value).encode())
    assert made.finish() == result


def test_a_model_that_says_nothing_for_a_reason_of_its_own_has_failed() -> None:
    failed = failure(chunk(finishReason="OTHER", finishMessage="internal error"))
    assert isinstance(failed.error, ProviderUnavailable)
    assert failed.error.retryable
    assert isinstance(failure(chunk(finishReason="NO_IMAGE")).error, ProviderError)
    assert answer(STOP).content == ()


@pytest.mark.rules("A2.51", "A1.13")
def test_usage_is_counted_as_ours() -> None:
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "toolUsePromptTokenCount": 11,
        "totalTokenCount": 123,
    }
    result = answer(
        {**chunk({"text": "Hi"}), "usageMetadata": {"promptTokenCount": 100}},
        {**STOP, "usageMetadata": usage},
        {"usageMetadata": {"trafficType": "ON_DEMAND"}},
    )
    assert result.usage == Usage(input=51, output=12, cache_read=60, reasoning=7)


@pytest.mark.rules("A2.51")
def test_odd_counts_are_no_counts() -> None:
    odd = {"promptTokenCount": "12", "candidatesTokenCount": -1, "thoughtsTokenCount": True}
    assert answer({**STOP, "usageMetadata": odd}).usage == Usage(input=12)
    assert answer({**STOP, "usageMetadata": [1]}).usage == Usage()


@pytest.mark.rules("A2.63")
def test_the_sources_of_a_search_become_an_artifact() -> None:
    first = {"webSearchQueries": ["who won", "euro 2028"]}
    second: _Json = {
        "groundingChunks": [
            {"web": {"uri": "https://a.test/1", "title": "A"}},
            {"web": {"uri": "javascript:alert(1)", "title": "B"}},
            {"maps": {"uri": "https://maps.test/2"}},
            {"retrievedContext": {"title": "Doc", "text": "words of it"}},
            {"web": {}},
            {"new": {"uri": "https://c.test"}},
            "odd",
        ],
        "groundingSupports": [{"segment": {"endIndex": 3}}],
    }
    result = answer(
        chunk({"text": "Spain."}, groundingMetadata=first),
        chunk(groundingMetadata=second, finishReason="STOP"),
        chunk(groundingMetadata={}),
    )
    assert result.searches == (
        SearchArtifact(
            query="who won; euro 2028",
            items=(
                SearchItem(title="A", url="https://a.test/1"),
                SearchItem(title="B", url=""),
                SearchItem(title="https://maps.test/2", url="https://maps.test/2"),
                SearchItem(title="Doc", url="", snippet="words of it"),
            ),
        ),
    )


@pytest.mark.rules("A2.63")
def test_no_sources_are_no_artifact_and_too_many_are_cut() -> None:
    assert answer(chunk({"text": "Hi"}, groundingMetadata={}, finishReason="STOP")).searches == ()
    chunks = [{"web": {"uri": f"https://a.test/{n}", "title": "x" * 5000}} for n in range(100)]
    (search,) = answer(
        chunk(groundingMetadata={"groundingChunks": chunks}, finishReason="STOP")
    ).searches
    assert (len(search.items), search.truncated) == (64, True)
    assert len(search.items[0].title) == 2000

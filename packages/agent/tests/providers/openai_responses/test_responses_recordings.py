"""Every recorded Responses answer decodes to what was said, or fails as it should.

`expected_openai_responses.json` holds the outcome of each recording, made by a plain reading of
its items and read over by a person. Beside it the bytes themselves say what must have been told.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import PEER, Json, Recordings, load_local, read_body, tell_block

from towline_agent.providers.base import (
    ArgumentsPiece,
    StepAnswer,
    StepFailed,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import answer_error
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_protocol import Block, Opaque, Text, ToolCall

EXPECTED = Path(__file__).with_name("expected_openai_responses.json")
CASES = 39
"""How many Responses recordings there are."""


def _tell(block: Block) -> list[Any]:
    match block:
        case ToolCall():
            return [*tell_block(block), json.loads(block.signature or "{}").get("id")]
        case Opaque():
            assert block.dialect == "openai_responses"
            return ["opaque", block.raw["type"], block.raw["id"]]
        case _:
            return tell_block(block)


def _searches(result: StepAnswer) -> Json:
    found = [[search.query, [hit.url for hit in search.items]] for search in result.searches]
    return {"searches": found}


RECORDED = Recordings(
    "openai-responses",
    lambda _, told: ResponsesDecoder(PEER, told),
    tell=_tell,
    more=_searches,
)


@pytest.mark.rules("A1.13", "A1.14", "A2.4", "A2.17", "A2.20", "A2.28", "A2.30", "A2.31", "A2.63")
def test_every_recording_gives_its_blocks_or_its_error(show_figures: Callable[[str], None]) -> None:
    assert RECORDED.check_outcomes(EXPECTED, "recorded Responses", show_figures) == CASES


def _values(body: bytes) -> list[Json]:
    """The data of a stream, by a naive reading."""
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    return [json.loads(text) for text in data if text != b"[DONE]"]


_WORDS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_text.delta": "thinking",
    "response.reasoning_summary_text.delta": "thinking",
    "response.function_call_arguments.delta": "arguments",
}


_KINDS = {TextPiece: "text", ThinkingPiece: "thinking", ArgumentsPiece: "arguments"}


@pytest.mark.rules("A1.23", "A2.30")
def test_no_word_of_a_recorded_stream_is_lost_or_doubled() -> None:
    compared = 0
    for case in RECORDED.streams:
        result, pieces = RECORDED.result(case)
        if isinstance(result, StepFailed):
            continue
        compared += 1
        said = {"text": "", "thinking": "", "arguments": ""}
        for value in _values(read_body(case)):
            kind = _WORDS.get(value.get("type", ""))
            if kind is not None:
                said[kind] += value["delta"]
        told = {"text": "", "thinking": "", "arguments": ""}
        for piece in pieces:
            told[_KINDS[type(piece)]] += piece.text
        if not said["arguments"]:  # told whole, without pieces
            said["arguments"] = told["arguments"]
        assert told == said, case["id"]
    assert compared > 20


def _items(case: Json) -> list[Json]:
    """The items of an answer, each as it came when it was done."""
    if "body" in case["response"]:
        return case["response"]["body"]["output"]
    values = _values(read_body(case))
    return [v["item"] for v in values if v.get("type") == "response.output_item.done"]


def _wordless(item: Json) -> Json:
    """A message without its words, which stand in blocks of their own."""
    if item["type"] != "message" or item["role"] != "assistant":
        return item
    parts = [
        {key: value for key, value in part.items() if key not in ("text", "logprobs")}
        for part in item["content"]
    ]
    return {**item, "content": parts}


@pytest.mark.rules("A1.8", "A2.28", "A2.31")
def test_all_that_a_vendor_may_want_back_is_kept_as_it_came_and_in_its_place() -> None:
    compared = 0
    for case in RECORDED.cases:
        result, _ = RECORDED.result(case)
        if isinstance(result, StepFailed):
            continue
        kept = [block.raw for block in result.content if isinstance(block, Opaque)]
        items = [item for item in _items(case) if item["type"] != "function_call"]
        assert kept == [_wordless(item) for item in items], case["id"]
        compared += len(kept)
    assert compared > 60


@pytest.mark.rules("A1.22", "A1.23")
def test_the_pieces_of_each_block_are_its_text() -> None:
    RECORDED.check_pieces()


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    RECORDED.check_cuts(split, short=12_000)


_TOLD_OTHERWISE = {"openai-responses-stream-openai-shell-container-1-18214c"}
"""Its pieces were shortened by hand and its whole was not; what was told stays."""


@pytest.mark.rules("A2.4", "A2.30")
def test_a_whole_answer_says_the_same_as_the_stream_that_it_ends() -> None:
    compared = 0
    for case in RECORDED.streams:
        result, _ = RECORDED.result(case)
        if isinstance(result, StepFailed) or case["id"] in _TOLD_OTHERWISE:
            continue
        last = _values(read_body(case))[-1]
        whole, _ = RECORDED.decode(json.dumps(last["response"]).encode(), stream=False)
        assert RECORDED.tell(whole) == RECORDED.tell(result), case["id"]
        alone = b"data: " + json.dumps(last).encode() + b"\n\n"  # no event came before it
        assert RECORDED.tell(RECORDED.decode(alone, stream=True)[0]) == RECORDED.tell(result), case[
            "id"
        ]
        compared += 1
    assert compared > 20


@pytest.mark.rules("A2.30", "A3.9", "R09")
def test_a_recorded_stream_that_is_cut_anywhere_fails_and_keeps_its_words() -> None:
    for case in RECORDED.streams:
        result, _ = RECORDED.result(case)
        if isinstance(result, StepFailed):
            continue
        events = read_body(case).replace(b"\r\n", b"\n").split(b"\n\n")
        ends = [at for at, event in enumerate(events) if b'"response.completed"' in event]
        for end in range(1, min([*ends, len(events) - 2]), 9):
            cut, pieces = RECORDED.decode(b"\n\n".join(events[:end]) + b"\n\n", stream=True)
            assert isinstance(cut, StepFailed), (case["id"], end)
            assert cut.error.reason == "incomplete"
            kept = "".join(block.text for block in cut.content if isinstance(block, Text))
            assert kept == "".join(p.text for p in pieces if isinstance(p, TextPiece))
            assert not any(isinstance(block, ToolCall | Opaque) for block in cut.content)


_PARIS = ["call", "get_weather", '{"city": "Paris"}']
_LOCAL: dict[str, Any] = {
    "error_bad_json_responses": "request_rejected",
    "error_context_overflow_responses_stream": "context_overflow",
    "responses_previous_id_error": "request_rejected",
    "responses_text": ["end_turn", [["text", "Bonjour!"]], [1, 3, 38]],
    "responses_text_stream": ["end_turn", [["text", "Bonjour!"]], [1, 3, 38]],
    "responses_tool": ["tool_calls", [_PARIS], [1, 23, 395]],
    "responses_tool_stream": ["tool_calls", [_PARIS], [1, 23, 395]],
    "responses_tool_parallel_stream": [
        "tool_calls",
        [_PARIS, ["call", "get_weather", '{"city": "Tokyo"}']],
        [9, 46, 390],
    ],
    "responses_tool_result_stream": [
        "end_turn",
        [["text", "The current temperature in Paris is 18°C and the sky is cloudy."]],
        [82, 17, 390],
    ],
}


@pytest.mark.rules("A2.4", "A2.30")
def test_every_recording_of_the_embedded_server_decodes(
    show_figures: Callable[[str], None],
) -> None:
    found = load_local("/v1/responses")
    assert list(found) == sorted(_LOCAL)
    lines: list[str] = []
    for name, _, status, _, body in found.values():
        if status != 200:
            error = answer_error(PEER, status=status, headers={}, body=body, now_ms=0)
            assert error.reason == _LOCAL[name], name
            lines.append(f"{name:40} {type(error).__name__} ({error.reason})")
            continue
        result, _ = RECORDED.decode(body, stream=not body.startswith(b"{"))
        assert isinstance(result, StepAnswer), name
        blocks = [block[:3] for block in RECORDED.tell(result)["blocks"] if block[0] != "opaque"]
        usage = [result.usage.input, result.usage.output, result.usage.cache_read]
        assert [result.stop_reason, blocks, usage] == _LOCAL[name], name
        lines.append(f"{name:40} {result.stop_reason}, {len(blocks)} blocks")
    show_figures("\n  ".join(["recorded llama.cpp responses", *lines]))

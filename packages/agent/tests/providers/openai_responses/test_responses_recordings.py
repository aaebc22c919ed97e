"""Every recorded Responses answer decodes to what was said, or fails as it should.

`expected_openai_responses.json` holds the outcome of each recording, made by a plain reading of
its items and read over by a person. Beside it the bytes themselves say what must have been told.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from towline_agent.providers.base import (
    ArgumentsPiece,
    Piece,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import Peer, answer_error
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_protocol import Opaque, SseDecoder, Text, Thinking, ToolCall

RECORDINGS = Path(__file__).parents[2] / "recordings"
LOCAL = Path(__file__).parents[5] / "packages/app/tests/local/recordings"
EXPECTED = Path(__file__).with_name("expected_openai_responses.json")
PEER = Peer(provider="p", model="m", url="https://example.test/v1")
CASES = 39
"""How many Responses recordings there are."""

_Json = dict[str, Any]


def _cases() -> list[_Json]:
    with (RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["api"] == "openai-responses"]
    return [
        json.loads((RECORDINGS / row["provider"] / f"{row['id']}.json").read_text())
        | {"folder": RECORDINGS / row["provider"]}
        for row in rows
    ]


def _body(case: _Json) -> bytes:
    response = case["response"]
    if "body_file" in response:
        return (case["folder"] / response["body_file"]).read_bytes()
    if "body_text" in response:
        return response["body_text"].encode()
    return json.dumps(response.get("body", {})).encode()


def _decode(
    body: bytes, *, stream: bool, split: int | None = None
) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    decoder = ResponsesDecoder(PEER, pieces.append)
    if not stream:
        decoder.read(body)
        return decoder.finish(), pieces
    events = SseDecoder()
    cuts = [body] if split is None else [body[at : at + split] for at in range(0, len(body), split)]
    for chunk in [*cuts, b"\n\n"]:
        for event in events.feed(chunk):
            decoder.feed(event)
    return decoder.finish(), pieces


def _result(case: _Json, split: int | None = None) -> tuple[StepResult, list[Piece]]:
    response = case["response"]
    body = _body(case)
    if response["status"] != 200:
        error = answer_error(
            PEER, status=response["status"], headers=response["headers"], body=body, now_ms=0
        )
        return StepFailed(error=error), []
    return _decode(body, stream="body_file" in response, split=split)


def _streams() -> list[_Json]:
    return [case for case in _cases() if "body_file" in case["response"]]


def _show(show_figures: Callable[[str], None], title: str, lines: list[str]) -> None:
    show_figures("\n  ".join([title, *lines]))


def _summary(result: StepResult) -> _Json:
    """A result as plain JSON."""
    blocks: list[Any] = []
    for block in result.content:
        match block:
            case Text():
                blocks.append(["text", block.text])
            case Thinking():
                blocks.append(["thinking", block.text])
            case ToolCall():
                kept = json.loads(block.signature or "{}").get("id")
                blocks.append(["call", block.name, block.arguments, block.wire_id, kept])
            case Opaque():
                assert block.dialect == "openai_responses"
                blocks.append(["opaque", block.raw["type"], block.raw["id"]])
            case _:
                blocks.append([type(block).__name__])
    usage = result.usage
    counted = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning]
    if isinstance(result, StepFailed):
        error = result.error
        failed = [type(error).__name__, error.reason, error.status, error.retry_after_s]
        return {"error": failed, "blocks": blocks, "usage": counted}
    return {
        "stop": [result.stop_reason, result.raw_stop_reason],
        "blocks": blocks,
        "usage": counted,
        "notices": list(result.notices),
        "searches": [[found.query, [hit.url for hit in found.items]] for found in result.searches],
    }


@pytest.mark.rules("A1.13", "A1.14", "A2.4", "A2.17", "A2.20", "A2.28", "A2.30", "A2.31", "A2.63")
def test_every_recording_gives_its_blocks_or_its_error(show_figures: Callable[[str], None]) -> None:
    expected = json.loads(EXPECTED.read_text())
    table: dict[str, list[int]] = {}
    wrong: list[str] = []
    for case in _cases():
        row = table.setdefault(case["provider"], [0, 0])
        row[0] += 1
        got = json.loads(json.dumps(_summary(_result(case)[0])))
        if got == expected.get(case["id"]):
            row[1] += 1
        else:
            wrong.append(f"{case['id']}: {got}")
    total = [sum(column) for column in zip(*table.values(), strict=True)]
    rows = [*sorted(table.items()), ("all", total)]
    _show(
        show_figures,
        "recorded Responses          cases  right",
        [f"{provider:24}  {count:5}  {right:5}" for provider, (count, right) in rows],
    )
    assert wrong == []
    assert total == [CASES, CASES]


def _values(body: bytes) -> list[_Json]:
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
    for case in _streams():
        result, pieces = _result(case)
        if isinstance(result, StepFailed):
            continue
        compared += 1
        said = {"text": "", "thinking": "", "arguments": ""}
        for value in _values(_body(case)):
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


def _items(case: _Json) -> list[_Json]:
    """The items of an answer, each as it came when it was done."""
    if "body" in case["response"]:
        return case["response"]["body"]["output"]
    values = _values(_body(case))
    return [v["item"] for v in values if v.get("type") == "response.output_item.done"]


def _wordless(item: _Json) -> _Json:
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
    for case in _cases():
        result, _ = _result(case)
        if isinstance(result, StepFailed):
            continue
        kept = [block.raw for block in result.content if isinstance(block, Opaque)]
        items = [item for item in _items(case) if item["type"] != "function_call"]
        assert kept == [_wordless(item) for item in items], case["id"]
        compared += len(kept)
    assert compared > 60


@pytest.mark.rules("A1.22", "A1.23")
def test_the_pieces_of_each_block_are_its_text() -> None:
    for case in _cases():
        result, pieces = _result(case)
        if isinstance(result, StepFailed):
            continue
        assert all(piece.text for piece in pieces), case["id"]
        for place, block in enumerate(result.content):
            told = "".join(piece.text for piece in pieces if piece.block == place)
            if isinstance(block, ToolCall):
                assert told == block.arguments, case["id"]
            elif isinstance(block, Text | Thinking):
                assert told == block.text, case["id"]
            else:
                assert told == "", case["id"]


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    streams = _streams()
    short = [case for case in streams if len(_body(case)) < 12_000]
    assert len(short) > 10
    for case in short if split < 8 else streams:
        (cut, told), (whole, all_told) = _result(case, split), _result(case)
        assert (_summary(cut), told) == (_summary(whole), all_told), case["id"]


_TOLD_OTHERWISE = {"openai-responses-stream-openai-shell-container-1-18214c"}
"""Its pieces were shortened by hand and its whole was not; what was told stays."""


@pytest.mark.rules("A2.4", "A2.30")
def test_a_whole_answer_says_the_same_as_the_stream_that_it_ends() -> None:
    compared = 0
    for case in _streams():
        result, _ = _result(case)
        if isinstance(result, StepFailed) or case["id"] in _TOLD_OTHERWISE:
            continue
        last = _values(_body(case))[-1]
        whole, _ = _decode(json.dumps(last["response"]).encode(), stream=False)
        assert _summary(whole) == _summary(result), case["id"]
        alone = b"data: " + json.dumps(last).encode() + b"\n\n"  # no event came before it
        assert _summary(_decode(alone, stream=True)[0]) == _summary(result), case["id"]
        compared += 1
    assert compared > 20


@pytest.mark.rules("A2.30", "A3.9", "R09")
def test_a_recorded_stream_that_is_cut_anywhere_fails_and_keeps_its_words() -> None:
    for case in _streams():
        result, _ = _result(case)
        if isinstance(result, StepFailed):
            continue
        events = _body(case).replace(b"\r\n", b"\n").split(b"\n\n")
        ends = [at for at, event in enumerate(events) if b'"response.completed"' in event]
        for end in range(1, min([*ends, len(events) - 2]), 9):
            cut, pieces = _decode(b"\n\n".join(events[:end]) + b"\n\n", stream=True)
            assert isinstance(cut, StepFailed), (case["id"], end)
            assert cut.error.reason == "incomplete"
            kept = "".join(block.text for block in cut.content if isinstance(block, Text))
            assert kept == "".join(p.text for p in pieces if isinstance(p, TextPiece))
            assert not any(isinstance(block, ToolCall | Opaque) for block in cut.content)


def _local(name: str) -> tuple[_Json, bytes]:
    meta = json.loads((LOCAL / f"{name}.meta.json").read_text())
    return meta, (LOCAL / meta["response"]["body_file"]).read_bytes()


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
    names = sorted(path.name.removesuffix(".meta.json") for path in LOCAL.glob("*.meta.json"))
    asked = [name for name in names if _local(name)[0]["request"]["path"] == "/v1/responses"]
    assert asked == sorted(_LOCAL)
    lines: list[str] = []
    for name in asked:
        meta, body = _local(name)
        status = meta["response"]["status"]
        if status != 200:
            error = answer_error(PEER, status=status, headers={}, body=body, now_ms=0)
            assert error.reason == _LOCAL[name], name
            lines.append(f"{name:40} {type(error).__name__} ({error.reason})")
            continue
        result, _ = _decode(body, stream=not body.startswith(b"{"))
        assert isinstance(result, StepAnswer), name
        blocks = [block[:3] for block in _summary(result)["blocks"] if block[0] != "opaque"]
        usage = [result.usage.input, result.usage.output, result.usage.cache_read]
        assert [result.stop_reason, blocks, usage] == _LOCAL[name], name
        lines.append(f"{name:40} {result.stop_reason}, {len(blocks)} blocks")
    _show(show_figures, "recorded llama.cpp responses", lines)

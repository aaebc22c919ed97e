"""Every recorded `generateContent` answer decodes to what was said, or fails as it should.

`expected_gemini.json` holds the outcome of each recording, read over by a person. Beside it a plain
reading of the same bytes says what must have been told.
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
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import Peer, answer_error
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import Opaque, SseDecoder, Text, Thinking, ToolCall

RECORDINGS = Path(__file__).parents[2] / "recordings"
EXPECTED = Path(__file__).with_name("expected_gemini.json")
PEER = Peer(provider="p", model="m", url="https://example.test/v1beta")
CASES = 37
"""How many recordings of this API there are."""
_Json = dict[str, Any]


def _cases() -> list[_Json]:
    with (RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["api"] == "gemini"]
    return [
        json.loads((RECORDINGS / row["provider"] / f"{row['id']}.json").read_text())
        | {"folder": RECORDINGS / row["provider"]}
        for row in rows
    ]


def _body(case: _Json) -> bytes:
    response = case["response"]
    if "body_file" in response:
        return (case["folder"] / response["body_file"]).read_bytes()
    return json.dumps(response["body"]).encode()


def _streams(case: _Json) -> bool:
    return case["response"].get("body_file", "").endswith(".sse")


def _decode(case: _Json, split: int | None = None) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    flags = GeminiFlags(vertex=case["provider"] == "vertex")
    decoder = GeminiDecoder(PEER, flags, pieces.append)
    body = _body(case)
    if not _streams(case):
        decoder.read(body)
        return decoder.finish(), pieces
    events = SseDecoder()
    cuts = [body] if split is None else [body[at : at + split] for at in range(0, len(body), split)]
    told = [event for chunk in [*cuts, b"\n\n"] for event in events.feed(chunk)]
    ended = [decoder.feed(event) for event in told]
    assert not any(ended[:-1]), "the answer goes on"
    return decoder.finish(), pieces


def _result(case: _Json, split: int | None = None) -> tuple[StepResult, list[Piece]]:
    response = case["response"]
    if response["status"] == 200:
        return _decode(case, split)
    error = answer_error(
        PEER,
        status=response["status"],
        headers=response["headers"],
        body=_body(case),
        now_ms=0,
    )
    return StepFailed(error=error), []


def _summary(result: StepResult) -> _Json:
    """A result as plain JSON; of a proof only its beginning, which tells them apart."""
    blocks: list[Any] = []
    for block in result.content:
        match block:
            case Text():
                blocks.append(["text", block.text])
            case Thinking():
                blocks.append(["thinking", block.text, (block.signature or "")[:24]])
            case ToolCall():
                proof = (block.signature or "")[:24]
                blocks.append(["call", block.name, block.arguments, block.wire_id, proof])
            case Opaque(raw=raw):
                proof = raw.get("thoughtSignature", "")[:24]
                blocks.append(["opaque", sorted(raw), proof])
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
        "sources": [[item.title, item.url] for search in result.searches for item in search.items],
    }


@pytest.mark.rules(
    "A2.20", "A2.44", "A2.46", "A2.48", "A2.49", "A2.50", "A2.51", "A2.63", "A1.13", "A1.14",
)  # fmt: skip
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
    lines = [f"{provider:24}  {count:5}  {right:5}" for provider, (count, right) in rows]
    show_figures("\n  ".join(["recorded Gemini answers     cases  right", *lines]))
    assert wrong == []
    assert total == [CASES, CASES]


def _values(case: _Json) -> list[_Json]:
    """The JSON of an answer by a naive reading."""
    body = _body(case)
    if not _streams(case):
        whole: list[_Json] | _Json = json.loads(body)
        return whole if isinstance(whole, list) else [whole]
    lines = body.decode().splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")]


def _parts(case: _Json) -> list[_Json]:
    return [
        part
        for value in _values(case)
        for candidate in value.get("candidates", [])
        for part in candidate.get("content", {}).get("parts", [])
    ]


@pytest.mark.rules("A1.23", "A2.44", "A2.46")
def test_no_word_and_no_proof_of_a_recorded_answer_is_lost_or_doubled() -> None:
    answers = [case for case in _cases() if case["response"]["status"] == 200]
    assert len(answers) > 25
    for case in answers:
        result, pieces = _result(case)
        parts = _parts(case)
        said = [part for part in parts if not part.get("thought")]
        text = "".join(part.get("text", "") for part in said)
        thinking = "".join(part.get("text", "") for part in parts if part.get("thought"))
        assert "".join(p.text for p in pieces if isinstance(p, TextPiece)) == text, case["id"]
        assert "".join(p.text for p in pieces if isinstance(p, ThinkingPiece)) == thinking
        proofs = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
        kept: list[str | None] = []
        for block in result.content:
            if isinstance(block, Opaque):
                kept.append(block.raw.get("thoughtSignature"))
            elif isinstance(block, Thinking | ToolCall):
                kept.append(block.signature)
        assert [proof for proof in kept if proof] == proofs, case["id"]


@pytest.mark.rules("A2.48", "A2.49")
def test_the_calls_of_recorded_answers_have_their_names_and_arguments() -> None:
    """Read naively: a named call begins one, streamed pieces add to the last one."""
    seen = 0
    for case in _cases():
        if case["response"]["status"] != 200:
            continue
        calls: list[list[Any]] = []
        for part in _parts(case):
            call: _Json | None = part.get("functionCall")
            if call is None:
                continue
            if "name" in call:
                calls.append([call["name"], call.get("args", {}), call.get("id")])
            for piece in call.get("partialArgs", []):
                key = piece["jsonPath"].removeprefix("$.")
                calls[-1][1][key] = calls[-1][1].get(key, "") + piece["stringValue"]
        found = [
            [block.name, json.loads(block.arguments), block.wire_id]
            for block in _result(case)[0].content
            if isinstance(block, ToolCall)
        ]
        assert found == calls, case["id"]
        seen += len(calls)
    assert seen >= 16


@pytest.mark.rules("A2.51", "A1.13")
def test_recorded_usage_adds_up_to_the_vendors_total() -> None:
    counted = 0
    for case in _cases():
        if case["response"]["status"] != 200:
            continue
        totals = [value.get("usageMetadata", {}).get("totalTokenCount") for value in _values(case)]
        usage = _result(case)[0].usage
        ours = usage.input + usage.output + usage.cache_read + usage.cache_write
        assert ours == (totals[-1] or 0), case["id"]
        counted += bool(ours)
    assert counted > 20


@pytest.mark.rules("A1.22", "A1.23")
def test_the_pieces_of_each_block_are_its_text() -> None:
    for case in _cases():
        result, pieces = _result(case)
        if isinstance(result, StepFailed):
            continue
        told = {
            place: "".join(piece.text for piece in pieces if piece.block == place)
            for place in range(len(result.content))
        }
        assert all(piece.text for piece in pieces), case["id"]
        for place, block in enumerate(result.content):
            if isinstance(block, ToolCall):
                assert told[place] == block.arguments
            elif isinstance(block, Text | Thinking):
                assert told[place] == block.text, case["id"]
        assert {type(piece) for piece in pieces} <= {TextPiece, ThinkingPiece, ArgumentsPiece}


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    streams = [case for case in _cases() if _streams(case)]
    short = [case for case in streams if len(_body(case)) < 9_000]
    assert len(short) >= 11
    for case in short if split < 8 else streams:
        (cut, told), (whole, all_told) = _result(case, split), _result(case)
        assert (_summary(cut), told) == (_summary(whole), all_told), case["id"]


@pytest.mark.rules("A2.44")
def test_a_recorded_stream_reads_the_same_as_one_array_of_its_chunks() -> None:
    streams = [case for case in _cases() if _streams(case)]
    for case in streams:
        pieces: list[Piece] = []
        flags = GeminiFlags(vertex=case["provider"] == "vertex")
        decoder = GeminiDecoder(PEER, flags, pieces.append)
        decoder.read(json.dumps(_values(case)).encode())
        assert (_summary(decoder.finish()), pieces) == (
            _summary(_result(case)[0]),
            _result(case)[1],
        ), case["id"]

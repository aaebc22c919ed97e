"""Every recorded `generateContent` answer decodes to what was said, or fails as it should.

`expected_gemini.json` holds the outcome of each recording, read over by a person. Beside it a plain
reading of the same bytes says what must have been told.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import PEER, Json, Recordings, is_stream, read_body, tell_block

from towline_agent.providers.base import (
    Piece,
    StepAnswer,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import Block, Opaque, SseDecoder, Thinking, ToolCall

EXPECTED = Path(__file__).with_name("expected_gemini.json")
CASES = 37
"""How many recordings of this API there are."""


def _make(case: Json, told: Callable[[Piece], None]) -> GeminiDecoder:
    return GeminiDecoder(PEER, GeminiFlags(vertex=case["provider"] == "vertex"), told)


def _tell(block: Block) -> list[Any]:
    """A block as plain JSON; of a proof only its beginning, which tells them apart."""
    match block:
        case Thinking() | ToolCall():
            return [*tell_block(block), (block.signature or "")[:24]]
        case Opaque(raw=raw):
            return ["opaque", sorted(raw), raw.get("thoughtSignature", "")[:24]]
        case _:
            return tell_block(block)


def _sources(result: StepAnswer) -> Json:
    return {
        "sources": [[item.title, item.url] for found in result.searches for item in found.items]
    }


RECORDED = Recordings("gemini", _make, tell=_tell, more=_sources)


@pytest.mark.rules(
    "A2.20", "A2.44", "A2.46", "A2.48", "A2.49", "A2.50", "A2.51", "A2.63", "A1.13", "A1.14",
)  # fmt: skip
def test_every_recording_gives_its_blocks_or_its_error(show_figures: Callable[[str], None]) -> None:
    assert RECORDED.check_outcomes(EXPECTED, "recorded Gemini answers", show_figures) == CASES


def _values(case: Json) -> list[Json]:
    """The JSON of an answer by a naive reading."""
    body = read_body(case)
    if not is_stream(case):
        whole: list[Json] | Json = json.loads(body)
        return whole if isinstance(whole, list) else [whole]
    lines = body.decode().splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")]


def _parts(case: Json) -> list[Json]:
    return [
        part
        for value in _values(case)
        for candidate in value.get("candidates", [])
        for part in candidate.get("content", {}).get("parts", [])
    ]


@pytest.mark.rules("A1.23", "A2.44", "A2.46")
def test_no_word_and_no_proof_of_a_recorded_answer_is_lost_or_doubled() -> None:
    answers = [case for case in RECORDED.cases if case["response"]["status"] == 200]
    assert len(answers) > 25
    for case in answers:
        result, pieces = RECORDED.result(case)
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
    for case in RECORDED.cases:
        if case["response"]["status"] != 200:
            continue
        calls: list[list[Any]] = []
        for part in _parts(case):
            call: Json | None = part.get("functionCall")
            if call is None:
                continue
            if "name" in call:
                calls.append([call["name"], call.get("args", {}), call.get("id")])
            for piece in call.get("partialArgs", []):
                key = piece["jsonPath"].removeprefix("$.")
                calls[-1][1][key] = calls[-1][1].get(key, "") + piece["stringValue"]
        found = [
            [block.name, json.loads(block.arguments), block.wire_id]
            for block in RECORDED.result(case)[0].content
            if isinstance(block, ToolCall)
        ]
        assert found == calls, case["id"]
        seen += len(calls)
    assert seen >= 16


@pytest.mark.rules("A2.51", "A1.13")
def test_recorded_usage_adds_up_to_the_vendors_total() -> None:
    counted = 0
    for case in RECORDED.cases:
        if case["response"]["status"] != 200:
            continue
        totals = [value.get("usageMetadata", {}).get("totalTokenCount") for value in _values(case)]
        usage = RECORDED.result(case)[0].usage
        ours = usage.input + usage.output + usage.cache_read + usage.cache_write
        assert ours == (totals[-1] or 0), case["id"]
        counted += bool(ours)
    assert counted > 20


@pytest.mark.rules("A1.22", "A1.23")
def test_the_pieces_of_each_block_are_its_text() -> None:
    RECORDED.check_pieces()


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    RECORDED.check_cuts(split, short=9_000)


@pytest.mark.rules("A2.44")
def test_a_recorded_stream_reads_the_same_as_one_array_of_its_chunks() -> None:
    for case in RECORDED.streams:
        array = json.dumps(_values(case)).encode()
        whole, pieces = RECORDED.decode(array, stream=False, case=case)
        result, told = RECORDED.result(case)
        assert (RECORDED.tell(whole), pieces) == (RECORDED.tell(result), told), case["id"]


@pytest.mark.rules("A2.44", "A2.20")
def test_no_event_but_the_last_ends_a_recorded_stream() -> None:
    for case in RECORDED.streams:
        decoder = _make(case, lambda _: None)
        ended = [decoder.feed(event) for event in SseDecoder().feed(read_body(case) + b"\n\n")]
        assert not any(ended[:-1]), case["id"]

"""Every recorded answer of the Messages API decodes to what was said, or fails as it should.

`expected_anthropic.json` holds the outcome of each recording, read over by a person. Beside it a
plain reading of the same bytes says what must have been told, and what must go back as it came.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import (
    PEER,
    Json,
    Recordings,
    is_stream,
    load_local,
    name_calls,
    read_body,
    tell_block,
)

from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.base import (
    ArgumentsPiece,
    Model,
    Request,
    StepAnswer,
    StepFailed,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import answer_error
from towline_protocol import (
    Block,
    Message,
    Opaque,
    SseDecoder,
    Text,
    Thinking,
    ToolCall,
)

EXPECTED = Path(__file__).with_name("expected_anthropic.json")
MODEL = Model(provider="p", id="m")
CASES = 40
"""How many recordings of the Messages API there are."""


def _proof(signature: str | None) -> str | None:
    return signature and f"{signature[:12]}… of {len(signature)}"


def _tell(block: Block) -> list[Any]:
    """A block as plain JSON; long proofs by their beginning and length."""
    match block:
        case Thinking(redacted=True):
            return ["redacted", block.text, _proof(block.signature)]
        case Thinking():
            return ["thinking", block.text, _proof(block.signature)]
        case Opaque():
            raw: Json = block.raw
            return ["opaque", raw.get("type", f"{len(raw.get('citations', ()))} citations")]
        case _:
            return tell_block(block)


def _searches(result: StepAnswer) -> Json:
    found = [[s.query, [[i.url, i.title, i.snippet] for i in s.items]] for s in result.searches]
    return {"searches": found} if found else {}


RECORDED = Recordings(
    "anthropic-messages",
    lambda _, told: MessagesDecoder(PEER, told),
    tell=_tell,
    more=_searches,
)


@pytest.mark.rules(
    "A1.13", "A1.14", "A2.20", "A2.37", "A2.38", "A2.42", "A2.43", "A2.62", "A2.63", "A3.9",
)  # fmt: skip
def test_every_recording_gives_its_blocks_or_its_error(show_figures: Callable[[str], None]) -> None:
    assert RECORDED.check_outcomes(EXPECTED, "recorded Messages", show_figures) == CASES


def _plain_blocks(case: Json) -> list[Json]:
    """The final blocks by a naive reading of the bytes, as the vendor's own clients build them."""
    if "body_file" not in case["response"]:
        return case["response"]["body"]["content"]
    blocks: dict[int, Json] = {}
    inputs: dict[int, str] = {}
    for line in read_body(case).replace(b"\r\n", b"\n").split(b"\n"):
        if not line.startswith(b"data:") or line[5:].strip() in (b"", b"[DONE]"):
            continue
        event: Json = json.loads(line[5:])
        at = event.get("index", -1)
        if event["type"] == "content_block_start":
            blocks[at] = event["content_block"]
        if event["type"] == "content_block_delta":
            delta: Json = event["delta"]
            inputs[at] = inputs.get(at, "") + delta.get("partial_json", "")
            _grow(blocks[at], delta)
    for at, text in inputs.items():
        if "input" in blocks[at]:
            blocks[at]["input"] = json.loads(text or "{}")
    return [blocks[at] for at in sorted(blocks)]


def _grow(block: Json, delta: Json) -> None:
    match delta["type"]:
        case "citations_delta":
            block["citations"] = [*block.get("citations", []), delta["citation"]]
        case "compaction_delta":
            block |= {key: delta[key] for key in ("content", "encrypted_content")}
        case "input_json_delta":
            assert block["type"] in ("tool_use", "server_tool_use")
        case kind:
            key = kind.removesuffix("_delta")
            block[key] = block.get(key, "") + delta[key]


def _whole_answers() -> list[Json]:
    spoilt = ("spliced", "streaming-test-053764")  # one is two answers in one, one an error
    return [
        case
        for case in RECORDED.cases
        if case["response"]["status"] == 200
        and not any(word in case["id"] for word in spoilt)
        and case["provider"] != "ollama"  # an error too
    ]


@pytest.mark.rules("A1.23", "A2.12")
def test_no_word_of_a_recorded_answer_is_lost_or_doubled() -> None:
    cases = _whole_answers()
    assert len(cases) == CASES - 6 - 3
    for case in cases:
        _, pieces = RECORDED.result(case)
        told = {
            kind: "".join(piece.text for piece in pieces if isinstance(piece, kind))
            for kind in (TextPiece, ThinkingPiece)
        }
        blocks = _plain_blocks(case)
        assert told[TextPiece] == "".join(
            block["text"] for block in blocks if block["type"] == "text"
        ), case["id"]
        assert told[ThinkingPiece] == "".join(
            block["thinking"] for block in blocks if block["type"] == "thinking"
        ), case["id"]
        told_calls = "".join(piece.text for piece in pieces if isinstance(piece, ArgumentsPiece))
        calls = [block["input"] for block in blocks if block["type"] == "tool_use"]
        assert _objects(told_calls) == [call for call in calls if call], case["id"]


def _objects(text: str) -> list[Json]:
    """JSON objects that stand one after the other."""
    decoder, found = json.JSONDecoder(), list[Json]()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


@pytest.mark.rules("A1.8", "A2.37", "A2.38", "D23")
def test_what_a_recorded_model_said_goes_back_as_it_came() -> None:
    """Proofs byte for byte, vendor blocks and citations whole, all in their places."""
    for case in _whole_answers():
        result, _ = RECORDED.result(case)
        named = name_calls(result.content)
        history = (
            Message("user", (Text(text="Hi"),)),
            Message("assistant", named, model=MODEL.name),
            Message("user", (Text(text="Go on"),)),
        )
        request = Request(model="m", messages=history)
        body = json.loads(encode_request(request, MODEL, AnthropicFlags(), stream=True).body)
        sent: list[Json] = body["messages"][1]["content"] if named else []
        assert sent == [_sendable(block) for block in _plain_blocks(case)], case["id"]


def _sendable(block: Json) -> Json:
    kept = dict(block)
    if kept["type"] == "tool_use" and kept.get("caller", {}).get("type", "direct") == "direct":
        kept.pop("caller", None)  # what it is when nothing is said
    if kept["type"] == "text" and not kept.get("citations"):
        kept.pop("citations", None)
    return kept


@pytest.mark.rules("A1.22", "A1.23")
def test_the_pieces_of_each_block_are_its_text() -> None:
    RECORDED.check_pieces()


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    RECORDED.check_cuts(split, short=12_000)


@pytest.mark.rules("A3.9", "R09")
def test_no_beginning_of_a_recorded_stream_counts_as_an_answer() -> None:
    for case in _whole_answers():
        if not is_stream(case):
            continue
        events = SseDecoder().feed(read_body(case) + b"\n\n")
        ends = [at for at, event in enumerate(events) if b'"message_delta"' in event.data]
        assert ends, case["id"]
        for end in range(ends[0]):
            decoder = MessagesDecoder(PEER, lambda _: None)
            for event in events[:end]:
                decoder.feed(event)
            result = decoder.finish()
            assert isinstance(result, StepFailed), case["id"]
            assert result.error.reason == "incomplete"
            assert not any(isinstance(block, ToolCall) for block in result.content)


_LOCAL_ERRORS = {
    "error_bad_json_messages": "request_rejected",
    "error_context_overflow_messages": "context_overflow",
    "error_context_overflow_messages_stream": "context_overflow",
    "error_no_api_key_messages": "auth",
}
_LOCAL_STOPS = {
    "messages_max_tokens_stream": "max_tokens",
    "messages_tool": "tool_calls",
    "messages_tool_any_stream": "tool_calls",
    "messages_tool_parallel_stream": "tool_calls",
    "messages_tool_stream": "tool_calls",
    "messages_x_api_key": "max_tokens",
}


@pytest.mark.rules("A2.43", "A3.19")
def test_every_recording_of_the_embedded_server_decodes(
    show_figures: Callable[[str], None],
) -> None:
    lines: list[str] = []
    asked = load_local("/v1/messages")
    assert len(asked) >= 15
    for name, _, status, _, body in asked.values():
        if status != 200:
            error = answer_error(PEER, status=status, headers={}, body=body, now_ms=0)
            assert error.reason == _LOCAL_ERRORS[name], name
            lines.append(f"{name:40} {type(error).__name__} ({error.reason})")
            continue
        result, _ = RECORDED.decode(body, stream=body.startswith(b"event:"))
        assert not isinstance(result, StepFailed), name
        assert result.stop_reason == _LOCAL_STOPS.get(name, "end_turn"), name
        assert result.content
        assert result.usage.output > 0
        assert result.usage.input > 0
        lines.append(f"{name:40} {result.stop_reason}, {len(result.content)} blocks")
    show_figures("\n  ".join(["recorded llama.cpp messages", *lines]))


@pytest.mark.rules("A2.43")
def test_parallel_calls_of_the_embedded_server_stay_apart() -> None:
    body = load_local("/v1/messages")["messages_tool_parallel_stream"].body
    result, _ = RECORDED.decode(body, stream=True)
    calls = [block for block in result.content if isinstance(block, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("get_weather", '{"city": "Paris"}'),
        ("get_weather", '{"city": "Tokyo"}'),
    ]
    assert len({call.wire_id for call in calls}) == 2

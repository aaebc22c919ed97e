"""Every recorded answer of the Messages API decodes to what was said, or fails as it should.

`expected_anthropic.json` holds the outcome of each recording, read over by a person. Beside it a
plain reading of the same bytes says what must have been told, and what must go back as it came.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.base import (
    ArgumentsPiece,
    Model,
    Piece,
    Request,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.errors import Peer, answer_error
from towline_protocol import (
    CallId,
    Message,
    Opaque,
    SseDecoder,
    Text,
    Thinking,
    ToolCall,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
LOCAL = Path(__file__).parents[5] / "packages/app/tests/local/recordings"
EXPECTED = Path(__file__).with_name("expected_anthropic.json")
PEER = Peer(provider="p", model="m", url="https://example.test/v1")
MODEL = Model(provider="p", id="m")
CASES = 40
"""How many recordings of the Messages API there are."""
_Json = dict[str, Any]


def _cases() -> list[_Json]:
    with (RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["api"] == "anthropic-messages"]
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
    return json.dumps(response["body"]).encode()


def _decode(
    body: bytes, *, stream: bool, split: int | None = None
) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    decoder = MessagesDecoder(PEER, pieces.append)
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


def _show(show_figures: Callable[[str], None], title: str, lines: list[str]) -> None:
    show_figures("\n  ".join([title, *lines]))


def _proof(signature: str | None) -> str | None:
    return signature and f"{signature[:12]}… of {len(signature)}"


def _summary(result: StepResult) -> _Json:
    """A result as plain JSON; long proofs by their beginning and length."""
    blocks: list[Any] = []
    for block in result.content:
        match block:
            case Text():
                blocks.append(["text", block.text])
            case Thinking(redacted=True):
                blocks.append(["redacted", block.text, _proof(block.signature)])
            case Thinking():
                blocks.append(["thinking", block.text, _proof(block.signature)])
            case ToolCall():
                blocks.append(["call", block.name, block.arguments, block.wire_id])
            case Opaque():
                raw: _Json = block.raw
                blocks.append(
                    ["opaque", raw.get("type", f"{len(raw.get('citations', ()))} citations")]
                )
            case _:
                blocks.append([type(block).__name__])
    usage = result.usage
    counted = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning]
    if isinstance(result, StepFailed):
        error = result.error
        failed = [type(error).__name__, error.reason, error.status, error.retry_after_s]
        return {"error": failed, "blocks": blocks, "usage": counted}
    stop = [result.stop_reason, result.raw_stop_reason]
    summary = {"stop": stop, "blocks": blocks, "usage": counted, "notices": list(result.notices)}
    if result.searches:
        found = [[s.query, [[i.url, i.title, i.snippet] for i in s.items]] for s in result.searches]
        summary["searches"] = found
    return summary


@pytest.mark.rules(
    "A1.13", "A1.14", "A2.20", "A2.37", "A2.38", "A2.42", "A2.43", "A2.62", "A2.63", "A3.9",
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
    _show(
        show_figures,
        "recorded Messages           cases  right",
        [f"{provider:24}  {count:5}  {right:5}" for provider, (count, right) in rows],
    )
    assert wrong == []
    assert total == [CASES, CASES]


def _plain_blocks(case: _Json) -> list[_Json]:
    """The final blocks by a naive reading of the bytes, as the vendor's own clients build them."""
    if "body_file" not in case["response"]:
        return case["response"]["body"]["content"]
    blocks: dict[int, _Json] = {}
    inputs: dict[int, str] = {}
    for line in _body(case).replace(b"\r\n", b"\n").split(b"\n"):
        if not line.startswith(b"data:") or line[5:].strip() in (b"", b"[DONE]"):
            continue
        event: _Json = json.loads(line[5:])
        at = event.get("index", -1)
        if event["type"] == "content_block_start":
            blocks[at] = event["content_block"]
        if event["type"] == "content_block_delta":
            delta: _Json = event["delta"]
            inputs[at] = inputs.get(at, "") + delta.get("partial_json", "")
            _grow(blocks[at], delta)
    for at, text in inputs.items():
        if "input" in blocks[at]:
            blocks[at]["input"] = json.loads(text or "{}")
    return [blocks[at] for at in sorted(blocks)]


def _grow(block: _Json, delta: _Json) -> None:
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


def _whole_answers() -> list[_Json]:
    spoilt = ("spliced", "streaming-test-053764")  # one is two answers in one, one an error
    return [
        case
        for case in _cases()
        if case["response"]["status"] == 200
        and not any(word in case["id"] for word in spoilt)
        and case["provider"] != "ollama"  # an error too
    ]


@pytest.mark.rules("A1.23", "A2.12")
def test_no_word_of_a_recorded_answer_is_lost_or_doubled() -> None:
    cases = _whole_answers()
    assert len(cases) == CASES - 6 - 3
    for case in cases:
        _, pieces = _result(case)
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


def _objects(text: str) -> list[_Json]:
    """JSON objects that stand one after the other."""
    decoder, found = json.JSONDecoder(), list[_Json]()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


@pytest.mark.rules("A1.8", "A2.37", "A2.38", "D23")
def test_what_a_recorded_model_said_goes_back_as_it_came() -> None:
    """Proofs byte for byte, vendor blocks and citations whole, all in their places."""
    for case in _whole_answers():
        result, _ = _result(case)
        named = tuple(
            ToolCall(
                id=CallId(f"call_{place}"),
                name=block.name,
                arguments=block.arguments,
                wire_id=block.wire_id,
                signature=block.signature,
            )
            if isinstance(block, ToolCall)
            else block
            for place, block in enumerate(result.content)
        )
        history = (
            Message("user", (Text(text="Hi"),)),
            Message("assistant", named, model=MODEL.name),
            Message("user", (Text(text="Go on"),)),
        )
        request = Request(model="m", messages=history)
        body = json.loads(encode_request(request, MODEL, AnthropicFlags(), stream=True).body)
        sent: list[_Json] = body["messages"][1]["content"] if named else []
        assert sent == [_sendable(block) for block in _plain_blocks(case)], case["id"]


def _sendable(block: _Json) -> _Json:
    kept = dict(block)
    if kept["type"] == "tool_use" and kept.get("caller", {}).get("type", "direct") == "direct":
        kept.pop("caller", None)  # what it is when nothing is said
    if kept["type"] == "text" and not kept.get("citations"):
        kept.pop("citations", None)
    return kept


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
                assert (told[place] or "{}") == block.arguments
            elif isinstance(block, Text | Thinking):
                assert told[place] == block.text, case["id"]
            else:
                assert told[place] == ""
        assert {piece.block for piece in pieces} <= set(told)


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    streams = [case for case in _cases() if "body_file" in case["response"]]
    short = [case for case in streams if len(_body(case)) < 12_000]
    assert len(short) >= 15
    for case in short if split < 8 else streams:
        (cut, told), (whole, all_told) = _result(case, split), _result(case)
        assert (_summary(cut), told) == (_summary(whole), all_told), case["id"]


@pytest.mark.rules("A3.9", "R09")
def test_no_beginning_of_a_recorded_stream_counts_as_an_answer() -> None:
    for case in _whole_answers():
        if "body_file" not in case["response"]:
            continue
        events = SseDecoder().feed(_body(case) + b"\n\n")
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


def _local(name: str) -> tuple[_Json, bytes]:
    meta = json.loads((LOCAL / f"{name}.meta.json").read_text())
    return meta, (LOCAL / meta["response"]["body_file"]).read_bytes()


def _local_names() -> list[str]:
    names = sorted(path.name.removesuffix(".meta.json") for path in LOCAL.glob("*.meta.json"))
    return [
        name for name in names if _local(name)[0]["request"]["path"].split("?")[0] == "/v1/messages"
    ]


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
    names = _local_names()
    assert len(names) >= 15
    for name in names:
        meta, body = _local(name)
        status = meta["response"]["status"]
        if status != 200:
            error = answer_error(PEER, status=status, headers={}, body=body, now_ms=0)
            assert error.reason == _LOCAL_ERRORS[name], name
            lines.append(f"{name:40} {type(error).__name__} ({error.reason})")
            continue
        result, _ = _decode(body, stream=body.startswith(b"event:"))
        assert not isinstance(result, StepFailed), name
        assert result.stop_reason == _LOCAL_STOPS.get(name, "end_turn"), name
        assert result.content
        assert result.usage.output > 0
        assert result.usage.input > 0
        lines.append(f"{name:40} {result.stop_reason}, {len(result.content)} blocks")
    _show(show_figures, "recorded llama.cpp messages", lines)


@pytest.mark.rules("A2.43")
def test_parallel_calls_of_the_embedded_server_stay_apart() -> None:
    _, body = _local("messages_tool_parallel_stream")
    result, _ = _decode(body, stream=True)
    calls = [block for block in result.content if isinstance(block, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("get_weather", '{"city": "Paris"}'),
        ("get_weather", '{"city": "Tokyo"}'),
    ]
    assert len({call.wire_id for call in calls}) == 2

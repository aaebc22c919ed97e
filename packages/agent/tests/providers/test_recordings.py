"""Every recorded Chat Completions answer decodes to what was said, or fails as it should.

`expected_openai_chat.json` holds the outcome of each recording, read over by a person. Beside it a
plain reading of the same bytes says what must have been told.
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
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_protocol import SseDecoder, Text, Thinking, ToolCall

RECORDINGS = Path(__file__).parents[1] / "recordings"
LOCAL = Path(__file__).parents[4] / "packages/app/tests/local/recordings"
EXPECTED = Path(__file__).with_name("expected_openai_chat.json")
PEER = Peer(provider="p", model="m", url="https://example.test/v1")
CASES = 103
"""How many Chat Completions recordings there are."""


def _cases() -> list[dict[str, Any]]:
    with (RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["api"] == "openai-chat"]
    return [
        json.loads((RECORDINGS / row["provider"] / f"{row['id']}.json").read_text())
        | {"folder": RECORDINGS / row["provider"]}
        for row in rows
    ]


def _body(case: dict[str, Any]) -> bytes:
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
    decoder = ChatDecoder(PEER, ChatFlags(), pieces.append)
    if not stream:
        decoder.read(body)
        return decoder.finish(), pieces
    events = SseDecoder()
    cuts = [body] if split is None else [body[at : at + split] for at in range(0, len(body), split)]
    for chunk in [*cuts, b"\n\n"]:
        for event in events.feed(chunk):
            decoder.feed(event)
    return decoder.finish(), pieces


def _result(case: dict[str, Any], split: int | None = None) -> tuple[StepResult, list[Piece]]:
    response = case["response"]
    body = _body(case)
    if response["status"] != 200:
        error = answer_error(
            PEER,
            status=response["status"],
            headers=response["headers"],
            body=body,
            now_ms=0,
        )
        return StepFailed(error=error), []
    return _decode(body, stream="body_file" in response, split=split)


def _show(show_figures: Callable[[str], None], title: str, lines: list[str]) -> None:
    show_figures("\n  ".join([title, *lines]))


def _summary(result: StepResult) -> dict[str, Any]:
    """A result as plain JSON."""
    blocks: list[Any] = []
    for block in result.content:
        match block:
            case Text():
                blocks.append(["text", block.text])
            case Thinking():
                blocks.append(["thinking", block.text])
            case ToolCall():
                blocks.append(["call", block.name, block.arguments, block.wire_id])
            case _:
                blocks.append([type(block).__name__])
    usage = result.usage
    counted = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning]
    if isinstance(result, StepFailed):
        error = result.error
        failed = [type(error).__name__, error.reason, error.status, error.retry_after_s]
        return {"error": failed, "blocks": blocks, "usage": counted}
    stop = [result.stop_reason, result.raw_stop_reason]
    return {"stop": stop, "blocks": blocks, "usage": counted, "notices": list(result.notices)}


@pytest.mark.rules(
    "A2.6", "A2.7", "A2.8", "A2.9", "A2.12", "A2.13", "A2.14", "A2.15", "A2.16",
    "A2.17", "A2.18", "A2.19", "A2.20", "A2.21", "A1.14", "R19", "R21",
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
        "recorded Chat Completions   cases  right",
        [f"{provider:24}  {count:5}  {right:5}" for provider, (count, right) in rows],
    )
    assert wrong == []
    assert total == [CASES, CASES]


def _plain_reading(body: bytes) -> tuple[str, str]:
    """Text and thinking by a naive reading of the chunks of the first candidate."""
    text: str = ""
    thinking: str = ""
    for line in body.replace(b"\r\n", b"\n").split(b"\n"):
        if not line.startswith(b"data:") or line[5:].strip() in (b"", b"[DONE]"):
            continue
        chunk: dict[str, Any] = json.loads(line[5:])
        choices: list[dict[str, Any]] = chunk.get("choices") or []
        for choice in choices:
            if choice.get("index"):
                continue
            delta: dict[str, Any] = choice.get("delta") or {}
            content: Any = delta.get("content") or ""
            parts: list[dict[str, Any]] = (
                [{"text": content}] if isinstance(content, str) else content
            )
            for part in parts:
                thoughts: list[dict[str, str]] = part.get("thinking") or []
                thinking += "".join(inner["text"] for inner in thoughts)
                text += part.get("text") or ""
            thinking += delta.get("reasoning_content") or delta.get("reasoning") or ""
            audio: dict[str, str] = delta.get("audio") or {}
            text += audio.get("transcript", "")
    return text, thinking


@pytest.mark.rules("A1.23", "A2.6", "A2.15")
def test_no_word_of_a_recorded_stream_is_lost_or_doubled() -> None:
    streams = [case for case in _cases() if "body_file" in case["response"]]
    assert len(streams) > 50
    for case in streams:
        _, pieces = _result(case)
        text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
        thinking = "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))
        assert (text, thinking) == _plain_reading(_body(case)), case["id"]


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
                assert told[place] == block.arguments or (told[place], block.arguments) == (
                    "",
                    "{}",
                )
            elif isinstance(block, Text | Thinking):
                assert told[place] == block.text, case["id"]
        kinds = {type(piece) for piece in pieces}
        assert kinds <= {TextPiece, ThinkingPiece, ArgumentsPiece}


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    streams = [case for case in _cases() if "body_file" in case["response"]]
    short = [case for case in streams if len(_body(case)) < 12_000]
    assert len(short) > 40
    for case in short if split < 8 else streams:
        (cut, told), (whole, all_told) = _result(case, split), _result(case)
        assert (_summary(cut), told) == (_summary(whole), all_told), case["id"]


def _local(name: str) -> tuple[dict[str, Any], bytes]:
    meta = json.loads((LOCAL / f"{name}.meta.json").read_text())
    return meta, (LOCAL / meta["response"]["body_file"]).read_bytes()


@pytest.mark.rules("A2.4", "A2.7", "A2.14", "A3.19")
def test_every_recording_of_the_embedded_server_decodes(
    show_figures: Callable[[str], None],
) -> None:
    names = sorted(path.name.removesuffix(".meta.json") for path in LOCAL.glob("*.meta.json"))
    chats = [
        name
        for name in names
        if _local(name)[0]["request"]["path"].split("?")[0] == "/v1/chat/completions"
    ]
    assert len(chats) >= 30
    lines: list[str] = []
    for name in chats:
        meta, body = _local(name)
        status = meta["response"]["status"]
        if status != 200:
            error = answer_error(PEER, status=status, headers={}, body=body, now_ms=0)
            assert error.reason == _LOCAL_ERRORS[name], name
            lines.append(f"{name:38} {type(error).__name__} ({error.reason})")
            continue
        result, _ = _decode(body, stream=body.startswith(b"data:"))
        assert not isinstance(result, StepFailed), name
        assert result.content
        assert result.usage.output > 0 or "no_usage" in name
        lines.append(f"{name:38} {result.stop_reason}, {len(result.content)} blocks")
    _show(show_figures, "recorded llama.cpp chats", lines)


_LOCAL_ERRORS = {
    "chat_n2": "request_rejected",
    "error_bad_json": "request_rejected",
    "error_context_overflow": "context_overflow",
    "error_context_overflow_stream": "context_overflow",
    "error_get_on_post": "endpoint_not_found",
    "error_image_unsupported": "server",
    "error_json_schema_bad": "request_rejected",
    "error_messages_wrong_type": "request_rejected",
    "error_no_api_key": "auth",
    "error_no_messages": "request_rejected",
    "error_tool_choice_wrong": "request_rejected",
    "error_tool_no_name": "server",
    "error_tool_not_function": "server",
    "error_tool_schema_wrong": "request_rejected",
    "error_tools_wrong_type": "server",
    "error_wrong_api_key": "auth",
}


@pytest.mark.rules("A2.8", "A2.14")
def test_parallel_calls_of_the_embedded_server_stay_apart() -> None:
    _, body = _local("chat_tool_parallel_stream")
    result, _ = _decode(body, stream=True)
    calls = [block for block in result.content if isinstance(block, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("get_weather", '{"city": "Paris"}'),
        ("get_weather", '{"city": "Tokyo"}'),
    ]
    assert len({call.wire_id for call in calls}) == 2

"""Every recorded Chat Completions answer decodes to what was said, or fails as it should.

`expected_openai_chat.json` holds the outcome of each recording, read over by a person. Beside it a
plain reading of the same bytes says what must have been told.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import PEER, Recordings, load_local, read_body

from towline_agent.providers.base import StepFailed, TextPiece, ThinkingPiece
from towline_agent.providers.errors import answer_error
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_protocol import ToolCall

EXPECTED = Path(__file__).with_name("expected_openai_chat.json")
CASES = 103
"""How many Chat Completions recordings there are."""
RECORDED = Recordings("openai-chat", lambda _, told: ChatDecoder(PEER, ChatFlags(), told))


@pytest.mark.rules(
    "A2.6", "A2.7", "A2.8", "A2.9", "A2.12", "A2.13", "A2.14", "A2.15", "A2.16",
    "A2.17", "A2.18", "A2.19", "A2.20", "A2.21", "A1.14", "R19", "R21",
)  # fmt: skip
def test_every_recording_gives_its_blocks_or_its_error(show_figures: Callable[[str], None]) -> None:
    assert RECORDED.check_outcomes(EXPECTED, "recorded Chat Completions", show_figures) == CASES


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
    assert len(RECORDED.streams) > 50
    for case in RECORDED.streams:
        _, pieces = RECORDED.result(case)
        text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
        thinking = "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))
        assert (text, thinking) == _plain_reading(read_body(case)), case["id"]


@pytest.mark.rules("A1.22", "A1.23")
def test_the_pieces_of_each_block_are_its_text() -> None:
    RECORDED.check_pieces()


@pytest.mark.rules("A2.18", "R03")
@pytest.mark.parametrize("split", [1, 2, 3, 7, 64, 1021])
def test_a_stream_reads_the_same_however_the_network_cuts_it(split: int) -> None:
    RECORDED.check_cuts(split, short=12_000)


@pytest.mark.rules("A2.4", "A2.7", "A2.14", "A3.19")
def test_every_recording_of_the_embedded_server_decodes(
    show_figures: Callable[[str], None],
) -> None:
    chats = load_local("/v1/chat/completions")
    assert len(chats) >= 30
    lines: list[str] = []
    for name, _, status, _, body in chats.values():
        if status != 200:
            error = answer_error(PEER, status=status, headers={}, body=body, now_ms=0)
            assert error.reason == _LOCAL_ERRORS[name], name
            lines.append(f"{name:38} {type(error).__name__} ({error.reason})")
            continue
        result, _ = RECORDED.decode(body, stream=body.startswith(b"data:"))
        assert not isinstance(result, StepFailed), name
        assert result.content
        assert result.usage.output > 0 or "no_usage" in name
        lines.append(f"{name:38} {result.stop_reason}, {len(result.content)} blocks")
    show_figures("\n  ".join(["recorded llama.cpp chats", *lines]))


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
    body = load_local("/v1/chat/completions")["chat_tool_parallel_stream"].body
    result, _ = RECORDED.decode(body, stream=True)
    calls = [block for block in result.content if isinstance(block, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("get_weather", '{"city": "Paris"}'),
        ("get_weather", '{"city": "Tokyo"}'),
    ]
    assert len({call.wire_id for call in calls}) == 2

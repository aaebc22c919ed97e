"""Answers that come whole instead of streamed."""

import json
from typing import Any

import pytest

from towline_agent.errors import (
    ProviderUnavailable,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
)
from towline_agent.providers.base import Piece, StepAnswer, StepFailed, TextPiece, ThinkingPiece
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_protocol import Block, Text, Thinking, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1")


def calls(blocks: tuple[Block, ...]) -> list[tuple[str, str, str | None]]:
    return [(b.name, b.arguments, b.wire_id) for b in blocks if isinstance(b, ToolCall)]


@pytest.mark.rules("A2.20")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error":{"message":"x","type":"overloaded_error"}}', ProviderUnavailable),
        (b'{"error":{"message":"x","status":429}}', RateLimited),
        (b'{"detail":"Rate limit exceeded"}', RateLimited),
        (b'[{"error":{"message":"x","code":400}}]', RequestRejected),
        (b"<html><title>Sign in to the Wi-Fi</title></html>", ResponseMalformed),
        (b"{}", ResponseMalformed),
        (b"nonsense", ResponseMalformed),
    ],
)
def test_a_document_without_an_answer_is_its_error(body: bytes, kind: type) -> None:
    decoder = ChatDecoder(PEER, ChatFlags(), lambda _: None)
    decoder.read(body)
    result = decoder.finish()
    assert isinstance(result, StepFailed)
    assert type(result.error) is kind
    if kind is ResponseMalformed:
        assert not result.error.retryable  # it would come the same again
        assert "https://example.test/v1" in result.error.message


@pytest.mark.rules("A2.4", "A2.19", "A2.12")
def test_a_whole_answer_gives_the_same_blocks_as_a_stream() -> None:
    def part(id_: str, arguments: Any) -> dict[str, Any]:
        return {"id": id_, "type": "function", "function": {"name": "f", "arguments": arguments}}

    message = {
        "role": "assistant",
        "content": "Hello",
        "reasoning": "hm",
        "tool_calls": [part("", '{"a":1}'), part("", '{"a":2}'), part("c", {"a": 3})],
    }
    document = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    pieces: list[Piece] = []
    decoder = ChatDecoder(PEER, ChatFlags(), pieces.append)
    decoder.read(b"\n  \n " + json.dumps(document).encode())
    result = decoder.finish()
    assert isinstance(result, StepAnswer)
    assert [type(block) for block in result.content[:2]] == [Thinking, Text]
    assert calls(result.content) == [
        ("f", '{"a":1}', None), ("f", '{"a":2}', None), ("f", '{"a":3}', "c"),
    ]  # fmt: skip
    assert pieces[:2] == [ThinkingPiece(0, "hm"), TextPiece(1, "Hello")]
    assert len(pieces) == 5

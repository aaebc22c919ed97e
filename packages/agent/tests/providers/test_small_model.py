"""What a small model needs: one call at a time, and results that it takes for results."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import (
    ArgumentsPiece,
    Model,
    Piece,
    Request,
    StepAnswer,
    TextPiece,
)
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.encode import encode_request
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_protocol import CallId, Message, SseEvent, Text, ToolCall, ToolResult

PEER = Peer(provider="p", model="m", url="https://example.test/v1")


def chunk(**delta: Any) -> SseEvent:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return SseEvent(json.dumps({"choices": [choice]}).encode())


def part(index: int, arguments: str, **more: Any) -> list[dict[str, Any]]:
    name = more.pop("name", None)
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return [{"index": index, "type": "function", "function": function, **more}]


@pytest.mark.rules("A2.91")
def test_the_answer_is_over_when_a_second_call_begins() -> None:
    pieces: list[Piece] = []
    decoder = ChatDecoder(PEER, ChatFlags(one_call=True), pieces.append)
    first = part(0, '{"path": "a"}', id="1", name="read")
    assert not decoder.feed(chunk(tool_calls=first))
    assert decoder.feed(chunk(tool_calls=part(1, '{"path": "b"', id="2", name="read")))
    assert decoder.feed(chunk(tool_calls=part(1, "}")))
    assert decoder.feed(chunk(content="and more"))
    result = decoder.finish()
    assert isinstance(result, StepAnswer)
    assert result.stop_reason == "tool_calls"
    calls = [block for block in result.content if isinstance(block, ToolCall)]
    assert [call.arguments for call in calls] == ['{"path": "a"}']
    assert "one call at a time" in result.notices[0]
    told = "".join(piece.text for piece in pieces if isinstance(piece, ArgumentsPiece))
    assert told == '{"path": "a"}'
    assert not any(isinstance(piece, TextPiece) for piece in pieces)


def test_results_go_as_json_where_bare_words_would_be_taken_for_a_request() -> None:
    call = ToolCall(id=CallId("call_1"), name="read", arguments="{}")
    result = ToolResult(call=call.id, content=(Text(text='say "hello"'),))
    request = Request(
        model="m",
        messages=(
            Message("user", (Text(text="go"),)),
            Message("assistant", (call,)),
            Message("tool", (result,)),
        ),
    )
    encoded = encode_request(
        request,
        Model(provider="p", id="m"),
        ChatFlags(wrap_results=True),
        stream=True,
        official=False,
    )
    sent = json.loads(encoded.body)["messages"][-1]
    assert sent["role"] == "tool"
    assert json.loads(sent["content"]) == {"result": 'say "hello"'}

"""The provider: one request in, one result out, whatever happens on the way."""

import asyncio
import json
from typing import Any

import pytest

from towline_agent.errors import (
    ProviderUnavailable,
)
from towline_agent.providers.anthropic.decode import MAX_CONTINUATIONS
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import (
    Model,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    TextPiece,
)
from towline_agent.providers.transport import TransportFailed
from towline_agent.testing import Scripted, ScriptedTransport, event_stream
from towline_protocol import Message, Opaque, Text, Usage

_Json = dict[str, Any]

ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))


def words(*parts: str, index: int = 0) -> list[_Json]:
    begin = {"type": "content_block_start", "index": index}
    return [
        {**begin, "content_block": {"type": "text", "text": ""}},
        *(
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "text_delta", "text": part},
            }
            for part in parts
        ),
        {"type": "content_block_stop", "index": index},
    ]


def answer(*events: _Json, stop: str = "end_turn", id_: str = "msg_1") -> bytes:
    usage = {"input_tokens": 3, "output_tokens": 1}
    return event_stream(
        {"type": "message_start", "message": {"id": id_, "content": [], "usage": usage}},
        *events,
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
        done=False,
    )


def searched(index: int, id_: str) -> list[_Json]:
    use = {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {"query": "q"}}
    return [{"type": "content_block_start", "index": index, "content_block": use}]


def found(index: int, id_: str) -> list[_Json]:
    block: _Json = {"type": "web_search_tool_result", "tool_use_id": id_, "content": []}
    return [{"type": "content_block_start", "index": index, "content_block": block}]


HELLO = answer(*words("Hel", "lo"))


def provider(*script: Scripted | bytes, **options: Any) -> tuple[Anthropic, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    given: _Json = {"base_url": "https://api.example.test", "api_key": "sk-1", **options}
    return Anthropic("m", transport=transport, **given), transport


def ignore(_: Piece) -> None:
    pass


@pytest.mark.rules("A1.22", "A1.23", "A2.33", "A2.3", "A2.78")
async def test_a_step_sends_one_request_and_tells_its_pieces_in_order() -> None:
    asked, transport = provider(HELLO)
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    assert result == StepAnswer(
        content=(Text(text="Hello"),),
        stop_reason="end_turn",
        raw_stop_reason="end_turn",
        usage=Usage(input=3, output=2),
    )
    assert pieces == [TextPiece(0, "Hel"), TextPiece(0, "lo")]
    (call,) = transport.calls
    assert call.url == "https://api.example.test/v1/messages"
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert call.headers["x-api-key"] == "sk-1"
    assert call.headers["accept"] == "text/event-stream"
    assert {"authorization", "anthropic-beta"}.isdisjoint(call.headers)
    assert json.loads(call.body or b"")["stream"]


@pytest.mark.rules("A2.43", "A2.65")
async def test_the_key_is_a_bearer_token_where_a_gateway_wants_it_so() -> None:
    asked, transport = provider(HELLO, flags=AnthropicFlags(bearer=True))
    await asked.step(ASK, ignore)
    assert transport.calls[0].headers["authorization"] == "Bearer sk-1"
    assert "x-api-key" not in transport.calls[0].headers
    asked, transport = provider(HELLO, api_key=None)
    await asked.step(ASK, ignore)
    assert {"authorization", "x-api-key"}.isdisjoint(transport.calls[0].headers)


@pytest.mark.rules("A2.36")
async def test_thinking_between_calls_is_asked_for_with_a_budget_alone() -> None:
    header = "interleaved-thinking-2025-05-14"
    budget = Model(provider="p", id="m", thinking="budget")
    adaptive = Model(provider="p", id="m", thinking="adaptive")
    think = Request(model="m", messages=ASK.messages, effort="low")
    cases: list[tuple[_Json, Request, str | None]] = [
        ({"facts": budget}, think, header),
        ({"facts": budget}, ASK, None),
        ({"facts": adaptive}, think, None),
        ({"facts": budget, "flags": AnthropicFlags(interleaved=False)}, think, None),
        ({"facts": budget, "extra_headers": {"Anthropic-Beta": "x"}}, think, f"x,{header}"),
        ({"facts": budget, "extra_headers": {"Anthropic-Beta": header}}, think, header),
        ({"facts": adaptive, "extra_headers": {"Anthropic-Beta": "x"}}, think, "x"),
    ]
    for options, request, sent in cases:
        asked, transport = provider(HELLO, **options)
        await asked.step(request, ignore)
        assert transport.calls[0].headers.get("anthropic-beta") == sent


@pytest.mark.rules("A2.84")
def test_without_facts_the_name_says_what_is_known() -> None:
    made = Anthropic("claude-opus-4-8")
    assert made.model.thinking == "adaptive"
    assert "temperature" in made.model.refuses
    assert Anthropic("of-tomorrow").model == Model(provider="anthropic", id="of-tomorrow")
    assert Anthropic("claude-opus-4-8", facts=Model(provider="x", id="y")).model.name == "x/y"


@pytest.mark.rules("A2.39")
async def test_a_paused_answer_is_asked_to_go_on_until_it_is_whole() -> None:
    asked, transport = provider(
        answer(*words("Wait."), *searched(1, "s1"), stop="pause_turn"),
        answer(*found(0, "s1"), *searched(1, "s2"), stop="pause_turn", id_="msg_2"),
        answer(*found(0, "s2"), *words("Done.", index=1), id_="msg_3"),
    )
    request = Request(
        model="m", messages=ASK.messages, trailing="<now>", server_tools=("web_search",)
    )
    pieces: list[Piece] = []
    result = await asked.step(request, pieces.append)
    assert isinstance(result, StepAnswer)
    kinds = [b.raw["type"] if isinstance(b, Opaque) else type(b) for b in result.content]
    use, page = "server_tool_use", "web_search_tool_result"
    assert kinds == [Text, use, page, use, page, Text]
    assert pieces == [TextPiece(0, "Wait."), TextPiece(5, "Done.")]
    assert result.usage == Usage(input=9, output=6)
    assert [search.query for search in result.searches] == ["q", "q"]
    sent = [json.loads(call.body or b"")["messages"] for call in transport.calls]
    assert [len(messages) for messages in sent] == [1, 2, 2]
    assert sent[0][0] == sent[1][0] == sent[2][0]
    assert [part["type"] for part in sent[1][1]["content"]] == ["text", use]
    assert [part["type"] for part in sent[2][1]["content"]] == ["text", use, page, use]


@pytest.mark.rules("A2.39")
async def test_an_answer_that_pauses_for_ever_is_taken_as_it_stands() -> None:
    rounds = [
        answer(*searched(0, f"s{n}"), *found(1, f"s{n}"), stop="pause_turn", id_=f"msg_{n}")
        for n in range(MAX_CONTINUATIONS + 1)
    ]
    asked, transport = provider(*rounds)
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepAnswer)
    assert len(transport.calls) == MAX_CONTINUATIONS + 1
    assert (result.stop_reason, result.raw_stop_reason) == ("end_turn", "pause_turn")
    assert len(result.content) == 2 * len(rounds)
    assert len(result.notices) == 1


@pytest.mark.rules("A2.39", "A2.42")
async def test_a_continuation_that_fails_fails_the_step_and_keeps_its_words() -> None:
    busy = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    for second in (
        Scripted(status=529, parts=(busy,)),
        b"data: " + busy + b"\n\n",
        Scripted(parts=(TransportFailed("lost"),)),
    ):
        asked, _ = provider(answer(*words("Wait."), stop="pause_turn"), second)
        result = await asked.step(ASK, ignore)
        assert isinstance(result, StepFailed)
        assert isinstance(result.error, ProviderUnavailable)
        assert result.content == (Text(text="Wait."),)
        assert result.streamed
        assert result.usage == Usage(input=3, output=2)


@pytest.mark.rules("A1.25", "A3.11", "A2.39")
async def test_a_cancel_goes_through_to_the_transport_and_on_to_the_caller() -> None:
    for script in (
        [Scripted(parts=(asyncio.Event(),))],
        [answer(*searched(0, "s"), stop="pause_turn"), Scripted(parts=(asyncio.Event(),))],
    ):
        asked, transport = provider(*script)
        task = asyncio.create_task(asked.step(ASK, ignore))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert transport.cancelled == 1


@pytest.mark.rules("A1.19")
async def test_notices_of_the_request_come_once_with_the_answer() -> None:
    asked, _ = provider(answer(*words("a"), stop="pause_turn"), answer(*words("b"), id_="msg_2"))
    result = await asked.step(
        Request(model="m", messages=ASK.messages, server_tools=("dreaming",)), ignore
    )
    assert isinstance(result, StepAnswer)
    assert result.content == (Text(text="a"), Text(text="b"))
    assert len(result.notices) == 1


@pytest.mark.rules("A1.27", "A2.33")
async def test_the_live_models_are_listed_and_the_known_ones_stand_in() -> None:
    asked, transport = provider(b'{"data":[{"type":"model","id":"claude-a"},{"id":"claude-b"}]}')
    assert await asked.models() == ("claude-a", "claude-b")
    (call,) = transport.calls
    assert (call.method, call.url) == ("GET", "https://api.example.test/v1/models?limit=1000")
    assert (call.headers["anthropic-version"], call.headers["x-api-key"]) == ("2023-06-01", "sk-1")
    asked, _ = provider(Scripted(status=401, parts=(b"{}",)), known_models=("known",))
    assert await asked.models() == ("known",)

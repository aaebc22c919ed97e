"""The provider: one request in, one result out, whatever happens on the way."""

import asyncio
import json
from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.providers.base import (
    Model,
    Piece,
    Provider,
    Request,
    StepAnswer,
    TextPiece,
)
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.transport import Transport, TransportFailed
from towline_agent.testing import (
    FakeClock,
    Scripted,
    ScriptedHost,
    ScriptedTransport,
    event_stream,
    scripted_plan,
)
from towline_protocol import Message, Text, TurnCompleted, Usage

ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
HELLO = event_stream(
    {"choices": [{"delta": {"content": "Hel"}}]},
    {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
)


def provider(*script: Scripted | bytes, **options: Any) -> tuple[OpenAIChat, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    given: dict[str, Any] = {"base_url": "https://api.example.test", "api_key": "sk-1", **options}
    return OpenAIChat("m", transport=transport, **given), transport


def ignore(_: Piece) -> None:
    pass


@pytest.mark.rules("A1.22", "A1.23", "A2.2", "A2.3", "A2.78")
async def test_a_step_sends_one_request_and_tells_its_pieces_in_order() -> None:
    asked, transport = provider(HELLO)
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    assert result == StepAnswer(
        content=(Text(text="Hello"),),
        stop_reason="end_turn",
        raw_stop_reason="stop",
        usage=Usage(input=3, output=2),
    )
    assert pieces == [TextPiece(0, "Hel"), TextPiece(0, "lo")]
    (call,) = transport.calls
    assert call.url == "https://api.example.test/v1/chat/completions"
    assert call.headers["authorization"] == "Bearer sk-1"
    assert call.headers["accept"] == "text/event-stream"
    assert call.headers["content-type"] == "application/json"
    body = json.loads(call.body or b"")
    assert body["stream"]
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.rules("A3.13", "S32")
async def test_a_provider_that_says_nothing_is_asked_again_and_no_request_stays_open() -> None:
    asked, transport = provider(Scripted(parts=(TransportFailed("idle"),)), HELLO)
    host, clock = ScriptedHost(), FakeClock()
    end = await host.run(scripted_plan(asked, clock=clock))
    assert isinstance(end.event, TurnCompleted)
    assert [message.role for message in host.transcript.messages()] == ["user", "assistant"]
    assert (len(transport.calls), len(clock.sleeps)) == (2, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.rules("A3.4")
async def test_the_models_own_patience_goes_with_the_request() -> None:
    asked, transport = provider(HELLO, HELLO)
    await asked.step(ASK, ignore)
    assert transport.calls[0].idle_s == 120.0
    asked, transport = provider(HELLO, facts=Model(provider="local", id="m", idle_s=900.0))
    await asked.step(ASK, ignore)
    assert transport.calls[0].idle_s == 900.0


@pytest.mark.rules("A2.1")
async def test_only_openais_own_host_counts_as_official() -> None:
    request = Request(model="m", messages=ASK.messages, max_tokens=7)
    for url, key in (
        ("https://api.openai.com", "max_completion_tokens"),
        ("https://api.openai.com/v1/", "max_completion_tokens"),
        ("https://api.example.test", "max_tokens"),
    ):
        asked, transport = provider(HELLO, base_url=url)
        await asked.step(request, ignore)
        assert json.loads(transport.calls[0].body or b"")[key] == 7


@pytest.mark.rules("A1.19")
async def test_notices_of_the_request_come_with_the_answer() -> None:
    asked, _ = provider(HELLO, flags=ChatFlags(effort=None))
    result = await asked.step(Request(model="m", messages=ASK.messages, effort="high"), ignore)
    assert isinstance(result, StepAnswer)
    assert len(result.notices) == 1


@pytest.mark.rules("A2.80")
@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://localhost:11434", False),
        ("http://127.0.0.1:8080/v1", False),
        ("http://[::1]:8080", False),
        ("http://10.0.0.7:8000", True),
    ],
)
async def test_plain_http_goes_to_this_machine_or_where_it_is_allowed(
    url: str, allowed: bool
) -> None:
    asked, transport = provider(HELLO, base_url=url, allow_http=allowed)
    assert isinstance(await asked.step(ASK, ignore), StepAnswer)
    assert len(transport.calls) == 1


def test_it_is_a_provider_and_its_fake_a_transport() -> None:
    asked: Provider
    transport: Transport
    asked, transport = provider()
    assert asked.model == Model(provider="openai", id="m")
    assert transport is not None


@pytest.mark.rules("A4.42", "A4.51")
async def test_an_agent_that_is_run_without_await_keeps_one_connection(serving: Any) -> None:
    async def reply(connection: Any) -> None:
        await connection.begin()
        await connection.events(HELLO)
        await connection.end()

    async with serving(reply) as server:
        agent = Agent(OpenAIChat("m", base_url=f"http://127.0.0.1:{server.port}"))
        for _ in range(2):
            result = await asyncio.get_running_loop().run_in_executor(None, agent.run_sync, "Hi")
            assert result.final_message == "Hello"
        assert len(server.connections) == 1

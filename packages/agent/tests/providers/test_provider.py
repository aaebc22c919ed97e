"""The provider: one request in, one result out, whatever happens on the way."""

import asyncio
import json
from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.errors import (
    AuthenticationFailed,
    EndpointNotFound,
    ProviderUnavailable,
    RateLimited,
    ResponseMalformed,
)
from towline_agent.providers.base import (
    Model,
    Piece,
    Provider,
    Request,
    StepAnswer,
    StepFailed,
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


@pytest.mark.rules("A2.65")
async def test_without_a_key_no_credential_is_sent() -> None:
    for key in (None, "", "  "):
        asked, transport = provider(HELLO, api_key=key)
        await asked.step(ASK, ignore)
        assert "authorization" not in transport.calls[0].headers


async def test_extra_headers_are_sent_and_a_pasted_key_is_trimmed() -> None:
    asked, transport = provider(HELLO, api_key=" sk-1\n", extra_headers={"X-Title": "towline"})
    await asked.step(ASK, ignore)
    headers = transport.calls[0].headers
    assert (headers["x-title"], headers["authorization"]) == ("towline", "Bearer sk-1")


@pytest.mark.rules("A2.4")
@pytest.mark.parametrize("options", [{"stream": False}, {"flags": ChatFlags(no_stream=True)}])
async def test_an_unstreamed_answer_is_read_into_the_same_words(options: dict[str, Any]) -> None:
    document = {
        "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    asked, transport = provider(json.dumps(document).encode(), **options)
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    streamed, _ = provider(HELLO)
    assert result == await streamed.step(ASK, ignore)
    assert pieces == [TextPiece(0, "Hello")]
    assert "stream" not in json.loads(transport.calls[0].body or b"")
    assert transport.calls[0].headers["accept"] == "application/json"


@pytest.mark.rules("A2.20", "A2.4")
async def test_a_whole_answer_to_a_streaming_request_is_taken_too() -> None:
    document = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
    asked, _ = provider(b"\n \n" + json.dumps(document).encode())
    result = await asked.step(ASK, ignore)
    assert result.content == (Text(text="Hello"),)
    asked, _ = provider(b'{"error":{"message":"busy","code":503}}')
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)


@pytest.mark.rules("A1.24", "A3.20")
async def test_an_error_status_is_a_failed_step_and_never_raised() -> None:
    asked, _ = provider(
        Scripted(
            status=429,
            headers={"retry-after": "Fri, 15 Jan 2027 08:01:30 GMT"},
            parts=(b'{"error":{"message":"slow down"}}',),
        ),
        clock=FakeClock(1_800_000_000_000),
    )
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, RateLimited)
    assert (result.error.retry_after_s, result.error.status) == (90.0, 429)
    assert not result.streamed


@pytest.mark.rules("A1.24", "A3.4", "A3.9", "A3.T11", "R11")
@pytest.mark.parametrize(
    ("cause", "kind"), [("idle", ProviderUnavailable), ("cut", ResponseMalformed)]
)
async def test_a_stream_that_breaks_keeps_what_had_come(cause: str, kind: type) -> None:
    part = event_stream({"choices": [{"delta": {"content": "so far"}}]}, done=False)
    asked, _ = provider(Scripted(parts=(part, TransportFailed(cause))))
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert type(result.error) is kind
    assert result.content == (Text(text="so far"),)
    assert result.streamed


@pytest.mark.rules("A3.13", "S32")
async def test_a_provider_that_says_nothing_is_asked_again_and_no_request_stays_open() -> None:
    asked, transport = provider(Scripted(parts=(TransportFailed("idle"),)), HELLO)
    host, clock = ScriptedHost(), FakeClock()
    end = await host.run(scripted_plan(asked, clock=clock))
    assert isinstance(end.event, TurnCompleted)
    assert [message.role for message in host.transcript.messages()] == ["user", "assistant"]
    assert (len(transport.calls), len(clock.sleeps)) == (2, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.rules("A3.9")
async def test_a_connection_that_breaks_after_the_end_spoils_nothing() -> None:
    asked, _ = provider(Scripted(parts=(HELLO, TransportFailed("lost"))))
    assert isinstance(await asked.step(ASK, ignore), StepAnswer)


@pytest.mark.rules("A1.25", "A3.11")
async def test_a_cancel_goes_through_to_the_transport_and_on_to_the_caller() -> None:
    asked, transport = provider(Scripted(parts=(asyncio.Event(),)))
    task = asyncio.create_task(asked.step(ASK, ignore))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.cancelled == 1


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


@pytest.mark.rules("A4.45", "A1.24")
async def test_what_is_wrong_with_key_or_address_fails_the_step_before_anything_is_sent() -> None:
    for options, kind, words in (
        ({"api_key": None, "key_setting": "ACME_KEY"}, AuthenticationFailed, "ACME_KEY"),
        ({"api_key": "two words"}, AuthenticationFailed, "white space"),
        ({"api_key": "ключ"}, AuthenticationFailed, "white space"),
        ({"base_url": "http://10.0.0.7:8000"}, EndpointNotFound, "not encrypted"),
        ({"base_url": "not a url"}, EndpointNotFound, "not a url"),
    ):
        asked, transport = provider(**options)
        result = await asked.step(ASK, ignore)
        assert isinstance(result, StepFailed)
        assert isinstance(result.error, kind)
        assert words in result.error.message
        assert await asked.models() == ()
        assert transport.calls == []


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


@pytest.mark.rules("A1.27")
async def test_the_live_models_are_listed() -> None:
    asked, transport = provider(b'{"data":[{"id":"models/a"},{"id":"b"},{}]}')
    assert await asked.models() == ("a", "b")
    assert (transport.calls[0].method, transport.calls[0].url) == (
        "GET",
        "https://api.example.test/v1/models",
    )


@pytest.mark.rules("A1.27")
@pytest.mark.parametrize(
    "answer",
    [
        Scripted(status=401, parts=(b"{}",)),
        Scripted(parts=(TransportFailed("dns"),)),
        Scripted(parts=(b"<html>",)),
        Scripted(parts=(b"\xff",)),
        Scripted(parts=(b'{"data":null}',)),
    ],
)
async def test_the_known_models_stand_in_when_the_address_cannot_be_asked(answer: Scripted) -> None:
    asked, _ = provider(answer, known_models=("known",))
    assert await asked.models() == ("known",)


async def test_a_provider_may_be_used_again_after_closing_and_shows_no_key() -> None:
    asked, transport = provider(HELLO)
    await asked.aclose()
    await asked.aclose()
    assert transport.closed == 2
    assert isinstance(await asked.step(ASK, ignore), StepAnswer)
    assert repr(asked) == "OpenAIChat('openai/m', base_url='https://api.example.test/v1')"


def test_it_is_a_provider_and_its_fake_a_transport() -> None:
    asked: Provider
    transport: Transport
    asked, transport = provider()
    assert asked.model == Model(provider="openai", id="m")
    assert transport is not None


async def test_the_whole_way_over_a_real_connection(serving: Any) -> None:
    async def reply(connection: Any) -> None:
        await connection.begin()
        await connection.events(HELLO)
        await connection.end()

    async with serving(reply) as server:
        asked = OpenAIChat("m", base_url=f"http://127.0.0.1:{server.port}")
        for _ in range(2):
            result = await asked.step(ASK, ignore)
            assert result.content == (Text(text="Hello"),)
        assert len(server.connections) == 1
        await asked.aclose()


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

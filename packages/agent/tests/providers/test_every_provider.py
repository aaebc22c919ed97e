"""What the providers of all four dialects do alike: one request in, one result out.

What only one of them does stands in its own file.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from towline_agent.errors import (
    AuthenticationFailed,
    EndpointNotFound,
    ProviderUnavailable,
    RateLimited,
    ResponseMalformed,
)
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import (
    Model,
    Paced,
    Piece,
    Provider,
    Request,
    StepAnswer,
    StepFailed,
    TextPiece,
)
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.providers.transport import TransportFailed
from towline_agent.testing import FakeClock, Scripted, ScriptedTransport, event_stream
from towline_protocol import Message, Text, Usage

Json = dict[str, Any]
ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))


class Dialect(NamedTuple):
    """How one dialect says what all tests here are about."""

    make: Callable[..., Provider]
    name: str
    """What its `repr` begins with."""
    begin: tuple[Json, ...]
    """What comes before the words."""
    say: Callable[[str], Json]
    """An event that says some words."""
    end: tuple[Json, ...]
    """What comes behind them."""
    whole: Json
    """`Hello` as an unstreamed answer."""
    unstreamed: tuple[Json, ...]
    """The ways to ask for one."""
    error: Json
    """A refusal for too many requests."""
    models: Json
    """A list of two models."""

    def words(self, *words: str) -> bytes:
        """The beginning of a stream."""
        return event_stream(*self.begin, *map(self.say, words), done=False)

    def stream(self, *words: str) -> bytes:
        """A whole stream."""
        return self.words(*words) + event_stream(*self.end, done=False)

    def provider(self, *script: Scripted | bytes, **options: Any) -> tuple[Any, ScriptedTransport]:
        """A provider whose answers are scripted."""
        transport = ScriptedTransport(*script)
        given = {"base_url": "https://api.example.test", "api_key": "sk-1", **options}
        return self.make("m", transport=transport, **given), transport


def _chat(text: str) -> Json:
    return {"choices": [{"delta": {"content": text}}]}


def _responses(text: str) -> Json:
    return {"type": "response.output_text.delta", "delta": text}


def _anthropic(text: str) -> Json:
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def _gemini(text: str, **more: Any) -> Json:
    return {"candidates": [{"content": {"parts": [{"text": text}]}, **more}]}


_LIMITED: Json = {"error": {"message": "slow down", "code": 429}}
_MODELS: Json = {"data": [{"id": "a"}, {"id": "b"}]}
_RESPONSE: Json = {
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}],
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
DIALECTS = {
    "openai_chat": Dialect(
        OpenAIChat,
        "OpenAIChat('openai/m', base_url='https://api.example.test/v1')",
        (),
        _chat,
        (
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        ),
        {
            "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        },
        ({"stream": False}, {"flags": ChatFlags(no_stream=True)}),
        _LIMITED,
        _MODELS,
    ),
    "openai_responses": Dialect(
        OpenAIResponses,
        "OpenAIResponses('openai/m', base_url='https://api.example.test/v1')",
        (),
        _responses,
        ({"type": "response.completed", "response": _RESPONSE},),
        _RESPONSE,
        ({"stream": False}, {"flags": ResponsesFlags(no_stream=True)}),
        _LIMITED,
        _MODELS,
    ),
    "anthropic": Dialect(
        Anthropic,
        "Anthropic('anthropic/m', base_url='https://api.example.test/v1')",
        (
            {
                "type": "message_start",
                "message": {"id": "msg_1", "content": [], "usage": {"input_tokens": 3}},
            },
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
        ),
        _anthropic,
        (
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 2},
            },
            {"type": "message_stop"},
        ),
        {
            "id": "m",
            "type": "message",
            "content": [{"type": "text", "text": "Hello"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
        ({"stream": False}, {"flags": AnthropicFlags(no_stream=True)}),
        {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}},
        _MODELS,
    ),
    "gemini": Dialect(
        Gemini,
        "Gemini('gemini/m', base_url='https://api.example.test/v1beta')",
        (),
        _gemini,
        (
            {
                "candidates": [{"finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
            },
        ),
        {
            **_gemini("Hello", finishReason="STOP"),
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
        },
        ({"stream": False},),
        {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}},
        {"models": [{"name": "models/a"}, {"name": "models/b"}]},
    ),
}


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


def ignore(_: Piece) -> None:
    pass


@pytest.mark.rules("A1.22", "A1.23", "A2.3", "A2.78")
async def test_a_step_sends_one_request_and_tells_its_pieces_in_order(dialect: Dialect) -> None:
    asked, transport = dialect.provider(dialect.stream("Hel", "lo"))
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    assert isinstance(result, StepAnswer)
    assert result.content == (Text(text="Hello"),)
    assert result.stop_reason == "end_turn"
    assert result.usage == Usage(input=3, output=2)
    assert pieces == [TextPiece(0, "Hel"), TextPiece(0, "lo")]
    (call,) = transport.calls
    assert call.method == "POST"
    assert call.url.startswith("https://api.example.test/v1")
    assert call.headers["accept"] == "text/event-stream"
    assert call.headers["content-type"] == "application/json"


@pytest.mark.rules("A2.65")
async def test_without_a_key_no_credential_is_sent(dialect: Dialect) -> None:
    for key in (None, "", "  "):
        asked, transport = dialect.provider(dialect.stream("Hi"), api_key=key)
        await asked.step(ASK, ignore)
        headers = transport.calls[0].headers
        assert not {"authorization", "x-api-key", "x-goog-api-key"} & headers.keys()


async def test_extra_headers_are_sent_and_a_pasted_key_is_trimmed(dialect: Dialect) -> None:
    asked, transport = dialect.provider(
        dialect.stream("Hi"), api_key=" sk-1\n", extra_headers={"X-Title": "towline"}
    )
    await asked.step(ASK, ignore)
    headers = transport.calls[0].headers
    assert headers["x-title"] == "towline"
    assert {"sk-1", "Bearer sk-1"} & set(headers.values())


@pytest.mark.rules("A2.4", "A2.20")
async def test_an_unstreamed_answer_is_read_into_the_same_words(dialect: Dialect) -> None:
    streamed, _ = dialect.provider(dialect.stream("Hello"))
    wanted = await streamed.step(ASK, ignore)
    for options in dialect.unstreamed:
        asked, transport = dialect.provider(json.dumps(dialect.whole).encode(), **options)
        pieces: list[Piece] = []
        assert await asked.step(ASK, pieces.append) == wanted
        assert pieces == [TextPiece(0, "Hello")]
        assert "stream" not in json.loads(transport.calls[0].body or b"")
        assert transport.calls[0].headers["accept"] == "application/json"


@pytest.mark.rules("A2.4", "A2.20")
async def test_a_whole_answer_to_a_streaming_request_is_taken_too(dialect: Dialect) -> None:
    asked, _ = dialect.provider(b"\n \n" + json.dumps(dialect.whole).encode())
    assert (await asked.step(ASK, ignore)).content == (Text(text="Hello"),)
    asked, _ = dialect.provider(b'{"error":{"message":"busy","code":503}}')
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)


@pytest.mark.rules("A1.24", "A3.20", "A2.42")
@pytest.mark.parametrize(
    ("after", "delay_s"), [("7", 7.0), ("Fri, 15 Jan 2027 08:01:30 GMT", 90.0)]
)
async def test_an_error_status_is_a_failed_step_and_never_raised(
    dialect: Dialect, after: str, delay_s: float
) -> None:
    body = json.dumps(dialect.error).encode()
    limited = Scripted(status=429, headers={"retry-after": after}, parts=(body,))
    asked, transport = dialect.provider(limited, clock=FakeClock(1_800_000_000_000))
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, RateLimited)
    assert (result.error.retry_after_s, result.error.status) == (delay_s, 429)
    assert not result.streamed
    assert len(transport.calls) == 1


@pytest.mark.rules("A1.24", "A3.4", "A3.9", "A3.T11", "R09", "R11")
@pytest.mark.parametrize(
    ("cause", "kind"), [("idle", ProviderUnavailable), ("cut", ResponseMalformed)]
)
async def test_a_stream_that_breaks_keeps_what_had_come(
    dialect: Dialect, cause: str, kind: type
) -> None:
    broken = Scripted(parts=(dialect.words("so far"), TransportFailed(cause)))
    asked, _ = dialect.provider(broken)
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert type(result.error) is kind
    assert (result.content, result.streamed) == ((Text(text="so far"),), True)


@pytest.mark.rules("A3.9")
async def test_a_connection_that_breaks_after_the_end_spoils_nothing(dialect: Dialect) -> None:
    asked, _ = dialect.provider(Scripted(parts=(dialect.stream("Hi"), TransportFailed("lost"))))
    assert isinstance(await asked.step(ASK, ignore), StepAnswer)


@pytest.mark.rules("A1.25", "A3.11")
async def test_a_cancel_goes_through_to_the_transport_and_on_to_the_caller(
    dialect: Dialect,
) -> None:
    asked, transport = dialect.provider(Scripted(parts=(asyncio.Event(),)))
    task = asyncio.create_task(asked.step(ASK, ignore))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.cancelled == 1


@pytest.mark.rules("A4.45", "A1.24", "A2.80")
@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"api_key": None, "key_setting": "ACME_KEY"}, AuthenticationFailed, "ACME_KEY"),
        ({"api_key": "two words"}, AuthenticationFailed, "white space"),
        ({"api_key": "ключ"}, AuthenticationFailed, "white space"),
        ({"api_key": "sk-\udce9"}, AuthenticationFailed, "white space"),
        ({"base_url": "http://10.0.0.7:8000"}, EndpointNotFound, "not encrypted"),
        ({"base_url": "not a url"}, EndpointNotFound, "not a url"),
    ],
)
async def test_what_is_wrong_with_key_or_address_fails_the_step_before_anything_is_sent(
    dialect: Dialect, options: Json, kind: type, words: str
) -> None:
    asked, transport = dialect.provider(**options)
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, kind)
    assert words in result.error.message
    assert await asked.models() == ()
    assert transport.calls == []


@pytest.mark.rules("A1.27")
async def test_the_live_models_are_listed(dialect: Dialect) -> None:
    asked, transport = dialect.provider(json.dumps(dialect.models).encode())
    assert await asked.models() == ("a", "b")
    assert transport.calls[0].method == "GET"


@pytest.mark.rules("A1.27")
@pytest.mark.parametrize(
    "answer",
    [
        Scripted(status=401, parts=(b"{}",)),
        Scripted(status=404),
        Scripted(parts=(TransportFailed("dns"),)),
        Scripted(parts=(b"<html>",)),
        Scripted(parts=(b"\xff",)),
        Scripted(parts=(b'{"data":null,"models":null}',)),
        Scripted(parts=(b"[]",)),
    ],
)
async def test_the_known_models_stand_in_when_the_address_cannot_be_asked(
    dialect: Dialect, answer: Scripted
) -> None:
    asked, _ = dialect.provider(answer, known_models=("known",))
    assert await asked.models() == ("known",)


async def test_a_provider_may_be_used_again_after_closing(dialect: Dialect) -> None:
    asked, transport = dialect.provider(dialect.stream("Hi"))
    await asked.aclose()
    await asked.aclose()
    assert transport.closed == 2
    assert isinstance(await asked.step(ASK, ignore), StepAnswer)


async def test_it_is_a_provider_and_shows_no_secret(dialect: Dialect) -> None:
    asked, _ = dialect.provider(api_key="sk-secret", extra_headers={"X-Key": "hush"})
    assert repr(asked) == dialect.name
    assert isinstance(asked, Paced)
    assert asked.pause_s(1000) == 0.0
    assert getattr(asked, "has_limits", None) is False, "nobody need count tokens for it"
    asked, _ = dialect.provider(provider="acme")
    assert asked.model.name == "acme/m"
    facts = Model(provider="x", id="y")
    asked, _ = dialect.provider(facts=facts)
    assert asked.model == facts


async def test_the_whole_way_over_a_real_connection(dialect: Dialect, serving: Any) -> None:
    async def reply(connection: Any) -> None:
        await connection.begin()
        await connection.events(dialect.stream("Hel", "lo"))
        await connection.end()

    async with serving(reply) as server:
        asked: Any = dialect.make("m", base_url=f"http://127.0.0.1:{server.port}")
        for _ in range(2):
            result = await asked.step(ASK, ignore)
            assert result.content == (Text(text="Hello"),)
        assert len(server.connections) == 1
        await asked.aclose()

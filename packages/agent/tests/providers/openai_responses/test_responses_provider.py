"""The provider: one request in, one result out, whatever happens on the way."""

import asyncio
import json
from typing import Any

import pytest

from towline_agent.errors import (
    AuthenticationFailed,
    ContextOverflow,
    EndpointNotFound,
    ProviderUnavailable,
    RateLimited,
    RequestRejected,
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
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.providers.transport import TransportFailed
from towline_agent.testing import FakeClock, Scripted, ScriptedTransport, event_stream
from towline_protocol import Message, Opaque, Text, Usage

ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
DOCUMENT: dict[str, Any] = {
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}],
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
HELLO = event_stream(
    {"type": "response.output_text.delta", "delta": "Hel"},
    {"type": "response.output_text.delta", "delta": "lo"},
    {"type": "response.completed", "response": DOCUMENT},
    done=False,
)
_Json = dict[str, Any]


def provider(
    *script: Scripted | bytes, model: str = "m", **options: Any
) -> tuple[OpenAIResponses, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    given: _Json = {"base_url": "https://api.example.test", "api_key": "sk-1", **options}
    return OpenAIResponses(model, transport=transport, **given), transport


def bodies(transport: ScriptedTransport) -> list[_Json]:
    return [json.loads(call.body or b"") for call in transport.calls]


def refusal(message: str, status: int = 400) -> Scripted:
    body = {"error": {"message": message, "type": "invalid_request_error"}}
    return Scripted(status=status, parts=(json.dumps(body).encode(),))


def ignore(_: Piece) -> None:
    pass


@pytest.mark.rules("A1.22", "A1.23", "A2.3", "A2.26", "A2.78")
async def test_a_step_sends_one_request_and_tells_its_pieces_in_order() -> None:
    asked, transport = provider(HELLO)
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    assert result == StepAnswer(
        content=(Text(text="Hello"),),
        stop_reason="end_turn",
        raw_stop_reason="completed",
        usage=Usage(input=3, output=2),
    )
    assert pieces == [TextPiece(0, "Hel"), TextPiece(0, "lo")]
    (call,) = transport.calls
    assert call.url == "https://api.example.test/v1/responses"
    assert call.headers["authorization"] == "Bearer sk-1"
    assert call.headers["accept"] == "text/event-stream"
    (body,) = bodies(transport)
    assert body["stream"] is True
    assert body["store"] is False


@pytest.mark.rules("A2.4")
@pytest.mark.parametrize("options", [{"stream": False}, {"flags": ResponsesFlags(no_stream=True)}])
async def test_an_unstreamed_answer_is_read_into_the_same_words(options: _Json) -> None:
    asked, transport = provider(json.dumps(DOCUMENT).encode(), **options)
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    streamed, _ = provider(HELLO)
    assert result == await streamed.step(ASK, ignore)
    assert pieces == [TextPiece(0, "Hello")]
    assert "stream" not in bodies(transport)[0]
    assert transport.calls[0].headers["accept"] == "application/json"


@pytest.mark.rules("A2.20", "A2.4")
async def test_a_whole_answer_to_a_streaming_request_is_taken_too() -> None:
    asked, _ = provider(b"\n \n" + json.dumps(DOCUMENT).encode())
    assert (await asked.step(ASK, ignore)).content == (Text(text="Hello"),)
    asked, _ = provider(b'{"error":{"message":"busy","code":503}}')
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)


@pytest.mark.rules("A1.24", "A3.20")
async def test_an_error_status_is_a_failed_step_and_never_raised() -> None:
    limited = Scripted(
        status=429,
        headers={"retry-after": "Fri, 15 Jan 2027 08:01:30 GMT"},
        parts=(b'{"error":{"message":"slow down"}}',),
    )
    asked, transport = provider(limited, clock=FakeClock(1_800_000_000_000))
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, RateLimited)
    assert (result.error.retry_after_s, result.error.status) == (90.0, 429)
    assert not result.streamed
    assert len(transport.calls) == 1


@pytest.mark.rules("A1.24", "A3.4", "A3.9", "R11")
@pytest.mark.parametrize(
    ("cause", "kind"), [("idle", ProviderUnavailable), ("cut", ResponseMalformed)]
)
async def test_a_stream_that_breaks_keeps_what_had_come(cause: str, kind: type) -> None:
    part = event_stream({"type": "response.output_text.delta", "delta": "so far"}, done=False)
    asked, _ = provider(Scripted(parts=(part, TransportFailed(cause))))
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert type(result.error) is kind
    assert result.content == (Text(text="so far"),)
    assert result.streamed


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


@pytest.mark.rules("A4.45", "A1.24")
async def test_what_is_wrong_with_key_or_address_fails_the_step_before_anything_is_sent() -> None:
    cases: list[tuple[_Json, type]] = [
        ({"api_key": None, "key_setting": "ACME_KEY"}, AuthenticationFailed),
        ({"base_url": "http://10.0.0.7:8000"}, EndpointNotFound),
        ({"base_url": "not a url"}, EndpointNotFound),
    ]
    for options, kind in cases:
        asked, transport = provider(**options)
        result = await asked.step(ASK, ignore)
        assert isinstance(result, StepFailed)
        assert isinstance(result.error, kind)
        assert await asked.models() == ()
        assert transport.calls == []


@pytest.mark.rules("A2.84")
@pytest.mark.parametrize(
    ("url", "summary"),
    [
        ("https://api.openai.com/v1", "auto"),
        ("https://eu.api.openai.com/v1/responses", "auto"),
        ("https://mine.openai.azure.com/openai/v1/", "auto"),
        ("https://openrouter.ai/api/v1", "auto"),
        ("https://api.openai.com.evil.test/v1", None),
        ("https://api.example.test", None),
    ],
)
async def test_a_known_host_is_spoken_to_in_its_own_way(url: str, summary: str | None) -> None:
    asked, transport = provider(HELLO, model="gpt-5", base_url=url)
    await asked.step(Request(model="gpt-5", messages=ASK.messages), ignore)
    assert bodies(transport)[0].get("reasoning", {}).get("summary") == summary


@pytest.mark.rules("A1.19")
async def test_notices_of_the_request_come_with_the_answer() -> None:
    asked, _ = provider(HELLO)
    result = await asked.step(Request(model="m", messages=ASK.messages, stop=("x",)), ignore)
    assert isinstance(result, StepAnswer)
    assert len(result.notices) == 1


@pytest.mark.rules("A2.27")
async def test_a_model_that_hides_its_reasoning_is_asked_for_it_from_then_on() -> None:
    item: _Json = {"type": "reasoning", "id": "rs_1", "summary": []}
    hidden = {**DOCUMENT, "output": [item, *DOCUMENT["output"]]}
    stream = event_stream({"type": "response.completed", "response": hidden})
    asked, transport = provider(stream, HELLO, HELLO)
    for _ in range(3):
        await asked.step(ASK, ignore)
    included = [body.get("include") for body in bodies(transport)]
    assert included == [None, ["reasoning.encrypted_content"], ["reasoning.encrypted_content"]]


THOUGHT = Request(
    model="m",
    messages=(
        *ASK.messages,
        Message(
            "assistant",
            (
                Opaque(
                    dialect="openai_responses",
                    raw={"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz"},
                ),
                Text(text="Hi"),
            ),
        ),
        *ASK.messages,
    ),
)
FACTS = Model(provider="openai", id="m", thinking="effort")
FLAGS = ResponsesFlags(summary="auto")


async def test_an_account_without_summaries_is_not_asked_for_them_again() -> None:
    words = "Your organization must be verified to generate reasoning summaries."
    asked, transport = provider(refusal(words), HELLO, HELLO, facts=FACTS, flags=FLAGS)
    for _ in range(2):
        assert isinstance(await asked.step(THOUGHT, ignore), StepAnswer)
    assert [body.get("reasoning") for body in bodies(transport)] == [
        {"summary": "auto"},
        None,
        None,
    ]
    assert all("rs_1" in json.dumps(body["input"]) for body in bodies(transport))


async def test_a_model_without_encrypted_reasoning_is_not_asked_for_it_again() -> None:
    words = "Encrypted content is not supported with this model."
    asked, transport = provider(refusal(words), HELLO, HELLO, facts=FACTS, flags=FLAGS)
    for _ in range(2):
        assert isinstance(await asked.step(ASK, ignore), StepAnswer)
    asked_for = [body.get("include") for body in bodies(transport)]
    assert asked_for == [["reasoning.encrypted_content"], None, None]


@pytest.mark.rules("A2.32", "A3.31")
async def test_reasoning_that_another_accounts_key_encrypted_stays_behind() -> None:
    words = "The encrypted content xyz could not be verified. Reason: it could not be decrypted."
    asked, transport = provider(refusal(words), HELLO, facts=FACTS, flags=FLAGS)
    assert isinstance(await asked.step(THOUGHT, ignore), StepAnswer)
    first, second = bodies(transport)
    assert [item["type"] for item in first["input"]] == [
        "message", "reasoning", "message", "message",
    ]  # fmt: skip
    assert [item["type"] for item in second["input"]] == ["message"] * 3
    assert second["include"] == ["reasoning.encrypted_content"]


@pytest.mark.rules("A3.12")
async def test_a_refusal_that_no_other_form_would_help_is_told_at_once() -> None:
    asked, transport = provider(refusal("Invalid value: 'input[0]'."), facts=FACTS, flags=FLAGS)
    result = await asked.step(THOUGHT, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, RequestRejected)
    assert len(transport.calls) == 1
    words = "reasoning summary, encrypted content is not supported"
    asked, transport = provider(*[refusal(words)] * 4, facts=FACTS, flags=FLAGS)
    assert isinstance(await asked.step(THOUGHT, ignore), StepFailed)
    assert len(transport.calls) == 4  # each form once
    long = refusal("Your input exceeds the context window; the encrypted content is too long.")
    asked, transport = provider(long, facts=FACTS, flags=FLAGS)
    result = await asked.step(THOUGHT, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ContextOverflow)


@pytest.mark.rules("A4.5")
async def test_a_long_history_is_encoded_once() -> None:
    asked, transport = provider(HELLO, HELLO)
    await asked.step(THOUGHT, ignore)
    longer = Request(model="m", messages=(*THOUGHT.messages, *ASK.messages))
    await asked.step(longer, ignore)
    first, second = (call.body or b"" for call in transport.calls)
    assert second.startswith(first[:-2])


@pytest.mark.rules("A1.27")
async def test_models_are_listed_or_else_the_known_ones() -> None:
    asked, transport = provider(b'{"data":[{"id":"a"},{"id":"b"}]}', known_models=("x",))
    assert await asked.models() == ("a", "b")
    assert transport.calls[0].url == "https://api.example.test/v1/models"
    asked, _ = provider(Scripted(status=404), known_models=("x",))
    assert await asked.models() == ("x",)


async def test_it_is_a_provider_and_shows_no_secret() -> None:
    asked, transport = provider(api_key="sk-secret", extra_headers={"X-Key": "hush"})
    assert_provider: Provider = asked
    assert repr(assert_provider) == (
        "OpenAIResponses('openai/m', base_url='https://api.example.test/v1')"
    )
    assert asked.pause_s(1000) == 0.0
    await asked.aclose()
    await asked.aclose()
    assert transport.closed == 2

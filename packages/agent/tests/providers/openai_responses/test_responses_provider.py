"""The provider: one request in, one result out, whatever happens on the way."""

import json
from typing import Any

import pytest

from towline_agent.errors import (
    ContextOverflow,
    RequestRejected,
)
from towline_agent.providers.base import (
    Model,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    TextPiece,
)
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.testing import Scripted, ScriptedTransport, event_stream
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

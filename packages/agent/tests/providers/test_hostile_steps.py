"""Steps fail and never raise, whatever headers, lists and answers hold (A1.24)."""

import json
from typing import Any

import pytest

from towline_agent.errors import AuthenticationFailed, RequestRejected
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import Provider, Request, StepAnswer, StepFailed
from towline_agent.providers.credential import BearerCredential
from towline_agent.providers.discovery import discover_local, list_models
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.testing import Scripted, ScriptedTransport
from towline_protocol import Message, Text

ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
DEEP = 100_000
URL = "https://api.example.test"


def providers(*script: Any, **options: Any) -> list[tuple[Provider, ScriptedTransport]]:
    made: list[tuple[Provider, ScriptedTransport]] = []
    for kind in (OpenAIChat, OpenAIResponses, Anthropic, Gemini):
        transport = ScriptedTransport(*script)
        given: dict[str, Any] = {"base_url": URL, "api_key": "sk-123456789", **options}
        made.append((kind("m", transport=transport, **given), transport))
    return made


async def failure(provider: Provider) -> StepFailed:
    result = await provider.step(ASK, lambda _: None)
    assert isinstance(result, StepFailed)
    return result


@pytest.mark.rules("A1.24", "A3.21")
@pytest.mark.parametrize(
    "header",
    [{"x-team": "a\r\nx-evil: 1"}, {"x-team": None}, {"x-team": 7}, {"x team": "a"},
     {"x-team": "\ud800"}, {"x-team\r\n": "a"}, {"anthropic-beta": "a\nb"},
     {"anthropic-beta": None}],
)  # fmt: skip
async def test_a_header_that_cannot_be_sent_fails_the_step_with_its_name(header: Any) -> None:
    for provider, transport in providers(extra_headers=header):
        error = (await failure(provider)).error
        assert isinstance(error, RequestRejected)
        assert error.reason == "broken_header"
        assert repr(next(iter(header))) in error.message
        assert "evil" not in error.message
        assert transport.calls == []
        if "anthropic-beta" not in header:  # which no list is asked for with
            assert await provider.models() == ()


@pytest.mark.rules("A1.24")
async def test_a_token_that_cannot_be_sent_is_a_broken_key() -> None:
    for provider, transport in providers(api_key=BearerCredential("to\nken")):
        error = (await failure(provider)).error
        assert isinstance(error, AuthenticationFailed)
        assert "ken" not in error.message
        assert transport.calls == []


@pytest.mark.rules("A3.21")
async def test_the_token_and_the_added_headers_that_were_sent_are_not_repeated() -> None:
    said = json.dumps({"error": {"message": "bad ya29.abcdefgh and gateway-secret-1"}}).encode()
    answer = Scripted(status=400, headers={"request-id": "ya29.abcdefgh"}, parts=(said,))
    options = {
        "api_key": BearerCredential("ya29.abcdefgh"),
        "extra_headers": {"x-gateway": "gateway-secret-1"},
    }
    for provider, _ in providers(answer, **options):
        error = (await failure(provider)).error
        for text in (error.message, str(error.body), str(error.headers)):
            assert "[key]" in text
            assert "ya29" not in text
            assert "gateway-secret" not in text


@pytest.mark.rules("A1.24", "A1.27")
async def test_a_list_of_models_that_is_nested_beyond_reason_is_none() -> None:
    deep = b'{"data":' + b"[" * DEEP + b"]" * DEEP + b"}"
    for provider, _ in providers(deep, known_models=("known",)):
        assert await provider.models() == ("known",)
    listing = await list_models("openai", {"OPENAI_API_KEY": "sk-1"}, transport=_always(deep))
    assert not listing.live
    assert await discover_local(_always(deep), {}) == ()


def _always(answer: bytes) -> ScriptedTransport:
    return ScriptedTransport(*[answer] * 9)


@pytest.mark.rules("A1.24")
@pytest.mark.parametrize("deep", [300, 600, 900, DEEP])
async def test_answers_that_are_nested_beyond_reason_do_not_raise(deep: int) -> None:
    nested = "[" * deep + "]" * deep
    call = f'{{"function":{{"name":"f","arguments":{nested}}},"id":{nested}}}'
    block = (
        f'{{"type":"tool_use","id":{nested},"name":"f","input":{nested},"caller":{{"a":{nested}}}}}'
    )
    part = f'{{"functionCall":{{"name":"f","args":{{"a":{nested}}}}}}},{{"odd":{nested}}}'
    item = f'{{"type":"function_call","name":"f","call_id":"c","arguments":{nested},"x":{nested}}}'
    details = f'"reasoning_details":[{{"data":{nested}}}],"content":{nested}'
    bodies = [
        f'{{"choices":[{{"message":{{"tool_calls":[{call}],{details}}},"finish_reason":"stop"}}]}}',
        f'{{"status":"completed","output":[{item},{{"type":"odd","x":{nested}}}]}}',
        f'{{"content":[{block},{{"type":"odd","x":{nested}}}],"stop_reason":"end_turn"}}',
        f'{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}',
    ]
    for at, body in enumerate(bodies):
        provider, _ = providers(body.encode())[at]
        result = await provider.step(ASK, lambda _: None)
        assert isinstance(result, StepAnswer | StepFailed), body[:40]
    error = f'{{"error":{{"message":{nested},"details":[{{"a":{nested}}}]}}}}'
    for provider, _ in providers(Scripted(status=429, parts=(error.encode(),))):
        await failure(provider)

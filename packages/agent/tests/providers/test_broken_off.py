"""An answer of which nothing came: whoever is asked may speak another dialect."""

import pytest

from towline_agent.errors import ResponseMalformed
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import Piece, Request, StepAnswer, StepFailed
from towline_agent.providers.fragments import to_json
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.providers.secrets import Secrets
from towline_agent.testing import Scripted, ScriptedTransport, event_stream
from towline_protocol import Message, Text

ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
CHAT = event_stream({"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]})
Dialect = type[Anthropic] | type[OpenAIChat] | type[OpenAIResponses] | type[Gemini]


async def failed(make: Dialect, body: bytes) -> StepFailed:
    pieces: list[Piece] = []
    transport = ScriptedTransport(Scripted(parts=(body,)))
    asked = make("m", api_key="k", base_url="https://llm.example", transport=transport)
    result = await asked.step(ASK, pieces.append)
    assert isinstance(result, StepFailed)
    return result


@pytest.mark.rules("A3.9", "A3.18")
@pytest.mark.parametrize("make", [OpenAIChat, OpenAIResponses, Anthropic, Gemini])
async def test_an_answer_of_nothing_is_not_told_as_one_that_was_kept(make: Dialect) -> None:
    error = (await failed(make, b"")).error
    assert isinstance(error, ResponseMalformed)
    assert error.reason == "incomplete"
    assert "https://llm.example" in error.message
    assert "kept" not in error.message


@pytest.mark.rules("A3.9", "A3.18")
@pytest.mark.parametrize("make", [OpenAIResponses, Anthropic])
async def test_an_answer_in_another_dialect_names_the_address(make: Dialect) -> None:
    assert "speaks it" in (await failed(make, CHAT)).error.message


@pytest.mark.rules("A3.9")
async def test_what_had_come_is_still_told_as_kept() -> None:
    begun = event_stream({"choices": [{"delta": {"content": "Hel"}}]}, done=False)
    result = await failed(OpenAIChat, begun)
    assert result.content == (Text(text="Hel"),)
    assert "what had come is kept" in result.error.message


@pytest.mark.rules("A2.25")
async def test_half_a_character_in_any_control_spoils_no_request() -> None:
    odd = "a\ud800"
    asked = Request(model=odd, messages=ASK.messages, stop=(odd,), cache_key=odd)
    transport = ScriptedTransport(CHAT)
    provider = OpenAIChat(odd, base_url="https://llm.example", transport=transport)
    assert isinstance(await provider.step(asked, lambda _: None), StepAnswer)
    assert "a\ufffd".encode() in (transport.calls[0].body or b"")
    assert to_json({"k\ud83d\ude00": ["\udc00"]}) == '{"k😀":["\ufffd"]}'.encode()


def test_a_key_that_is_but_a_letter_is_not_taken_out_of_words() -> None:
    secrets = Secrets("k", "sk-0123456789")
    said = "not known: k, 'k' and xsk-0123456789x"
    assert secrets.clean(said) == "not known: [key], '[key]' and x[key]x"

"""The real model through the whole library, in each of the three dialects that its server speaks.

Tool calls and stop reasons are asserted, and that the model's words hold what only the tools told;
how it says it is its own affair.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from towline.local.server import LocalModel, serve_model
from towline.local.testing import require_model
from towline_agent import (
    LOCAL_MODEL_FACTS,
    Agent,
    AuthenticationFailed,
    ChatFlags,
    ContextOverflow,
    EndpointNotFound,
    HttpAnswer,
    HttpCall,
    Model,
    OpenAIChat,
    Provider,
    ProviderError,
    Request,
    StepAnswer,
    StepFailed,
    TextPiece,
    tool,
)
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.http import HttpTransport
from towline_agent.providers.openai_responses.flags import GATEWAY_FLAGS
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_protocol import Limits, Message, SseEvent, Text, ToolResult, block_text

pytestmark = [
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]

BOUND_S = 400.0
"""Three requests take 15 s on two idle cores and a minute on busy ones."""
PROMPT = "Read city.txt and then get the weather for the city named in it."
CITY = "Lisbon"
SKY = "snow"
"""Nobody guesses that for the city."""

MAKERS: dict[str, Callable[..., Provider]] = {
    "chat/completions": partial(OpenAIChat, flags=ChatFlags(one_call=True, wrap_results=True)),
    "responses": partial(OpenAIResponses, flags=GATEWAY_FLAGS["llamacpp"]),
    "messages": partial(
        Anthropic,
        flags=AnthropicFlags(
            cache_marks=False,
            schema_output=False,
            documents=False,
            unsigned_thinking=True,
            web_search=None,
        ),
    ),
}
"""The providers by the path that they ask."""
each_dialect = pytest.mark.parametrize("path", MAKERS)


class WatchedTransport:
    """The real transport; it keeps what was sent."""

    def __init__(self) -> None:
        self.calls: list[HttpCall] = []
        self._real = HttpTransport()

    async def sse(self, call: HttpCall, on_event: Callable[[SseEvent], bool]) -> HttpAnswer:
        self.calls.append(call)
        return await self._real.sse(call, on_event)

    async def json(self, call: HttpCall) -> HttpAnswer:
        self.calls.append(call)
        return await self._real.json(call)

    async def aclose(self) -> None:
        await self._real.aclose()


@pytest.fixture(scope="module")
def file() -> Path:
    return require_model()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(file: Path) -> AsyncGenerator[LocalModel]:
    async with serve_model(file) as running:
        yield running


def make(path: str, served: LocalModel, **changes: Any) -> Provider:
    facts: Model = changes.pop("facts", LOCAL_MODEL_FACTS)
    named = {"provider": facts.provider, "base_url": served.base_url, "api_key": served.key}
    return MAKERS[path](facts.id, facts=facts, **named | changes)


async def ask(provider: Provider, words: str) -> tuple[StepAnswer | StepFailed, str]:
    """The result of one short request, and what was told while it came."""
    told: list[str] = []
    request = Request(
        model=provider.model.id,
        messages=(Message("user", (Text(text=words),)),),
        max_tokens=8,
    )
    try:
        async with asyncio.timeout(BOUND_S):
            result = await provider.step(
                request, lambda piece: told.append(piece.text) if type(piece) is TextPiece else None
            )
    finally:
        await provider.aclose()
    return result, "".join(told)


async def fail(provider: Provider, words: str = "Hello!") -> ProviderError:
    result, told = await ask(provider, words)
    assert isinstance(result, StepFailed), result
    assert (told, result.content, result.streamed) == ("", (), False)
    return result.error


@pytest.mark.rules("A1.13", "A2.43", "A4.2", "A4.15", "A4.42", "A4.46", "A4.47", "A4.48", "A4.56")
@each_dialect
async def test_the_model_takes_two_tools_one_after_the_other_and_tells_what_they_said(
    path: str, served: LocalModel
) -> None:
    ran: list[tuple[str, str]] = []

    @tool(effect="read")
    async def read_file(path: str) -> dict[str, str]:
        """Read a text file.

        Args:
            path: The path of the file.
        """
        ran.append(("read_file", path))
        return {"path": path, "text": CITY}

    @tool(effect="read")
    def get_weather(city: str) -> dict[str, str]:
        """Get the current weather for a city.

        Args:
            city: The name of the city.
        """
        ran.append(("get_weather", city))
        return {"city": city, "sky": SKY, "temperature": "41 degrees"}

    transport = WatchedTransport()
    agent = Agent(
        make(path, served, transport=transport),
        tools=[read_file, get_weather],
        limits=Limits(max_steps=4),
    )
    try:
        async with asyncio.timeout(BOUND_S):
            result = await agent.run(PROMPT)
    finally:
        await agent.aclose()
    assert ran == [("read_file", "city.txt"), ("get_weather", CITY)]
    results = [b for m in result.messages for b in m.content if isinstance(b, ToolResult)]
    assert [json.loads(block_text(block.content)) for block in results] == [
        {"path": "city.txt", "text": CITY},
        {"city": CITY, "sky": SKY, "temperature": "41 degrees"},
    ]
    assert {call.url for call in transport.calls} == {f"{served.base_url}/{path}"}
    bodies = [(call.body or b"").decode() for call in transport.calls]
    assert [(CITY in body, SKY in body) for body in bodies] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert SKY in result.final_message.lower()
    assert (result.stop_reason, result.steps, result.tool_call_count) == ("end_turn", 3, 2)
    assert result.usage.input > 0
    assert result.usage.cache_read > 0  # a step begins as the one before it ended
    assert 10 < result.usage.output < 400
    assert result.cost == 0.0  # known to cost nothing


@pytest.mark.rules("A2.43", "A3.T3")
@each_dialect
@pytest.mark.parametrize("key", ["a-wrong-key", None])
async def test_a_wrong_or_missing_key_is_said_to_be_the_fault(
    path: str, key: str | None, served: LocalModel
) -> None:
    error = await fail(make(path, served, api_key=key))
    assert isinstance(error, AuthenticationFailed)
    assert (error.reason, error.status, error.retryable) == ("auth", 401, False)
    assert "a-wrong-key" not in error.message


@pytest.mark.rules("A2.43", "A3.T4")
@each_dialect
async def test_a_conversation_that_does_not_fit_is_said_to_be_too_long(
    path: str, served: LocalModel
) -> None:
    words = "word " * (served.facts.context_tokens + 500)
    error = await fail(make(path, served), words)
    assert isinstance(error, ContextOverflow)
    assert (error.reason, error.status) == ("context_overflow", 400)


@pytest.mark.rules("A2.43", "A3.T1")
@each_dialect
async def test_an_address_where_nothing_is_shows_what_was_called(
    path: str, served: LocalModel
) -> None:
    url = f"{served.base_url.removesuffix('/v1')}/elsewhere"
    error = await fail(make(path, served, base_url=url))
    assert isinstance(error, EndpointNotFound)
    assert (error.reason, error.status) == ("endpoint_not_found", 404)
    assert url in error.message


@pytest.mark.rules("A2.84")
@each_dialect
async def test_a_name_that_the_server_does_not_know_is_answered_by_its_one_model(
    path: str, served: LocalModel
) -> None:
    facts = Model(provider="local", id="a-model-that-is-nowhere", none_without_tools=True)
    result, told = await ask(make(path, served, facts=facts), "Say hello.")
    assert isinstance(result, StepAnswer)
    assert told == block_text(result.content) != ""
    assert 0 < result.usage.output <= 8

"""The provider: one request in, one result out, whatever happens on the way."""

import json
from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.errors import (
    ProviderUnavailable,
    RateLimited,
)
from towline_agent.providers.base import (
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    TextPiece,
)
from towline_agent.providers.gemini.address import gemini_address
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.testing import FakeClock, Scripted, ScriptedTransport, event_stream
from towline_protocol import Message, Text, Usage

NAME = "gemini-3.8-flash"
OFFICIAL = "https://generativelanguage.googleapis.com/v1beta"
PROJECT = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4"
ASK = Request(model=NAME, messages=(Message("user", (Text(text="Hi"),)),))
LAST = {
    "candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
}
HELLO = event_stream({"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]}, LAST, done=False)


def provider(*script: Scripted | bytes, **options: Any) -> tuple[Gemini, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    given: dict[str, Any] = {"api_key": "AIza-1", **options}
    return Gemini(NAME, transport=transport, **given), transport


def ignore(_: Piece) -> None:
    pass


@pytest.mark.rules("A1.22", "A1.23", "A2.3", "A2.44")
async def test_a_step_sends_one_request_and_tells_its_pieces_in_order() -> None:
    asked, transport = provider(HELLO)
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    assert result == StepAnswer(
        content=(Text(text="Hello"),),
        stop_reason="end_turn",
        raw_stop_reason="STOP",
        usage=Usage(input=3, output=2),
    )
    assert pieces == [TextPiece(0, "Hel"), TextPiece(0, "lo")]
    (call,) = transport.calls
    assert call.url == f"{OFFICIAL}/models/{NAME}:streamGenerateContent?alt=sse"
    assert call.headers["x-goog-api-key"] == "AIza-1"
    assert "authorization" not in call.headers
    assert call.headers["accept"] == "text/event-stream"
    assert json.loads(call.body or b"")["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]


@pytest.mark.rules("A2.78")
@pytest.mark.parametrize(
    ("pasted", "vertex", "url"),
    [
        ("https://generativelanguage.googleapis.com", False, OFFICIAL),
        ("https://generativelanguage.googleapis.com/v1/", False, OFFICIAL),
        (f"{OFFICIAL}/openai", False, OFFICIAL),
        (f"{OFFICIAL}/openai/chat/completions", False, OFFICIAL),
        (f"{OFFICIAL}/models", False, OFFICIAL),
        (f"curl '{OFFICIAL}/models/x:streamGenerateContent?alt=sse' -d {{}}", False, OFFICIAL),
        (f"{OFFICIAL}/cachedContents/7", False, OFFICIAL),
        ("https://gw.example.test/google/v1alpha", False, "https://gw.example.test/google/v1alpha"),
        ("https://gw.example.test/google", False, "https://gw.example.test/google/v1beta"),
        (PROJECT, True, PROJECT),
        (f"{PROJECT}/publishers/google", True, PROJECT),
        (f"{PROJECT}/publishers/google/models/m:generateContent", True, PROJECT),
        ("https://aiplatform.googleapis.com", True, "https://aiplatform.googleapis.com/v1"),
        ("https://aiplatform.googleapis.com/v1", True, "https://aiplatform.googleapis.com/v1"),
        ("not a url", False, "not a url"),
    ],
)
def test_addresses_are_taken_as_people_paste_them(pasted: str, vertex: bool, url: str) -> None:
    assert gemini_address(pasted, vertex=vertex) == url


@pytest.mark.rules("A2.64", "A2.65")
@pytest.mark.parametrize(
    ("url", "key", "header"),
    [
        (OFFICIAL, "AIza-1", ("x-goog-api-key", "AIza-1")),
        (OFFICIAL, " ya29.token\n", ("authorization", "Bearer ya29.token")),
        (PROJECT, "ya29.token", ("authorization", "Bearer ya29.token")),
        (PROJECT, "eyJ.some.jwt", ("authorization", "Bearer eyJ.some.jwt")),
        (PROJECT, "AQ.key", ("x-goog-api-key", "AQ.key")),
        ("https://aiplatform.googleapis.com", "AQ.key", ("x-goog-api-key", "AQ.key")),
    ],
)
async def test_keys_and_tokens_go_where_google_wants_them(
    url: str, key: str, header: tuple[str, str]
) -> None:
    asked, transport = provider(HELLO, base_url=url, api_key=key)
    await asked.step(ASK, ignore)
    headers = transport.calls[0].headers
    found = [
        (name, headers[name]) for name in ("x-goog-api-key", "authorization") if name in headers
    ]
    assert found == [header]


@pytest.mark.parametrize(
    ("url", "model", "path"),
    [
        (OFFICIAL, "models/gemini-2.5-pro", "/models/gemini-2.5-pro"),
        (OFFICIAL, "tunedModels/mine", "/tunedModels/mine"),
        (OFFICIAL, "odd name?", "/models/odd%20name%3F"),
        (PROJECT, "gemini-2.5-pro", "/publishers/google/models/gemini-2.5-pro"),
        (PROJECT, "publishers/meta/models/llama", "/publishers/meta/models/llama"),
        ("https://aiplatform.googleapis.com/v1", "m", "/publishers/google/models/m"),
    ],
)
async def test_each_model_has_its_path(url: str, model: str, path: str) -> None:
    asked, transport = provider(HELLO, base_url=url)
    await asked.step(Request(model=model, messages=ASK.messages), ignore)
    assert transport.calls[0].url == f"{url}{path}:streamGenerateContent?alt=sse"


async def test_a_server_that_stands_in_for_vertex_is_named_by_its_flags() -> None:
    flags = GeminiFlags(vertex=True)
    asked, transport = provider(HELLO, base_url="https://gw.example.test", flags=flags)
    await asked.step(ASK, ignore)
    assert transport.calls[0].url.startswith("https://gw.example.test/v1/publishers/google/models/")


@pytest.mark.rules("A2.4")
async def test_an_unstreamed_answer_is_read_into_the_same_words() -> None:
    whole = {**LAST, "candidates": [{"content": {"parts": [{"text": "Hello"}]}, "finishReason": 1}]}
    asked, transport = provider(json.dumps(whole).encode(), stream=False)
    pieces: list[Piece] = []
    result = await asked.step(ASK, pieces.append)
    streamed, _ = provider(HELLO)
    assert result == await streamed.step(ASK, ignore)
    assert pieces == [TextPiece(0, "Hello")]
    assert transport.calls[0].url == f"{OFFICIAL}/models/{NAME}:generateContent"
    assert transport.calls[0].headers["accept"] == "application/json"


@pytest.mark.rules("A2.44", "A2.20")
async def test_an_array_in_place_of_a_stream_is_taken_too() -> None:
    asked, _ = provider(b" [" + json.dumps(LAST).encode() + b"\n]")
    assert (await asked.step(ASK, ignore)).content == (Text(text="lo"),)
    asked, _ = provider(b'[{"error":{"message":"busy","code":503}}]')
    result = await asked.step(ASK, ignore)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)


@pytest.mark.rules("A1.24", "A3.20")
async def test_an_error_status_is_a_failed_step_and_never_raised() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]
    error = {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}
    for body in (
        {"error": {**error, "details": details}},
        [{"error": {**error, "details": details}}],
    ):
        asked, _ = provider(
            Scripted(status=429, parts=(json.dumps(body).encode(),)), clock=FakeClock()
        )
        result = await asked.step(ASK, ignore)
        assert isinstance(result, StepFailed)
        assert isinstance(result.error, RateLimited)
        assert (result.error.retry_after_s, result.error.status) == (7.0, 429)


@pytest.mark.rules("A1.19")
async def test_notices_of_the_request_come_with_the_answer() -> None:
    asked, _ = provider(HELLO)
    request = Request(model=NAME, messages=ASK.messages, thinking_budget=5)
    result = await asked.step(request, ignore)
    assert isinstance(result, StepAnswer)
    assert len(result.notices) == 1


@pytest.mark.rules("A1.27")
async def test_the_live_models_that_generate_content_are_listed() -> None:
    listed = {
        "models": [
            {"name": "models/gemini-3.8-flash", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/embedding-1", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/of-a-gateway"},
            {"name": 7},
            "odd",
        ]
    }
    asked, transport = provider(json.dumps(listed).encode())
    assert await asked.models() == ("gemini-3.8-flash", "of-a-gateway")
    (call,) = transport.calls
    assert (call.method, call.url) == ("GET", f"{OFFICIAL}/models?pageSize=1000")


@pytest.mark.rules("A1.27")
async def test_vertex_has_no_list_and_is_not_asked_for_one() -> None:
    asked, transport = provider(base_url=PROJECT, known_models=("known",))
    assert await asked.models() == ("known",)
    assert transport.calls == []


@pytest.mark.rules("A2.46", "A2.48", "R35")
async def test_an_agent_goes_through_a_tool_loop() -> None:
    def called(name: str, args: dict[str, int], **more: str) -> dict[str, Any]:
        part = {"functionCall": {"name": name, "args": args}, **more}
        return {"candidates": [{"content": {"parts": [part]}}]}

    first = event_stream(
        called("add", {"a": 2, "b": 3}, thoughtSignature="s1"),
        called("add", {"a": 4, "b": 5}),
        {"candidates": [{"finishReason": "STOP"}]},
        done=False,
    )
    asked, transport = provider(first, HELLO)

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    result = await Agent(asked, tools=[add]).run("Add 2 and 3, and 4 and 5.")
    assert result.final_message == "Hello"
    _, model, user = json.loads(transport.calls[1].body or b"")["contents"]
    assert model["parts"] == [
        {"functionCall": {"name": "add", "args": {"a": 2, "b": 3}}, "thoughtSignature": "s1"},
        {"functionCall": {"name": "add", "args": {"a": 4, "b": 5}}},
    ]
    assert user["parts"][:2] == [
        {"functionResponse": {"name": "add", "response": {"output": "5"}}},
        {"functionResponse": {"name": "add", "response": {"output": "9"}}},
    ]

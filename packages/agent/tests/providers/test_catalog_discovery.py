"""Asking around: local ports, and the live list of a provider."""

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from towline_agent.errors import AuthenticationFailed, ProviderUnavailable
from towline_agent.providers.discovery import discover_local, list_models
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed
from towline_agent.testing import Scripted, ScriptedTransport
from towline_protocol import UsageError


def models(*names: str, **more: Any) -> bytes:
    """A list of models as all local servers write it."""
    rows = [{"id": name, "object": "model", "owned_by": "me"} for name in names]
    return json.dumps({"object": "list", "data": rows, **more}).encode()


class Ports(ScriptedTransport):
    """Answers by port with a body or never; another port is refused."""

    def __init__(self, answers: dict[int, bytes | None], status: int = 200) -> None:
        super().__init__()
        self._answers = answers
        self._status = status

    async def json(self, call: HttpCall) -> HttpAnswer:
        """The answer of that port."""
        self.calls.append(call)
        port = urlsplit(call.url).port or 0
        if port not in self._answers:
            raise TransportFailed("refused")
        body = self._answers[port]
        if body is None:
            await asyncio.Event().wait()
        return HttpAnswer(status=self._status, body=body or b"")


@pytest.mark.rules("A2.86")
async def test_local_servers_are_found_on_their_usual_ports() -> None:
    ports: dict[int, bytes | None] = {
        11434: models("nomic-embed-text", "qwen3"),
        1234: models("gemma"),
        8080: models("a.gguf", models=[]),
        8000: models("Qwen/Qwen3-0.6B"),
    }
    transport = Ports(ports)
    found = await discover_local(transport, {})
    assert [(item.provider, item.model) for item in found] == [
        ("ollama", "qwen3"),
        ("lmstudio", "gemma"),
        ("llamacpp", "a.gguf"),
        ("vllm", "Qwen/Qwen3-0.6B"),
    ]
    assert found[0].why == "Ollama answers at http://127.0.0.1:11434"
    assert all(call.method == "GET" and "authorization" not in call.headers
               for call in transport.calls)  # fmt: skip
    assert await discover_local(Ports({}), {}) == ()


@pytest.mark.rules("A2.86")
async def test_another_address_of_the_environment_is_asked_instead() -> None:
    transport = Ports({9999: models("qwen3"), 11434: models("wrong")})
    found = await discover_local(transport, {"OLLAMA_HOST": "0.0.0.0:9999"})
    assert [(item.provider, item.model) for item in found] == [("ollama", "qwen3")]
    assert found[0].why == "Ollama answers at http://127.0.0.1:9999"
    assert await discover_local(Ports({}), {"OLLAMA_HOST": "http://:::"}) == ()


@pytest.mark.rules("A2.86")
@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>It works</body></html>",
        b"",
        b"OK",
        b"null",
        b"[]",
        b'[{"id": 1}]',
        b'{"status": "ok"}',
        b'{"data": [{"id": "user-1", "name": "Somebody"}]}',
        b'{"object": "list", "data": [{"id": "user-1"}]}',
        b'{"object": "list", "data": [{"id": 7, "object": "model"}]}',
        b'{"object": "list", "data": {"id": "x"}}',
        b'{"object": "list", "data": ["x"]}',
        b'{"object": "list", "data": []}',
        b"\xff\xfe",
    ],
)
async def test_whatever_else_listens_there_is_no_model_server(body: bytes) -> None:
    everywhere: dict[int, bytes | None] = dict.fromkeys((11434, 1234, 8080, 8000), body)
    assert await discover_local(Ports(everywhere), {}) == ()


@pytest.mark.rules("A2.86")
async def test_an_error_page_in_the_right_form_is_no_model_server() -> None:
    assert await discover_local(Ports({8000: models("x")}, status=404), {}) == ()


@pytest.mark.rules("A2.86")
async def test_a_port_that_never_answers_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towline_agent.providers.discovery._ASK_S", 0.05)
    async with asyncio.timeout(5):
        found = await discover_local(Ports({8080: None, 11434: models("qwen3")}), {})
    assert [item.provider for item in found] == ["ollama"]


@pytest.mark.rules("A1.27")
async def test_a_live_list_holds_what_answers_in_words() -> None:
    transport = ScriptedTransport(models("gpt-6.1-sol", "text-embedding-3-large", "tts-1"))
    listing = await list_models("openai", {"OPENAI_API_KEY": "k"}, transport=transport)
    assert (listing.models, listing.live, listing.problem) == (("gpt-6.1-sol",), True, None)
    assert transport.calls[0].url == "https://api.openai.com/v1/models"


@pytest.mark.rules("A1.27")
async def test_gemini_names_its_models_in_another_form() -> None:
    body = b'{"models": [{"name": "models/gemini-3.8-flash"}, {"name": "models/embedding-001"}]}'
    transport = ScriptedTransport(body)
    listing = await list_models("gemini", {"GEMINI_API_KEY": "k"}, transport=transport)
    assert (listing.models, listing.live) == (("gemini-3.8-flash",), True)


@pytest.mark.rules("A1.27")
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "groq"])
async def test_without_a_key_nothing_is_sent_and_the_known_ones_are_listed(provider: str) -> None:
    transport = ScriptedTransport()
    listing = await list_models(provider, {}, transport=transport)
    assert listing.live is False
    assert len(listing.models) == 1
    assert isinstance(listing.problem, AuthenticationFailed)
    assert "_API_KEY" in listing.problem.message
    assert transport.calls == []


@pytest.mark.rules("A1.27")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Scripted(parts=(TransportFailed("dns"),)), "api.groq.com"),
        (Scripted(parts=(TransportFailed("certificate"),)), "TOWLINE_CA_FILE"),
        (Scripted(status=401, parts=(b'{"error": "bad key sk-secret"}',)), "GROQ_API_KEY"),
        (Scripted(status=503, parts=(b"<html>",)), "503"),
        (Scripted(parts=(b"<html>Hello</html>",)), "groq"),
        (Scripted(parts=(b'{"hello": 1}',)), "groq"),
    ],
)
async def test_why_a_provider_cannot_be_asked_is_said(answer: Scripted, words: str) -> None:
    transport = ScriptedTransport(answer)
    listing = await list_models("groq", {"GROQ_API_KEY": "sk-secret"}, transport=transport)
    assert listing.live is False
    assert listing.models == ("openai/gpt-oss-120b",)
    assert listing.problem is not None
    assert words in listing.problem.message
    assert "sk-secret" not in listing.problem.message


async def test_a_provider_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towline_agent.providers.discovery._LIST_S", 0.05)
    transport = ScriptedTransport(Scripted(parts=(asyncio.Event(),)))
    async with asyncio.timeout(5):
        listing = await list_models("groq", {"GROQ_API_KEY": "k"}, transport=transport)
    assert isinstance(listing.problem, ProviderUnavailable)
    assert transport.cancelled == 1


async def test_an_address_that_cannot_be_is_said() -> None:
    env = {"TOWLINE_BASE_URL": "http://192.168.1.2:8000"}
    listing = await list_models("custom", env, transport=ScriptedTransport())
    assert listing.problem is not None
    assert "not encrypted" in listing.problem.message
    with pytest.raises(UsageError):
        await list_models("nobody", {}, transport=ScriptedTransport())


@pytest.mark.rules("A1.27")
async def test_a_provider_without_a_list_names_the_known_ones_and_no_problem() -> None:
    env = {"VERTEX_ACCESS_TOKEN": "ya29.x|p-1"}
    transport = ScriptedTransport()
    listing = await list_models("vertex", env, transport=transport)
    assert (listing.models, listing.live) == (("gemini-3.8-flash",), False)
    assert listing.problem is None
    assert transport.calls == []

"""The catalog: from a name to a provider, and from nothing to a name."""

import asyncio
import json
import sys
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import pytest

from towline_agent.providers.base import Model, Request, StepFailed
from towline_agent.providers.catalog import (
    LOCAL_MODEL_FACTS,
    choose_model,
    connect,
    connect_local,
    discover,
    model_facts,
)
from towline_agent.providers.discovery import discover_local
from towline_agent.providers.facts import fact_file, known_facts
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed
from towline_agent.providers.vendors import VENDORS
from towline_agent.testing import ScriptedTransport, event_stream
from towline_protocol import Message, Text, UsageError

ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
HELLO = event_stream({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]})


async def sent(name: str, env: dict[str, str], **options: Any) -> HttpCall:
    """The call that a step at this provider makes."""
    transport = ScriptedTransport(HELLO)
    provider = connect(name, env, transport=transport, **options)
    result = await provider.step(ASK, lambda _: None)
    assert not isinstance(result, StepFailed), result
    return transport.calls[0]


@pytest.mark.rules("A2.81", "A2.85")
@pytest.mark.parametrize("vendor", [v for v in VENDORS.values() if v.key_settings and v.base_url])
async def test_each_vendors_key_is_found_and_sent_to_its_own_address(vendor: Any) -> None:
    for setting in vendor.key_settings:
        call = await sent(vendor.name, {setting: "sk-1"})
        assert call.url == f"{vendor.base_url}/chat/completions"
        assert call.headers["authorization"] == "Bearer sk-1"
        (found,) = discover({setting: "sk-1"})
        assert (found.provider, found.why) == (vendor.name, f"{setting} is set")


@pytest.mark.rules("A2.81", "A2.89")
def test_every_usual_model_is_known_with_window_and_prices() -> None:
    for vendor in VENDORS.values():
        if vendor.default_model is None:
            continue
        facts = connect(vendor.name, {}).model
        assert facts.id == vendor.default_model
        assert facts.window is not None, vendor.name
        assert facts.price_input is not None
        assert facts.price_output is not None


@pytest.mark.rules("A2.82")
def test_prices_are_found_by_name_without_date_or_by_beginning() -> None:
    opus = known_facts("anthropic", "claude-opus-5-5")
    assert opus is not None
    assert known_facts("anthropic", "claude-opus-5-5-20260921") is opus
    assert known_facts("openai", "gpt-5-2025-08-07") == known_facts("openai", "gpt-5")
    assert known_facts("gemini", "gemini-3.8-flash-preview-09") is not None
    assert known_facts("openai", "nobody-knows-it") is None
    assert known_facts("nobody", "gpt-5") is None


@pytest.mark.rules("A2.82")
def test_the_prices_have_a_source_and_a_date_and_nothing_else_is_asked() -> None:
    file = fact_file()
    assert file.source.startswith("genai-prices ")
    assert date.fromisoformat(file.date) > date(2026, 1, 1)
    assert "genai_prices" not in sys.modules
    assert all(row.names for rows in file.vendors.values() for row in rows)


@pytest.mark.rules("A2.84")
def test_an_unknown_model_has_safe_defaults() -> None:
    assert model_facts("openai", "brand-new") == Model(provider="openai", id="brand-new")
    assert model_facts("somebody", "brand-new") == Model(provider="somebody", id="brand-new")


@pytest.mark.rules("A3.4")
def test_local_servers_are_free_and_patient() -> None:
    facts = connect("ollama/qwen3", {}).model
    assert (facts.price_input, facts.price_output, facts.idle_s) == (0.0, 0.0, 900.0)


@pytest.mark.rules("A2.65")
async def test_local_servers_get_no_credential() -> None:
    call = await sent("ollama/qwen3", {})
    assert call.url == "http://127.0.0.1:11434/v1/chat/completions"
    assert "authorization" not in call.headers


async def test_addresses_of_the_environment_are_taken() -> None:
    call = await sent("ollama/x", {"OLLAMA_HOST": "0.0.0.0:9999"})
    assert call.url == "http://127.0.0.1:9999/v1/chat/completions"
    call = await sent("openai/x", {"OPENAI_BASE_URL": "http://localhost:4000"})
    assert call.url == "http://localhost:4000/v1/chat/completions"
    env = {"TOWLINE_BASE_URL": "https://mine.test/llm", "TOWLINE_API_KEY": "k"}
    call = await sent("custom/x", env)
    assert call.url == "https://mine.test/llm/v1/chat/completions"
    assert call.headers["authorization"] == "Bearer k"
    assert discover(env)[0].provider == "custom"
    call = await sent("groq/x", {}, base_url="https://other.test", api_key="k2")
    assert (call.url, call.headers["authorization"]) == (
        "https://other.test/v1/chat/completions",
        "Bearer k2",
    )


@pytest.mark.rules("A2.80")
async def test_plain_http_off_this_machine_needs_the_setting() -> None:
    env = {"TOWLINE_BASE_URL": "http://192.168.1.2:8000"}
    refused = connect("custom/x", env, transport=ScriptedTransport())
    assert isinstance(await refused.step(ASK, lambda _: None), StepFailed)
    call = await sent("custom/x", {**env, "TOWLINE_ALLOW_HTTP": "1"})
    assert call.url.startswith("http://192.168.1.2:8000")


@pytest.mark.rules("A4.45")
async def test_a_missing_key_shows_in_the_first_step_and_names_its_setting() -> None:
    transport = ScriptedTransport()
    result = await connect("openai/x", {}, transport=transport).step(ASK, lambda _: None)
    assert isinstance(result, StepFailed)
    assert "OPENAI_API_KEY" in result.error.message
    assert transport.calls == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "provider/model"),
        ("", "provider/model"),
        ("nobody/x", "nobody"),
        ("ollama", "names no model"),
        ("custom/x", "TOWLINE_BASE_URL"),
    ],
)
def test_a_name_that_leads_nowhere_is_said(name: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        connect(name, {})
    assert words in error.value.message


def test_a_model_may_have_slashes_in_its_name() -> None:
    assert (
        connect("openrouter/anthropic/claude-opus-5.5", {}).model.id == "anthropic/claude-opus-5.5"
    )


@pytest.mark.rules("A2.85")
def test_nothing_is_found_in_an_empty_environment_and_empty_keys_do_not_count() -> None:
    assert discover({}) == ()
    assert discover({"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": "https://x.test"}) == ()
    both = discover({"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b"})
    assert [found.provider for found in both] == ["anthropic", "openai"]


@pytest.mark.rules("A2.87", "A2.88", "A2.89", "A2.90")
def test_the_model_is_the_last_pick_then_the_preferred_live_one_then_the_usual_one() -> None:
    live = (
        "gemini-2.5-flash", "gemini-3.10-flash", "gemini-3.8-flash", "gemini-3.10-flash-lite",
        "gemini-4-argon",
    )  # fmt: skip
    assert choose_model("gemini", live, last="gemini-4-argon").model == "gemini-4-argon"
    assert choose_model("gemini", live, last="gone").model == "gemini-3.10-flash"
    assert choose_model("gemini", live).model == "gemini-3.10-flash"
    assert choose_model("gemini").model == VENDORS["gemini"].default_model
    assert choose_model("gemini", last="anything").why == "your last pick"
    assert "offers" in choose_model("gemini", live).why
    assert "usual" in choose_model("gemini").why
    assert choose_model("ollama", ("nomic-embed-text", "qwen3")).model == "qwen3"
    for provider, nothing in (("ollama", ()), ("ollama", ("embed",)), ("nobody", ("x",))):
        with pytest.raises(UsageError):
            choose_model(provider, nothing)


@pytest.mark.rules("A2.91")
def test_the_facts_of_the_embedded_model() -> None:
    facts = LOCAL_MODEL_FACTS
    assert (facts.idle_s, facts.concurrency, facts.window) == (900.0, 1, 8192)
    assert (facts.one_call_per_step, facts.named_choice, facts.none_without_tools) == (
        True,
        False,
        True,
    )
    assert (facts.price_input, facts.price_output, facts.fast) == (0.0, 0.0, False)


async def test_the_embedded_model_is_asked_at_its_own_address() -> None:
    transport = ScriptedTransport(HELLO)
    provider = connect_local("http://127.0.0.1:5999", "k", transport=transport)
    await provider.step(ASK, lambda _: None)
    assert transport.calls[0].url == "http://127.0.0.1:5999/v1/chat/completions"
    assert transport.calls[0].idle_s == 900.0
    assert provider.model is LOCAL_MODEL_FACTS


class Ports(ScriptedTransport):
    """Answers by port with a body or not at all; another port is refused."""

    def __init__(self, answers: dict[int, bytes | None]) -> None:
        super().__init__()
        self._answers = answers

    async def json(self, call: HttpCall) -> HttpAnswer:
        """The answer of that port."""
        port = urlsplit(call.url).port or 0
        if port not in self._answers:
            raise TransportFailed("refused")
        body = self._answers[port]
        if body is None:
            await asyncio.Event().wait()
        return HttpAnswer(status=200, body=body or b"")


@pytest.mark.rules("A2.86")
async def test_local_servers_are_found_on_their_usual_ports() -> None:
    def models(*names: str) -> bytes:
        return json.dumps({"data": [{"id": name} for name in names]}).encode()

    found = await discover_local(Ports({11434: models("qwen3"), 8080: models("a.gguf")}))
    assert [(item.provider, item.model) for item in found] == [
        ("ollama", "qwen3"),
        ("llamacpp", "a.gguf"),
    ]
    assert found[0].why == "Ollama answers at http://127.0.0.1:11434"
    assert await discover_local(Ports({})) == ()
    assert await discover_local(Ports({8080: b"<html>It works</html>", 1234: models()})) == ()


@pytest.mark.rules("A2.86")
async def test_a_port_that_never_answers_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towline_agent.providers.discovery._ASK_S", 0.05)
    async with asyncio.timeout(5):
        assert await discover_local(Ports({8080: None})) == ()

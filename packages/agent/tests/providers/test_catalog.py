"""The catalog: from a name to somebody to ask."""

from typing import Any

import pytest

from towline_agent.errors import EndpointNotFound
from towline_agent.providers.base import Model, Provider, Request, StepFailed
from towline_agent.providers.catalog import (
    LOCAL_MODEL_FACTS,
    connect,
    connect_local,
    discover,
    model_facts,
)
from towline_agent.providers.credential import BearerCredential
from towline_agent.providers.keys import KeyRing
from towline_agent.providers.transport import HttpCall
from towline_agent.providers.vendors import DIALECTS, VENDORS, Vendor
from towline_agent.testing import Scripted, ScriptedTransport, event_stream
from towline_protocol import Message, Text, UsageError

ASK = Request(model="m", max_tokens=7, messages=(Message("user", (Text(text="Hi"),)),))
HELLO = event_stream({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]})
PATHS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "anthropic": "/messages",
    "gemini": ":streamGenerateContent?alt=sse",
}
KEY_HEADERS = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
EVERYBODY = [vendor for vendor in VENDORS.values() if vendor.base_url and vendor.key_settings]
VERTEX = {"GOOGLE_CLOUD_PROJECT": "p-1", "GOOGLE_CLOUD_LOCATION": "europe-west4"}


async def sent(name: str, env: dict[str, str], **options: Any) -> HttpCall:
    """The call that a step at this provider makes, whatever comes of it."""
    transport = ScriptedTransport(HELLO)
    provider = connect(name, env, transport=transport, **options)
    await provider.step(ASK, lambda _: None)
    return transport.calls[0]


def key_of(call: HttpCall) -> str:
    """The key that a call carries."""
    for header in ("x-api-key", "x-goog-api-key", "api-key"):
        if header in call.headers:
            return call.headers[header]
    return call.headers["authorization"].removeprefix("Bearer ")


async def failure(provider: Provider) -> str:
    """What a step fails with."""
    result = await provider.step(ASK, lambda _: None)
    assert isinstance(result, StepFailed)
    return result.error.message


@pytest.mark.rules("A2.81", "A2.85")
@pytest.mark.parametrize("vendor", EVERYBODY, ids=lambda vendor: vendor.name)
async def test_each_vendors_key_is_found_and_sent_to_its_own_address(vendor: Vendor) -> None:
    for setting in vendor.key_settings:
        env = {setting: "sk-1", **(VERTEX if vendor.name == "vertex" else {})}
        call = await sent(f"{vendor.name}/some-model", env)
        host = vendor.base_url.removeprefix("https://").split("/")[0]
        assert host in call.url
        assert call.url.endswith(PATHS[vendor.dialect])
        assert key_of(call) == "sk-1"
        (found,) = discover({setting: "sk-1"})
        assert (found.provider, found.why) == (vendor.name, f"{setting} is set")


@pytest.mark.rules("A2.81")
@pytest.mark.parametrize(
    ("name", "url", "header"),
    [
        ("openai", "https://api.openai.com/v1/responses", "authorization"),
        ("anthropic", "https://api.anthropic.com/v1/messages", "x-api-key"),
        ("glm", "https://api.z.ai/api/paas/v4/chat/completions", "authorization"),
        ("perplexity", "https://api.perplexity.ai/chat/completions", "authorization"),
        ("copilot/m", "https://api.githubcopilot.com/chat/completions", "authorization"),
        ("minimax", "https://api.minimax.io/anthropic/v1/messages", "x-api-key"),
        ("fireworks", "https://api.fireworks.ai/inference/v1/chat/completions", "authorization"),
        ("huggingface/m", "https://router.huggingface.co/v1/chat/completions", "authorization"),
    ],
)
async def test_addresses_are_those_of_the_vendors_own_pages(
    name: str, url: str, header: str
) -> None:
    call = await sent(name, {}, api_key="k")
    assert call.url == url
    assert header in call.headers


@pytest.mark.rules("A2.81")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_provider_can_be_asked_in_each_dialect(dialect: str) -> None:
    provider = connect(f"openrouter+{dialect}/openai/gpt-5-nano", {})
    assert provider.model.name == f"openrouter+{dialect}/openai/gpt-5-nano"
    assert provider.model.window == 400_000
    call = await sent(f"openrouter+{dialect}/openai/gpt-5-nano", {}, api_key="k")
    assert call.url.startswith("https://openrouter.ai/api/v1")
    assert call.url.endswith(PATHS[dialect])


async def test_another_dialect_may_be_at_another_address() -> None:
    call = await sent("kimi+anthropic/kimi-k3", {}, api_key="k")
    assert call.url == "https://api.moonshot.ai/anthropic/v1/messages"
    assert call.headers["authorization"] == "Bearer k"
    call = await sent("gemini+chat/gemini-3.8-flash", {}, api_key="k")
    assert call.url == ("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions")


async def test_an_address_of_ones_own_is_asked_in_the_dialect_that_is_named() -> None:
    env = {"TOWLINE_BASE_URL": "https://mine.test/llm", "TOWLINE_API_KEY": "k"}
    for dialect in ("anthropic", "responses"):
        for call in (
            await sent("custom/x", {**env, "TOWLINE_DIALECT": dialect}),
            await sent(f"custom+{dialect}/x", env),
        ):
            assert call.url == f"https://mine.test/llm/v1{PATHS[dialect]}"
    call = await sent("groq/x", {"TOWLINE_DIALECT": "anthropic"}, api_key="k")  # for custom alone
    assert call.url.endswith("/chat/completions")


async def test_what_stands_in_for_openai_is_asked_by_chat_completions() -> None:
    env = {"OPENAI_BASE_URL": "http://localhost:4000"}
    assert (await sent("openai/x", env)).url == "http://localhost:4000/v1/chat/completions"
    assert (await sent("openai+responses/x", env)).url == "http://localhost:4000/v1/responses"


async def test_addresses_of_the_environment_are_taken() -> None:
    call = await sent("ollama/x", {"OLLAMA_HOST": "0.0.0.0:9999"})
    assert call.url == "http://127.0.0.1:9999/v1/chat/completions"
    env = {"TOWLINE_BASE_URL": "https://mine.test/llm", "TOWLINE_API_KEY": "k"}
    call = await sent("custom/x", env)
    assert call.url == "https://mine.test/llm/v1/chat/completions"
    assert call.headers["authorization"] == "Bearer k"
    both = discover({**env, "OPENAI_API_KEY": "k"})
    assert [found.provider for found in both] == ["custom", "openai"]
    call = await sent("groq/x", {}, base_url="https://other.test", api_key="k2")
    assert call.url == "https://other.test/v1/chat/completions"
    assert call.headers["authorization"] == "Bearer k2"
    for mine in ("127.0.0.1:8000/v1", "localhost:8000", "[::1]:8000"):
        call = await sent("openai+chat/x", {}, base_url=mine)
        assert call.url == f"http://{mine.removesuffix('/v1')}/v1/chat/completions"
    call = await sent("glm/x", {"ZAI_API_KEY": "k", "ZAI_BASE_URL": "open.bigmodel.cn/api/paas/v4"})
    assert call.url == "https://open.bigmodel.cn/api/paas/v4/chat/completions"


@pytest.mark.parametrize("vendor", ["azure", "openai", "groq"])
async def test_an_address_that_is_none_is_told_by_the_first_step(vendor: str) -> None:
    made = connect(f"{vendor}/x", {}, api_key="k", base_url="http://[::1")
    result = await made.step(Request(model="x", messages=()), lambda _: None)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, EndpointNotFound)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://mine.openai.azure.com",
        "https://mine.openai.azure.com/openai/",
        "https://mine.openai.azure.com/openai/v1/",
        "https://mine.openai.azure.com/openai/deployments/x/chat/completions?api-version=2024-02-01",
    ],
)
async def test_an_azure_resource_is_asked_at_its_own_address(endpoint: str) -> None:
    env = {"AZURE_OPENAI_ENDPOINT": endpoint, "AZURE_OPENAI_API_KEY": "k"}
    call = await sent("azure/our-gpt", env)
    assert call.url == "https://mine.openai.azure.com/openai/v1/responses"
    assert call.headers["authorization"] == "Bearer k"
    call = await sent("azure+chat/our-gpt", env)
    assert call.url == "https://mine.openai.azure.com/openai/v1/chat/completions"
    assert b'"max_completion_tokens":7' in (call.body or b"")
    del env["AZURE_OPENAI_API_KEY"]
    assert "AZURE_OPENAI_API_KEY" in await failure(connect("azure/our-gpt", env))


@pytest.mark.rules("A2.72")
async def test_vertex_takes_a_token_with_its_project_and_a_location() -> None:
    place = "projects/p-2/locations"
    models = "publishers/google/models/m"
    call = await sent("vertex", {"VERTEX_ACCESS_TOKEN": "ya29.x|p-2"})
    assert call.url.startswith(
        f"https://aiplatform.googleapis.com/v1/{place}/global/{models}:streamGenerateContent"
    )
    assert call.headers["authorization"] == "Bearer ya29.x"
    call = await sent("vertex", {"VERTEX_ACCESS_TOKEN": "ya29.x", **VERTEX})
    assert call.url.startswith(
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/"
    )
    with pytest.raises(UsageError, match="GOOGLE_CLOUD_PROJECT"):
        connect("vertex", {"VERTEX_ACCESS_TOKEN": "ya29.x"})
    assert "VERTEX_ACCESS_TOKEN" in await failure(connect("vertex", VERTEX))


@pytest.mark.parametrize(
    "text",
    ["X-Team: a b\nEditor-Version: mine/1.0", '{"x-team": "a b", "editor-version": "mine/1.0"}'],
)
async def test_a_gateway_gets_headers_of_ones_own(text: str) -> None:
    env = {"TOWLINE_BASE_URL": "https://mine.test", "TOWLINE_HEADERS": text}
    call = await sent("custom/x", env)
    assert (call.headers["x-team"], call.headers["editor-version"]) == ("a b", "mine/1.0")
    call = await sent("copilot/x", {"COPILOT_API_KEY": "k", "COPILOT_HEADERS": text})
    assert call.headers["x-team"] == "a b"
    assert "x-team" not in (await sent("groq/x", env, api_key="k")).headers


@pytest.mark.parametrize(
    "text", ["no header", '{"a": 1}', "{", "a b: c", "X-Key: s3cret\x01", "X-Key:", '{"": "v"}']
)
def test_what_is_no_header_is_said_without_its_value(text: str) -> None:
    with pytest.raises(UsageError) as error:
        connect("custom/x", {"TOWLINE_BASE_URL": "https://mine.test", "TOWLINE_HEADERS": text})
    assert "TOWLINE_HEADERS" in error.value.message
    assert "s3cret" not in error.value.message


@pytest.mark.rules("A3.29")
async def test_several_keys_make_a_ring_in_the_order_in_which_they_are_known() -> None:
    env = {"GROQ_API_KEY": "ring-1", "GROQ_API_KEYS": "ring-2, ring-1 ,,ring-3"}
    slow = Scripted(status=429, parts=(b'{"error": {"message": "slow down"}}',))
    transport = ScriptedTransport(*[slow] * 4)  # every key is tried once
    ring = connect("groq/x", env, stored={"groq": ["ring-4"], "xai": ["k-9"]}, transport=transport)
    assert isinstance(ring, KeyRing)
    await ring.step(ASK, lambda _: None)
    assert [key_of(call) for call in transport.calls] == ["ring-1", "ring-2", "ring-3", "ring-4"]
    assert "ring-1" not in repr(ring)


@pytest.mark.rules("A2.64", "A3.29")
async def test_one_key_makes_no_ring_and_keys_that_are_passed_stand_alone() -> None:
    env = {"GROQ_API_KEYS": "k-1"}
    assert not isinstance(connect("groq/x", env), KeyRing)
    assert key_of(await sent("groq/x", env)) == "k-1"
    assert key_of(await sent("groq/x", {}, stored={"groq": ["k-2"]})) == "k-2"
    assert key_of(await sent("groq/x", env, api_key="k-3", stored={"groq": ["k-2"]})) == "k-3"
    assert isinstance(connect("groq/x", env, api_keys=("a", "b")), KeyRing)
    assert not isinstance(connect("groq/x", env, api_key="a", api_keys=("a",)), KeyRing)


@pytest.mark.rules("A2.64")
@pytest.mark.parametrize("base_url", ["", " ", 5])
def test_an_empty_address_is_refused_and_the_vendors_does_not_stand_in(base_url: Any) -> None:
    with pytest.raises(UsageError, match="leave it out"):
        connect("openai/x", {}, base_url=base_url, api_key="k")


@pytest.mark.rules("A2.64")
async def test_a_wrong_key_of_another_dialect_names_a_provider_that_keeps_one() -> None:
    refused = Scripted(status=401, parts=(b'{"error": {"message": "no"}}',))
    asked = connect(
        "openai+chat/x", {}, base_url="https://other.test", transport=ScriptedTransport(refused)
    )
    result = await asked.step(ASK, lambda _: None)
    assert isinstance(result, StepFailed)
    assert "`towline keys set openai`" in result.error.message


@pytest.mark.rules("A2.64")
@pytest.mark.parametrize(
    "keys",
    [
        {"api_key": ""},
        {"api_keys": [""]},
        {"api_keys": ["a", " "]},
        {"api_key": 3},
        {"api_keys": [None]},
        {"api_keys": []},
    ],
)
def test_an_empty_key_is_refused_and_none_of_the_environment_stands_in(keys: Any) -> None:
    with pytest.raises(UsageError, match="leave it out"):
        connect("groq/x", {"GROQ_API_KEYS": "k-1"}, base_url="https://other.test", **keys)


@pytest.mark.parametrize(
    ("name", "facts"), [(None, {}), ("groq", {"api_keys": 3}), ("groq", {"ca_file": 3})]
)
def test_what_names_no_model_or_no_keys_is_refused(name: Any, facts: Any) -> None:
    with pytest.raises(UsageError, match=r"give 'provider/model'|takes a list|PEM file"):
        connect(name, {}, **facts)


@pytest.mark.rules("A2.64")
async def test_a_sign_in_is_used_where_there_is_no_key() -> None:
    credential = BearerCredential("ya29.x")
    call = await sent("gemini+chat/gemini-3.8-flash", {}, credential=credential)
    assert call.headers["authorization"] == "Bearer ya29.x"
    env = {"GEMINI_API_KEY": "k"}
    call = await sent("gemini+chat/gemini-3.8-flash", env, credential=credential)
    assert call.headers["authorization"] == "Bearer k"


@pytest.mark.rules("A2.81", "A2.89")
def test_every_usual_model_is_known_with_window_and_prices() -> None:
    unpriced = {"qwen", "vercel", "perplexity"}  # nobody lists them, or a request costs besides
    for vendor in VENDORS.values():
        if vendor.default_model is None:
            continue
        facts = model_facts(vendor.name, vendor.default_model)
        assert facts.window is not None, vendor.name
        assert (facts.price_input is None) == (vendor.name in unpriced), vendor.name
        assert (facts.price_output is None) == (vendor.name in unpriced), vendor.name


@pytest.mark.rules("A2.81", "A1.19")
def test_facts_of_a_model_hold_prices_and_abilities() -> None:
    facts = connect("anthropic/claude-haiku-4-5", {}).model
    assert (facts.window, facts.output_cap) == (200_000, 64_000)
    assert (facts.price_input, facts.price_output) == (1.0, 5.0)
    assert (facts.price_cache_read, facts.price_cache_write) == (0.1, 1.25)
    assert (facts.thinking, facts.refuses, facts.fast) == ("budget", (), True)
    facts = connect("openai", {}).model
    assert facts.thinking == "effort"
    assert "temperature" in facts.refuses


@pytest.mark.rules("A2.84")
def test_an_unknown_model_has_safe_defaults() -> None:
    assert model_facts("openai", "brand-new") == Model(provider="openai", id="brand-new")
    assert model_facts("somebody", "brand-new") == Model(provider="somebody", id="brand-new")


@pytest.mark.rules("A3.4")
def test_local_servers_are_free_and_patient_and_decide_on_the_window_themselves() -> None:
    facts = connect("ollama/gpt-oss:20b", {}).model
    assert (facts.price_input, facts.price_output, facts.idle_s) == (0.0, 0.0, 900.0)
    assert facts.window is None


@pytest.mark.rules("A2.65")
async def test_local_servers_get_no_credential() -> None:
    call = await sent("ollama/qwen3", {})
    assert call.url == "http://127.0.0.1:11434/v1/chat/completions"
    assert "authorization" not in call.headers


@pytest.mark.rules("A2.80")
async def test_plain_http_off_this_machine_needs_the_setting() -> None:
    env = {"TOWLINE_BASE_URL": "http://192.168.1.2:8000"}
    assert "not encrypted" in await failure(connect("custom/x", env, transport=ScriptedTransport()))
    call = await sent("custom/x", {**env, "TOWLINE_ALLOW_HTTP": "1"})
    assert call.url.startswith("http://192.168.1.2:8000")


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize("vendor", EVERYBODY, ids=lambda vendor: vendor.name)
async def test_a_missing_key_shows_in_the_first_step_and_names_its_setting(vendor: Vendor) -> None:
    transport = ScriptedTransport()
    said = await failure(connect(f"{vendor.name}/x", VERTEX, transport=transport))
    assert vendor.key_settings[0] in said
    assert transport.calls == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "'openai/gpt-5'"),
        ("no-model", "provider/model"),
        ("", "provider/model"),
        ("nobody/x", "nobody"),
        ("ollama", "names no model"),
        ("azure", "AZURE_OPENAI_ENDPOINT"),
        ("custom/x", "TOWLINE_BASE_URL"),
        ("openai+grpc/x", "no dialect 'grpc'"),
        ("nobody+chat/x", "nobody"),
    ],
)
def test_a_name_that_leads_nowhere_is_said(name: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        connect(name, {})
    assert words in error.value.message


def test_a_model_may_have_slashes_in_its_name() -> None:
    provider = connect("openrouter/anthropic/claude-opus-5.5", {})
    assert provider.model.id == "anthropic/claude-opus-5.5"


@pytest.mark.rules("A2.85")
def test_nothing_is_found_in_an_empty_environment_and_empty_keys_do_not_count() -> None:
    assert discover({}) == ()
    assert discover({"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": "https://x.test"}) == ()
    assert discover({"OPENAI_API_KEYS": " , "}) == ()
    both = discover({"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b"})
    assert [found.provider for found in both] == ["anthropic", "openai"]
    (several,) = discover({"OPENAI_API_KEYS": "a,b"})
    assert several.why == "OPENAI_API_KEYS is set"
    (kept,) = discover({}, {"groq": ["k"], "xai": [], "nobody": ["k"]})
    assert (kept.provider, kept.why) == ("groq", "A key is kept for it")


@pytest.mark.rules("A2.86")
def test_a_token_that_is_there_for_other_things_takes_no_model() -> None:
    (found,) = discover({"HF_TOKEN": "hf_x"})
    assert (found.provider, found.model) == ("huggingface", None)
    assert discover({"GITHUB_TOKEN": "ghp_x", "GOOGLE_CLOUD_PROJECT": "p"}) == ()


@pytest.mark.rules("A2.91")
def test_the_facts_of_the_embedded_model() -> None:
    facts = LOCAL_MODEL_FACTS
    assert (facts.idle_s, facts.concurrency, facts.window) == (900.0, 1, 8192)
    assert facts.one_call_per_step
    assert (facts.named_choice, facts.none_without_tools) == (False, True)
    assert (facts.price_input, facts.price_output, facts.fast) == (0.0, 0.0, False)


@pytest.mark.rules("A2.79")
async def test_a_ca_file_that_is_passed_goes_before_that_of_the_environment() -> None:
    env = {"TOWLINE_CA_FILE": "/theirs.pem"}
    for given, used in (("/mine.pem", "/mine.pem"), (None, "/theirs.pem")):
        provider = connect(
            "openai/m", env, base_url="https://llm.example", api_key="k", ca_file=given
        )
        result = await provider.step(ASK, lambda _: None)
        assert isinstance(result, StepFailed)
        assert used in result.error.message, "it cannot be read"


async def test_the_embedded_model_is_asked_at_its_own_address() -> None:
    transport = ScriptedTransport(HELLO)
    provider = connect_local("http://127.0.0.1:5999", "k", transport=transport)
    await provider.step(ASK, lambda _: None)
    assert transport.calls[0].url == "http://127.0.0.1:5999/v1/chat/completions"
    assert transport.calls[0].idle_s == 900.0
    assert provider.model is LOCAL_MODEL_FACTS

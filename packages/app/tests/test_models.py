"""Which model answers."""

import json
from pathlib import Path

import pytest

from towline.local_provider import LOCAL_MODEL
from towline.models import Models, choose_model, find_model, is_known, read_stored_keys
from towline.picks import Picks
from towline.providers.reach import Reach, open_reach
from towline.secrets import keep_key, open_wallet
from towline_agent import Found, HttpAnswer, HttpCall, TransportFailed, discover
from towline_agent.providers.keys import KeyRing
from towline_agent.testing import ScriptedTransport


def models(*names: str) -> bytes:
    """A list of models."""
    rows = [{"id": name, "object": "model"} for name in names]
    return json.dumps({"object": "list", "data": rows}).encode()


class Web(ScriptedTransport):
    """Answers by a part of the address; all else is refused."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        super().__init__()
        self._answers = answers

    async def json(self, call: HttpCall) -> HttpAnswer:
        """The answer of that address."""
        self.calls.append(call)
        for part, body in self._answers.items():
            if part in call.url:
                return HttpAnswer(status=200, body=body)
        raise TransportFailed("refused")


@pytest.mark.rules("A2.85", "A2.90")
@pytest.mark.parametrize(
    "key",
    [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
        "GROQ_API_KEY",
        "MISTRAL_API_KEY",
        "DEEPSEEK_API_KEY",
        "XAI_API_KEY",
        "TOGETHER_API_KEY",
        "MOONSHOT_API_KEY",
        "ZAI_API_KEY",
        "DASHSCOPE_API_KEY",
        "OPENAI_API_KEYS",
    ],
)
async def test_a_key_from_the_environment_gives_a_model_that_can_be_asked(key: str) -> None:
    environ = {key: "sk-not-a-key"}
    choice = choose_model(None, environ)
    found = discover(environ)[0]
    assert choice.model == f"{found.provider}/{found.model}"
    assert key in choice.why
    assert not choice.local
    connection = await Models(choice, reach=Reach(environ)).connect(choice.model)
    assert connection.provider.model.name == choice.model
    await connection.provider.aclose()


@pytest.mark.rules("A2.86")
async def test_without_a_key_or_a_server_the_local_model_is_taken_and_says_why() -> None:
    for choice in (choose_model(None, {}), await find_model(None, {}, transport=Web({}))):
        assert choice.model == LOCAL_MODEL
        assert choice.local
        assert "No provider key" in choice.why


@pytest.mark.rules("A2.86", "A2.90")
async def test_without_a_key_a_model_server_on_this_machine_goes_before_our_own_model() -> None:
    web = Web({"127.0.0.1:11434": models("qwen3")})
    choice = await find_model(None, {}, transport=web)
    assert (choice.model, choice.local) == ("ollama/qwen3", False)
    assert "Ollama answers at http://127.0.0.1:11434" in choice.why
    with_key = await find_model(None, {"OPENAI_API_KEY": "k"}, transport=web)
    assert with_key.model.startswith("openai/")


async def test_what_a_person_names_goes_before_any_key_and_asks_nobody() -> None:
    web = Web({})
    environ = {"ANTHROPIC_API_KEY": "sk-not-a-key"}
    assert (await find_model("openai/gpt-5", environ, transport=web)).model == "openai/gpt-5"
    choice = await find_model("own.gguf", {}, transport=web)
    assert choice.local
    assert choice.file == Path("own.gguf")
    assert web.calls == []


@pytest.mark.rules("A2.87", "A2.90")
async def test_the_last_pick_of_a_provider_goes_before_its_usual_model(tmp_path: Path) -> None:
    picks = Picks(tmp_path)
    picks.remember("gemini/gemini-2.5-pro")
    picks.remember("ollama/llama4")
    environ = {"GEMINI_API_KEY": "k"}
    web = Web({"11434": models("qwen3")})
    choice = await find_model(None, environ, picks=picks, transport=web)
    assert choice.model == "gemini/gemini-2.5-pro"
    assert "your last pick" in choice.why
    assert "GEMINI_API_KEY is set" in choice.why
    assert web.calls == []
    assert (await find_model(None, {}, picks=picks, transport=web)).model == "ollama/llama4"
    other = await find_model(None, {"GROQ_API_KEY": "k"}, picks=picks, transport=web)
    assert other.model == "groq/openai/gpt-oss-120b"


@pytest.mark.rules("A2.88", "A2.90")
async def test_gemini_is_asked_for_its_newest_plain_flash(tmp_path: Path) -> None:
    body = b'{"models": [{"name": "models/gemini-9.1-flash"}, {"name": "models/gemini-9.9-pro"}]}'
    environ = {"GEMINI_API_KEY": "k"}
    choice = await find_model(None, environ, transport=Web({"googleapis.com": body}))
    assert choice.model == "gemini/gemini-9.1-flash"
    assert "newest" in choice.why
    silent = await find_model(None, environ, transport=Web({}))
    assert silent.model == "gemini/gemini-3.8-flash"
    picks = Picks(tmp_path)
    picks.remember("gemini/gemini-3.8-flash")
    picked = await find_model(None, environ, picks=picks, transport=Web({"googleapis.com": body}))
    assert picked.model == "gemini/gemini-3.8-flash"


@pytest.mark.rules("A2.85", "A3.29")
async def test_kept_keys_are_found_behind_those_of_the_environment(
    headless_environ: dict[str, str],
) -> None:
    assert read_stored_keys(headless_environ) == {}
    environ = {**headless_environ, "TOWLINE_HOME": f"{headless_environ['TOWLINE_HOME']}-2"}
    keep_key(open_wallet(environ), "groq", "gsk-kept")
    stored = read_stored_keys(environ)
    choice = await find_model(None, environ, stored=stored, transport=Web({}))
    assert choice.model == "groq/openai/gpt-oss-120b"
    assert "key is kept" in choice.why
    reach = open_reach(environ)
    assert reach.stored == stored
    connection = await Models(choice, reach=reach).connect(choice.model)
    assert "groq/" in repr(connection.provider)
    both = Models(choice, reach=open_reach({**environ, "GROQ_API_KEY": "gsk-other"}))
    assert isinstance((await both.connect(choice.model)).provider, KeyRing)


@pytest.mark.rules("A2.86", "A2.87")
async def test_an_address_of_ones_own_is_asked_for_its_models_and_goes_first(
    tmp_path: Path,
) -> None:
    environ = {"TOWLINE_BASE_URL": "https://mine.test", "OPENAI_API_KEY": "k"}
    web = Web({"mine.test": models("text-embedding-3-small", "our-model")})
    choice = await find_model(None, environ, transport=web)
    assert choice.model == "custom/our-model"
    assert choice.why == "TOWLINE_BASE_URL is set."
    silent = await find_model(None, environ, transport=Web({}))
    assert silent.model.startswith("openai/")
    picks = Picks(tmp_path)
    picks.remember("custom/other")
    assert (await find_model(None, environ, picks=picks, transport=web)).model == "custom/other"


def test_a_local_server_without_a_model_is_passed_over() -> None:
    local = (Found(provider="ollama", model=None, why="It answers"),)
    assert choose_model(None, {}, local=local).local


def test_a_provider_is_known_by_its_name_alone() -> None:
    assert is_known("anthropic/any-model")
    assert is_known("openai+openai_chat/any/model")
    assert is_known(LOCAL_MODEL)
    assert not is_known("nobody/model")
    assert not is_known("local/another")

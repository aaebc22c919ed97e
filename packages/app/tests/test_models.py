"""Which model answers."""

import pytest

from towline.local_provider import LOCAL_MODEL
from towline.models import Models, choose_model
from towline_agent import discover


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
    ],
)
async def test_a_key_from_the_environment_gives_a_model_that_can_be_asked(key: str) -> None:
    environ = {key: "sk-not-a-key"}
    choice = choose_model(None, environ)
    found = discover(environ)[0]
    assert choice.model == f"{found.provider}/{found.model}"
    assert key in choice.why
    assert not choice.local
    connection = await Models(choice, environ=environ).connect(choice.model)
    assert connection.provider.model.name == choice.model
    await connection.provider.aclose()


@pytest.mark.rules("A2.86")
def test_without_a_key_the_local_model_is_taken_and_says_why() -> None:
    choice = choose_model(None, {})
    assert choice.model == LOCAL_MODEL
    assert choice.local
    assert "No provider key" in choice.why


def test_what_a_person_names_goes_before_any_key() -> None:
    choice = choose_model("openai/gpt-5", {"ANTHROPIC_API_KEY": "sk-not-a-key"})
    assert choice.model == "openai/gpt-5"
    assert choose_model("own.gguf", {}).local

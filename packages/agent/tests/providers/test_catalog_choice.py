"""Which model is taken when none is named."""

import pytest

from towline_agent.providers.choice import choose_model, is_for_words
from towline_agent.providers.vendors import VENDORS
from towline_protocol import UsageError

LIVE = (
    "gemini-2.5-flash", "gemini-3.10-flash", "gemini-3.8-flash", "gemini-3.10-flash-lite",
    "gemini-3.11-flash-preview", "gemini-4-argon",
)  # fmt: skip


@pytest.mark.rules("A2.87")
def test_the_last_pick_goes_first_as_long_as_it_is_offered() -> None:
    choice = choose_model("gemini", LIVE, last="gemini-4-argon")
    assert (choice.model, choice.why) == ("gemini-4-argon", "your last pick")
    assert choose_model("gemini", last="anything").model == "anything"
    assert choose_model("gemini", LIVE, last="gone").model == "gemini-3.10-flash"


@pytest.mark.rules("A2.88", "A2.90")
def test_then_the_newest_plain_flash_of_the_live_ones() -> None:
    choice = choose_model("gemini", LIVE)
    assert choice.model == "gemini-3.10-flash"
    assert "newest" in choice.why
    assert choose_model("vertex", LIVE).model == "gemini-3.10-flash"
    assert choose_model("qwen", ("qwen3.7-max", "qwen3.10-max", "qwen4.0-max-preview")).model == (
        "qwen3.10-max"
    )


@pytest.mark.rules("A2.89", "A2.90")
def test_then_the_usual_one_of_the_vendor() -> None:
    for provider in ("gemini", "openai", "anthropic"):
        choice = choose_model(provider)
        assert choice.model == VENDORS[provider].default_model
        assert choice.why == f"the usual one of {VENDORS[provider].title}"
    assert choose_model("openai", ("gpt-9", "gpt-6.1-sol")).model == "gpt-6.1-sol"


def test_a_server_of_ones_own_has_no_usual_one_so_its_first_is_taken() -> None:
    assert choose_model("ollama", ("nomic-embed-text", "qwen3")).model == "qwen3"
    assert choose_model("custom", ("whisper-1", "our-model")).model == "our-model"


@pytest.mark.parametrize(
    ("provider", "live"),
    [
        ("ollama", ()),
        ("ollama", ("nomic-embed-text",)),
        ("huggingface", ("some/model",)),  # the first of thousands is no choice
        ("azure", ("gpt-5",)),  # names of models, not of what is deployed
        ("nobody", ("x",)),
    ],
)
def test_where_there_is_nothing_to_choose_a_person_has_to(
    provider: str, live: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError):
        choose_model(provider, live)


def test_models_that_do_not_answer_in_words_are_no_choice() -> None:
    others = (
        "text-embedding-3-large", "nomic-embed-text:latest", "tts-1-hd", "gpt-4o-mini-tts",
        "whisper-large-v3", "dall-e-3", "gpt-image-1", "imagen-4.0-generate-001", "veo-3.1-preview",
        "omni-moderation-latest", "gpt-4o-transcribe", "gpt-realtime-2", "mistral-ocr-latest",
        "bge-m3", "all-minilm:33m", "gemini-2.5-flash-preview-tts", "gemini-2.5-flash-image",
        "gemini-live-2.5-flash", "llama-guard-3-8b", "grok-imagine-image", "aqa",
        "black-forest-labs/FLUX.1-dev", "Qwen/Qwen3-Reranker-8B", "sora-2", "babbage-davinci-002",
        "gpt-audio-mini", "voxtral-mini-2602", "qwen3-asr-flash", "BAAI/bge-large-en-v1.5",
    )  # fmt: skip
    words = (
        "gpt-6.1-sol", "claude-opus-5-5", "gemini-3.8-flash", "qwen3:latest", "olive-7b",
        "openai/gpt-oss-120b", "mistral-large-4", "deepseek-v4-pro", "llava:13b", "o3",
        "accounts/fireworks/models/kimi-k3p1-pro", "qwen2.5vl:7b", "command-r", "sonar-pro",
        "liveliness-1b", "imaginary-model",
    )  # fmt: skip
    assert [model for model in others if is_for_words(model)] == []
    assert [model for model in words if not is_for_words(model)] == []

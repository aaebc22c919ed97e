"""What is known of single models."""

import json
import sys
from datetime import date
from pathlib import Path

import pytest

from towline_agent.providers.abilities import ability_of, plain_name
from towline_agent.providers.base import Model
from towline_agent.providers.cost import answer_cost, cost
from towline_agent.providers.facts import fact_file, known_facts, known_model
from towline_protocol import Usage

RECORDINGS = Path(__file__).parents[1] / "recordings"
OF_VENDORS = ("anthropic", "gemini", "openai", "vertex", "xai", "moonshot-kimi", "deepseek")
UNKNOWN = (
    "nonexistent", "no-such", "not-exist", "audio", "gemini-2.0-flash-001",
    "gemini-2.5-flash-image-preview",
)  # fmt: skip


@pytest.mark.rules("A2.82")
def test_prices_are_found_by_name_without_date_or_by_beginning() -> None:
    opus = known_facts("anthropic", "claude-opus-5-5")
    assert opus is not None
    assert known_facts("anthropic", "claude-opus-5-5-20260921") is opus
    assert known_facts("openai", "gpt-5-2025-08-07") == known_facts("openai", "gpt-5")
    assert known_facts("gemini", "gemini-3.8-flash-preview-09") is not None
    assert known_facts("openai", "nobody-knows-it") is None
    assert known_facts("nobody", "gpt-5") is None


def test_a_beginning_ends_where_a_part_of_the_name_ends() -> None:
    assert known_facts("gemini", "gemini-2.5-pro-preview-06-05") is not None
    assert known_facts("gemini", "gemini-2.5-prophet") is None
    assert known_facts("deepseek", "deepseek-v4-pro.2") is None


@pytest.mark.rules("A2.82")
def test_the_prices_have_a_source_and_a_date_and_nothing_else_is_asked() -> None:
    file = fact_file()
    assert file.source.startswith("genai-prices ")
    assert date.fromisoformat(file.date) > date(2026, 1, 1)
    assert "genai_prices" not in sys.modules
    rows = [row for rows in file.vendors.values() for row in rows]
    assert all(row.names for row in rows)
    assert all((row.input is None) == (row.output is None) for row in rows)
    assert all(row.window is None or row.window > 0 for row in rows)
    assert sum(row.cache_read is not None for row in rows) > 200


@pytest.mark.rules("A2.81", "A2.82")
def test_a_row_holds_window_and_all_four_prices() -> None:
    row = known_facts("anthropic", "claude-sonnet-4-6")
    assert row is not None
    assert (row.window, row.input, row.output) == (1_000_000, 3.0, 15.0)
    assert (row.cache_read, row.cache_write) == (0.3, 3.75)
    assert row.dearer_from is None


@pytest.mark.rules("A2.82", "A4.49")
def test_what_one_number_does_not_say_is_marked_or_unknown() -> None:
    tiered = known_facts("gemini", "gemini-2.5-pro")
    assert tiered is not None
    assert (tiered.input, tiered.dearer_from) == (1.25, 200_000)
    by_request = known_facts("perplexity", "sonar")  # each request costs money besides
    assert by_request is not None
    assert (by_request.window, by_request.input, by_request.output) == (128_000, None, None)
    by_hour = known_facts("deepseek", "deepseek-v4-pro")  # half of it at night
    assert by_hour is not None
    assert by_hour.input == 1.32


@pytest.mark.rules("A2.81")
def test_every_recorded_model_of_the_large_vendors_has_a_window_or_an_ability() -> None:
    seen: set[tuple[str, str]] = set()
    for path in sorted(RECORDINGS.glob("*/*.json")):
        case = json.loads(path.read_bytes())
        model = case.get("model") or ""
        if not model or any(part in model for part in UNKNOWN):
            continue
        vendor = case["provider"].removeprefix("moonshot-")
        if case["provider"] in OF_VENDORS:
            seen.add((vendor, model))
            assert known_model(vendor, model).window is not None, model
    assert len(seen) > 30


@pytest.mark.rules("A2.81")
@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("openrouter", "anthropic/claude-brand-new:free"),
        ("custom", "anthropic/claude-opus-4.5"),
        ("custom", "us.anthropic.claude-opus-4-5-20251101-v1:0"),
        ("huggingface", "moonshotai/Kimi-K2.5:groq"),
        ("copilot", "gpt-5.4"),
        ("qwen", "qwen3-max"),
    ],
)
def test_a_window_is_the_models_own_wherever_it_runs_and_a_price_is_not(
    vendor: str, model: str
) -> None:
    known = known_model(vendor, model)
    assert known.prices is None or vendor == "copilot"
    assert known.window is not None or "brand-new" in model


def test_the_same_prices_hold_on_googles_and_microsofts_clouds() -> None:
    assert known_model("vertex", "gemini-3.8-flash") == known_model("gemini", "gemini-3.8-flash")
    azure = known_model("azure", "gpt-5-mini")
    assert azure.prices == known_facts("openai", "gpt-5-mini")
    assert known_model("azure", "our-own-deployment") == known_model("custom", "nobody-knows-it")


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("claude-4.5-opus-20251101", "claude-opus-4-5"),
        ("anthropic/claude-opus-4.5:free", "claude-opus-4-5"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("global.anthropic.claude-opus-5-5", "claude-opus-5-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("openai/gpt-4.1-mini-2025-04-14", "gpt-4-1-mini"),
        ("openai.gpt-oss-20b", "gpt-oss-20b"),
        ("accounts/fireworks/models/glm-5p3", "glm-5-3"),
        ("moonshotai/Kimi-K2-Instruct-0905:groq", "kimi-k2-instruct-0905"),
        ("gpt-4-1106-preview", "gpt-4-1106-preview"),
        ("deepseek-v3", "deepseek-v3"),
        ("", ""),
    ],
)
def test_one_model_has_one_plain_name(written: str, plain: str) -> None:
    assert plain_name(written) == plain


@pytest.mark.rules("A2.81", "A1.19")
@pytest.mark.parametrize(
    ("model", "thinking", "refuses", "cap"),
    [
        ("claude-3-5-sonnet-20241022", "none", (), 8192),
        ("claude-3-7-sonnet-latest", "budget", (), 64_000),
        ("claude-opus-4-1-20250805", "budget", (), 32_000),
        ("claude-sonnet-4-5", "budget", (), 64_000),
        ("claude-opus-4-6", "adaptive", (), 128_000),
        ("claude-opus-4-7", "adaptive", ("temperature", "top_p"), 128_000),
        ("claude-sonnet-5-5", "adaptive", ("temperature", "top_p"), 128_000),
        ("claude-opus-9", "adaptive", ("temperature", "top_p"), 128_000),
        ("gpt-4o", "none", (), 16_384),
        ("gpt-4.1", "none", (), 32_768),
        ("gpt-5-chat-latest", "none", (), 16_384),
        ("gpt-5.6-sol", "effort", ("temperature", "top_p", "stop"), 128_000),
        ("o3-mini", "effort", ("temperature", "top_p", "stop"), 100_000),
        ("gemini-2.0-flash", "none", (), 8192),
        ("gemini-2.5-pro", "budget", (), 65_536),
        ("gemini-3.8-flash", "effort", (), 65_536),
        ("gemini-flash-latest", "effort", (), 65_536),
        ("grok-4-1-fast-non-reasoning", "none", (), None),
        ("grok-4.7", "effort", ("stop",), None),
        ("llama-3.3-70b-versatile", "none", (), None),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "none", (), None),
        ("deepseek-r1-distill-llama-70b", "", (), None),
        ("moonshotai/kimi-k2-instruct-0905", "none", (), None),
        ("kimi-k2-thinking", "", (), None),
        ("nobody-knows-it", "", (), None),
    ],
)
def test_abilities_go_by_family(
    model: str, thinking: str, refuses: tuple[str, ...], cap: int | None
) -> None:
    ability = ability_of(model)
    assert (ability.thinking, ability.refuses, ability.output_cap) == (thinking, refuses, cap)


@pytest.mark.rules("A2.94")
def test_only_cheap_and_quick_models_make_titles() -> None:
    fast = (
        "claude-haiku-5-5", "gpt-5-mini", "gpt-6-luna", "gemini-3.8-flash", "gpt-4o-mini",
        "deepseek-v4-flash", "mistral-small-latest", "glm-5.3-flash",
    )  # fmt: skip
    slow = ("claude-opus-5-5", "gpt-6.1-sol", "gemini-2.5-pro", "grok-4.7", "o3", "anything")
    assert [model for model in fast if not ability_of(model).fast] == []
    assert [model for model in slow if ability_of(model).fast] == []


def test_who_sees_images_is_known_for_some() -> None:
    assert ability_of("gpt-5").images
    assert ability_of("gpt-3.5-turbo").images is False
    assert ability_of("nobody-knows-it").images is None


PRICED = Model(
    provider="p", id="m", price_input=2.0, price_output=10.0,
    price_cache_read=0.2, price_cache_write=2.5,
)  # fmt: skip


@pytest.mark.rules("A4.49")
def test_each_kind_of_token_has_its_price() -> None:
    million = 1_000_000
    assert cost(PRICED, Usage(input=million)) == 2.0
    assert cost(PRICED, Usage(output=million, reasoning=million)) == 10.0
    assert cost(PRICED, Usage(cache_read=million)) == pytest.approx(0.2)
    assert cost(PRICED, Usage(cache_write=million)) == 2.5
    mixed = Usage(input=1000, output=100, cache_read=10_000, cache_write=400)
    assert cost(PRICED, mixed) == pytest.approx(0.006)


@pytest.mark.rules("A4.49")
def test_cached_tokens_cost_what_input_costs_where_nothing_else_is_known() -> None:
    plain = Model(provider="p", id="m", price_input=2.0, price_output=10.0)
    assert cost(plain, Usage(cache_read=500_000, cache_write=500_000)) == 2.0


@pytest.mark.rules("A4.49")
def test_an_unknown_cost_is_none_and_a_free_model_costs_nothing() -> None:
    nobody = Model(provider="p", id="m")
    assert cost(nobody, Usage(input=1)) is None
    assert cost(nobody, Usage()) == 0.0
    half = Model(provider="p", id="m", price_input=1.0)
    assert cost(half, Usage(output=1)) is None
    free = Model(provider="p", id="m", price_input=0.0, price_output=0.0)
    assert cost(free, Usage(input=9, output=9, cache_read=9)) == 0.0


@pytest.mark.rules("A4.49")
def test_an_answer_that_nobody_counted_is_free_only_where_the_model_is() -> None:
    assert answer_cost(PRICED, Usage()) is None
    assert answer_cost(Model(provider="p", id="m"), Usage()) is None
    assert answer_cost(Model(provider="p", id="m", price_input=0.0), Usage()) is None
    free = Model(provider="p", id="m", price_input=0.0, price_output=0.0)
    assert answer_cost(free, Usage()) == 0.0

"""How much a model is asked to think, by its generation (A2.52 to A2.55)."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import Model, Request
from towline_agent.providers.gemini.encode import encode_request
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import Message, Text

_Json = dict[str, Any]
HI = (Message("user", (Text(text="Hi"),)),)
FLASH, PRO = "gemini-3.8-flash", "gemini-3.1-pro-preview"
OLD_FLASH, OLD_PRO = "gemini-2.5-flash", "gemini-2.5-pro"


def config(name: str, facts: Model | None = None, **fields: Any) -> tuple[_Json, tuple[str, ...]]:
    """`generationConfig`, and the notices."""
    request = Request(model=name, messages=HI, **fields)
    prompt = encode_request(request, facts or Model(provider="gemini", id=name), GeminiFlags())
    sent: _Json = json.loads(prompt.body())
    return sent.get("generationConfig", {}), prompt.notices


def thinking(name: str, facts: Model | None = None, **fields: Any) -> _Json:
    found = config(name, facts, **fields)[0].get("thinkingConfig", {})
    assert found.pop("includeThoughts", True) is True
    return found


@pytest.mark.rules("A2.52", "A1.15")
@pytest.mark.parametrize(
    ("effort", "flash", "pro"),
    [
        ("none", "minimal", "low"),
        ("minimal", "minimal", "low"),
        ("low", "low", "low"),
        ("medium", "medium", "medium"),
        ("high", "high", "high"),
        ("xhigh", "high", "high"),
        ("max", "high", "high"),
    ],
)
def test_generation_3_thinks_by_level_alone(effort: str, flash: str, pro: str) -> None:
    assert thinking(FLASH, effort=effort) == {"thinkingLevel": flash}
    assert thinking(PRO, effort=effort) == {"thinkingLevel": pro}


@pytest.mark.rules("A2.53", "A2.54", "A1.15")
@pytest.mark.parametrize(
    ("effort", "flash", "pro"),
    [
        ("none", 0, 128),
        ("minimal", 512, 512),
        ("low", 2048, 2048),
        ("medium", 8192, 8192),
        ("high", 16_384, 16_384),
        ("xhigh", 16_384, 16_384),
        ("max", 24_576, 24_576),
    ],
)
def test_generation_2_thinks_by_budget_alone(effort: str, flash: int, pro: int) -> None:
    assert thinking(OLD_FLASH, effort=effort) == {"thinkingBudget": flash}
    assert thinking(OLD_PRO, effort=effort) == {"thinkingBudget": pro}


@pytest.mark.rules("A2.54", "A2.53")
def test_an_explicit_budget_wins_down_to_the_floor() -> None:
    assert thinking(OLD_FLASH, effort="high", thinking_budget=1000) == {"thinkingBudget": 1000}
    assert thinking(OLD_FLASH, thinking_budget=0) == {"thinkingBudget": 0}
    assert thinking(OLD_PRO, thinking_budget=5) == {"thinkingBudget": 128}
    assert thinking(OLD_PRO, thinking_budget=-1) == {"thinkingBudget": -1}


@pytest.mark.rules("A2.52", "A1.19")
def test_generation_3_is_sent_no_budget_and_says_so() -> None:
    assert thinking(FLASH, thinking_budget=1000, effort="low") == {"thinkingLevel": "low"}
    assert len(config(FLASH, thinking_budget=1000)[1]) == 1


def test_thoughts_are_asked_for_where_there_are_any() -> None:
    asked = {"thinkingConfig": {"includeThoughts": True}}
    assert config(FLASH)[0] == asked
    assert config(OLD_PRO)[0] == asked
    assert config(OLD_FLASH, effort="none")[0] == {"thinkingConfig": {"thinkingBudget": 0}}
    for name in ("gemini-2.0-flash", "gemini-1.5-pro", "gemini-2.5-flash-image", "gemma-3", "m"):
        assert config(name) == ({}, ())


@pytest.mark.rules("A1.19", "A2.84")
def test_an_effort_that_means_nothing_here_is_left_out_with_a_notice() -> None:
    for name, effort in (("m", "high"), ("gemini-1.5-pro", "low"), (FLASH, "enormous")):
        sent, notices = config(name, effort=effort)
        assert "thinkingLevel" not in json.dumps(sent)
        assert len(notices) == 1


def test_what_is_known_of_a_model_goes_before_its_name() -> None:
    facts = Model(provider="custom", id="house-model", thinking="effort")
    assert thinking("house-model", facts, effort="low") == {"thinkingLevel": "low"}
    dull = Model(provider="gemini", id=FLASH, thinking="none")
    assert config(FLASH, dull, effort="low")[0] == {}
    assert thinking("gemini-pro-latest", effort="none") == {"thinkingLevel": "low"}


@pytest.mark.rules("A2.55", "A1.18")
@pytest.mark.parametrize(
    ("name", "effort", "limit"),
    [
        (FLASH, None, 1000 + 16_384),
        (FLASH, "none", 1000 + 1024),
        (FLASH, "low", 1000 + 4096),
        (FLASH, "medium", 1000 + 12_288),
        (FLASH, "max", 1000 + 24_576),
        (PRO, "minimal", 1000 + 4096),
        (OLD_FLASH, None, 1000 + 16_384),
        (OLD_FLASH, "none", 1000),
        (OLD_FLASH, "minimal", 1000 + 1024),
        (OLD_PRO, "none", 1000 + 1024),
        (OLD_PRO, "high", 1000 + 24_576),
        ("gemini-1.5-pro", None, 1000),
        ("m", "high", 1000),
    ],
)
def test_the_bound_of_an_answer_leaves_room_for_thoughts(
    name: str, effort: str | None, limit: int
) -> None:
    assert config(name, max_tokens=1000, effort=effort)[0]["maxOutputTokens"] == limit
    assert "maxOutputTokens" not in config(name, effort=effort)[0]


@pytest.mark.rules("A2.55")
def test_the_bound_of_an_answer_is_what_the_model_takes_at_most() -> None:
    assert config(FLASH, max_tokens=60_000)[0]["maxOutputTokens"] == 65_536
    small = Model(provider="gemini", id=FLASH, output_cap=8192)
    assert config(FLASH, small, max_tokens=4000)[0]["maxOutputTokens"] == 8192
    wide = config(OLD_PRO, max_tokens=1000, thinking_budget=32_000)[0]
    assert wide["maxOutputTokens"] == 33_000

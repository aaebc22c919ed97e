"""How much a request lets the model think."""

from typing import Any

import pytest

from towline_agent.providers.anthropic.flags import BUDGETS, AnthropicFlags, claude_quirks
from towline_agent.providers.anthropic.thinking import ThinkingPlan, plan_thinking
from towline_agent.providers.base import Model, Request, ToolSpec
from towline_protocol import CallId, Message, Text, Thinking, ToolCall, ToolResult

BUDGET = Model(provider="p", id="claude-haiku-4-5", thinking="budget", output_cap=64_000)
ADAPTIVE = Model(provider="p", id="claude-opus-4-8", thinking="adaptive")
HI = (Message("user", (Text(text="Hi"),)),)


def plan(model: Model, flags: AnthropicFlags | None = None, **fields: Any) -> ThinkingPlan:
    given: dict[str, Any] = {"model": model.id, "messages": HI, **fields}
    return plan_thinking(Request(**given), model, flags or AnthropicFlags())


@pytest.mark.rules("A1.15", "A1.18", "A1.21")
def test_nothing_asked_is_nothing_sent() -> None:
    for model in (BUDGET, ADAPTIVE, Model(provider="p", id="m")):
        assert plan(model) == ThinkingPlan(max_tokens=8192)
        assert not plan(model).on


@pytest.mark.rules("A2.35")
@pytest.mark.parametrize(
    ("effort", "sent"),
    [
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "xhigh"),
        ("max", "max"),
        ("of_tomorrow", "of_tomorrow"),
    ],
)
def test_an_adaptive_model_gets_an_effort(effort: str, sent: str) -> None:
    assert plan(ADAPTIVE, effort=effort) == ThinkingPlan(
        max_tokens=8192, thinking={"type": "adaptive"}, effort=sent
    )
    assert not plan(ADAPTIVE, effort=effort).interleaved


@pytest.mark.rules("A2.35")
def test_an_effort_that_a_model_lacks_becomes_the_next_weaker_one() -> None:
    for id_, effort, sent in (
        ("claude-opus-4-6", "xhigh", "high"),
        ("claude-opus-4-6", "max", "max"),
        ("anthropic/claude-sonnet-4.6", "max", "high"),
        ("us.anthropic.claude-sonnet-4-6-v1:0", "xhigh", "high"),
    ):
        model = Model(provider="p", id=id_, thinking="adaptive")
        assert plan(model, effort=effort).effort == sent


@pytest.mark.rules("A2.35")
def test_a_model_that_goes_by_effort_alone_gets_no_thinking_field() -> None:
    model = Model(provider="p", id="m", thinking="effort")
    assert plan(model, effort="high") == ThinkingPlan(max_tokens=8192, effort="high")


@pytest.mark.rules("A2.35", "A2.36")
@pytest.mark.parametrize("effort", list(BUDGETS))
def test_a_model_with_a_budget_gets_a_number_and_room_for_its_answer(effort: str) -> None:
    for model in (BUDGET, Model(provider="p", id="unknown")):
        found = plan(model, effort=effort)
        assert found.thinking == {"type": "enabled", "budget_tokens": BUDGETS[effort]}
        assert found.max_tokens == 8192 + BUDGETS[effort]
        assert found.effort is None
        assert found.interleaved


@pytest.mark.rules("A2.35")
@pytest.mark.parametrize(
    ("asked", "sent", "limit", "noted"),
    [
        ({"thinking_budget": 4000, "max_tokens": 4096}, 4000, 4096, False),
        ({"thinking_budget": 4000, "effort": "max", "max_tokens": 8000}, 4000, 8000, False),
        ({"thinking_budget": 4000, "max_tokens": 4000}, 3000, 4000, True),
        ({"thinking_budget": 100}, 1024, 9216, False),
        ({"effort": "high", "max_tokens": 8192}, 6144, 8192, False),
        ({"effort": "max"}, 32_000, 40_192, False),
        ({"thinking_budget": 90_000}, 48_000, 64_000, True),
        ({"effort": "low", "max_tokens": 1200}, None, 1200, True),
        ({"thinking_budget": 5000, "max_tokens": 90_000}, 5000, 64_000, True),
    ],
)
def test_the_budget_stays_below_the_token_cap(
    asked: dict[str, Any], sent: int | None, limit: int, *, noted: bool
) -> None:
    found = plan(BUDGET, **asked)
    wanted = None if sent is None else {"type": "enabled", "budget_tokens": sent}
    assert (found.thinking, found.max_tokens, bool(found.notices)) == (wanted, limit, noted)


@pytest.mark.rules("A1.15", "A2.35")
def test_thinking_is_switched_off_where_that_works() -> None:
    off = {"type": "disabled"}
    newer = Model(provider="p", id="claude-haiku-5-5", thinking="adaptive")
    ways: list[dict[str, Any]] = [{"effort": "none"}, {"thinking_budget": 0}]
    for model in (BUDGET, ADAPTIVE, newer):
        for way in ways:
            found = plan(model, **way)
            assert (found.thinking, found.effort, found.notices, found.on) == (off, None, (), False)
    never = Model(provider="p", id="m", thinking="none")
    assert plan(never, effort="none") == ThinkingPlan(max_tokens=8192)
    always = Model(provider="p", id="claude-opus-5-5", thinking="adaptive")
    found = plan(always, effort="none")
    assert (found.thinking, found.effort) == ({"type": "adaptive"}, "low")
    assert len(found.notices) == 1


@pytest.mark.rules("A1.19")
def test_what_a_model_cannot_do_is_left_out_and_said() -> None:
    never = Model(provider="p", id="m", thinking="none")
    cases: list[tuple[Model, dict[str, Any]]] = [
        (never, {"effort": "high"}),
        (Model(provider="p", id="m", refuses=("effort",)), {"effort": "high"}),
        (Model(provider="p", id="m", refuses=("thinking_budget",)), {"thinking_budget": 2000}),
    ]
    for model, asked in cases:
        found = plan(model, **asked)
        assert found.thinking is None
        assert len(found.notices) == 1
    found = plan(ADAPTIVE, thinking_budget=2000)
    assert found.thinking == {"type": "adaptive"}
    assert len(found.notices) == 1
    both = plan(ADAPTIVE, thinking_budget=2000, effort="none")
    assert (both.thinking, both.effort) == ({"type": "adaptive"}, None)


@pytest.mark.rules("A1.19", "A2.35")
def test_a_budget_does_not_go_with_a_forced_call() -> None:
    tools = (ToolSpec(name="f", description="", parameters={}),)
    for choice, on in (("auto", True), ("none", True), ("required", False), ("f", False)):
        found = plan(BUDGET, effort="low", tools=tools, tool_choice=choice)
        assert (found.on, bool(found.notices)) == (on, not on)
        assert plan(ADAPTIVE, effort="low", tools=tools, tool_choice=choice).on


@pytest.mark.rules("A2.35", "A2.32", "R31")
def test_a_loop_that_began_without_thinking_goes_on_without() -> None:
    call = ToolCall(id=CallId("a"), name="f", arguments="{}")
    answered = Message("tool", (ToolResult(call=CallId("a"), content=()),))
    thought = Thinking(text="Hm", signature="s")

    def on(*messages: Message, flags: AnthropicFlags | None = None) -> bool:
        return plan(BUDGET, flags, effort="low", messages=(*HI, *messages)).on

    assert not on(Message("assistant", (call,)), answered)
    assert not on(Message("assistant", (Thinking(text="Hm"), call)), answered)
    assert not on(Message("assistant", (thought, call), model="other/m"), answered)
    assert on(Message("assistant", (thought, call), model=BUDGET.name), answered)
    assert on(
        Message("assistant", (thought, call)), answered, Message("assistant", (call,)), answered
    )
    assert not on(Message("assistant", (call,)), answered, *HI)  # one message with the results
    assert on(Message("assistant", (call,)), answered, Message("assistant", (Text(text="x"),)), *HI)
    # an answer that was only thought is not sent, so that nothing of it begins or ends a loop
    only_thought = Message("assistant", (thought, Text(text=" ")))
    assert not on(only_thought, Message("assistant", (call,)), answered)
    assert not on(Message("assistant", (call,)), answered, only_thought, *HI)
    assert on(only_thought, Message("assistant", (thought, call)), answered)
    assert on(Message("assistant", (call,)), answered, flags=AnthropicFlags(unsigned_thinking=True))
    assert plan(ADAPTIVE, effort="low", messages=(*HI, Message("assistant", (call,)), answered)).on


def test_claudes_are_known_by_their_names_however_they_are_written() -> None:
    for name in ("claude-fable-5-1", "anthropic/claude-mythos-5.2", "claude-fable-6"):
        assert not claude_quirks(name).forced_choice
        assert claude_quirks(name).always_thinks
    assert claude_quirks("claude-fable-5").forced_choice
    assert claude_quirks("claude-5-5-sonnet").always_thinks
    assert not claude_quirks("claude-opus-5").always_thinks
    for name in ("claude-3-5-haiku-latest", "claude-sonnet-4-20250514", "claude-opus-4-0"):
        assert not claude_quirks(name).schema_output
    for name in ("claude-opus-4-1", "claude-sonnet-4-5", "claude-haiku-4-5", "gpt-5", "qwen"):
        assert claude_quirks(name).schema_output

"""What a request is made of."""

from typing import Any

import pytest

from towline_agent.context.assemble import assemble, estimate_tokens, tool_specs
from towline_agent.plan import Plan
from towline_agent.providers.base import Model
from towline_agent.testing import ScriptedProvider, scripted_plan
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.function import tool
from towline_agent.tools.toolset import Toolset
from towline_protocol import (
    CallId,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    block_text,
)

HELLO = (Message("user", (Text(text="Hello"),)),)


@tool(effect="read")
async def look(at: str, how: str = "well") -> str:
    """Look at something.

    Args:
        at: What.
        how: In which way.
    """
    return at + how


@tool
async def write(at: str) -> str:
    """Write."""
    return at


def plan(**facts: Any) -> Plan:
    model = Model(provider="s", id="m", **facts)
    return scripted_plan(ScriptedProvider(model=model), write, look)


@pytest.mark.rules("A4.3", "A1.18")
def test_a_request_holds_prefix_tools_and_history_and_nothing_that_is_unset() -> None:
    request = assemble(plan(), HELLO)
    assert request.model == "m"
    assert request.system == "You are an agent."
    assert [spec.name for spec in request.tools] == ["write", "look"]
    assert request.messages == HELLO
    assert request.tool_choice == "auto"
    unset = (request.temperature, request.top_p, request.effort, request.output, request.stop)
    assert unset == (None, None, None, None, ())


@pytest.mark.rules("A4.5")
def test_the_same_conversation_makes_the_same_request() -> None:
    assert assemble(plan(), HELLO) == assemble(plan(), HELLO)


@pytest.mark.rules("A4.4")
def test_a_hand_over_asks_for_words_with_the_same_tools() -> None:
    request = assemble(plan(), HELLO, hand_over=True)
    assert request.tools == assemble(plan(), HELLO).tools
    assert request.tool_choice == "none"
    assert request.messages[:-1] == HELLO
    assert "what is left to do" in block_text(request.messages[-1].content)


def test_a_hand_over_sends_no_tools_where_a_model_would_call_them_all_the_same() -> None:
    request = assemble(plan(none_without_tools=True), HELLO, hand_over=True)
    assert (request.tools, request.tool_choice) == ((), "none")
    assert assemble(plan(none_without_tools=True), HELLO).tools != ()


def test_a_small_model_sees_only_what_a_tool_needs() -> None:
    tools = Toolset([look])
    (plain,) = tool_specs(tools, Model(provider="s", id="m", plain_tools=True))
    (whole,) = tool_specs(tools, Model(provider="s", id="m"))
    assert list(plain.parameters["properties"]) == ["at"]
    assert list(whole.parameters["properties"]) == ["at", "how"]
    assert whole.parameters is look.parameters
    assert whole.description == "Look at something."


def test_what_a_small_model_sees_holds_all_that_it_refers_to() -> None:
    (edit,) = (tool for tool in builtin_tools() if tool.name == "edit_file")
    (plain,) = tool_specs(Toolset([edit]), Model(provider="s", id="m", plain_tools=True))
    reference = plain.parameters["properties"]["edits"]["items"]["$ref"]
    assert reference.removeprefix("#/$defs/") in plain.parameters["$defs"]


def test_a_model_that_keeps_to_its_own_words_gets_no_prefix_of_ours() -> None:
    assert assemble(plan(bare_prompt=True), HELLO).system == ""


@pytest.mark.rules("A1.20")
def test_with_an_unknown_window_no_bound_is_sent() -> None:
    assert assemble(plan(), HELLO).max_tokens is None


@pytest.mark.rules("A1.20")
@pytest.mark.parametrize(
    ("facts", "bound"),
    [
        ({"window": 1_000_000}, 8192),
        ({"window": 1_000_000, "output_cap": 4096}, 4096),
        ({"window": 1_000_000, "output_cap": 60_000}, 8192),
        ({"window": 300}, 256),
    ],
)
def test_a_known_window_bounds_the_answer(facts: dict[str, int], bound: int) -> None:
    assert assemble(plan(**facts), HELLO).max_tokens == bound


@pytest.mark.rules("A1.20")
def test_the_bound_leaves_room_for_prefix_tools_and_history() -> None:
    long = (Message("user", (Text(text="x" * 4 * 4000),)),)
    empty = assemble(plan(window=8192), ()).max_tokens
    full = assemble(plan(window=8192), long).max_tokens
    assert empty is not None
    assert full is not None
    assert 8192 - 200 < empty < 8192 - 20
    assert empty - full == 4000


@pytest.mark.rules("A3.28")
@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (Text(text="x" * 40), 10),
        (Thinking(text="x" * 40), 10),
        (ToolCall(id=CallId("c"), name="n", arguments="x" * 40), 10),
        (ToolResult(call=CallId("c"), content=(Text(text="x" * 20), Text(text="x" * 20))), 10),
        (Image(media_type="image/png", data="A" * 9999), 1500),
        (ToolResult(call=CallId("c"), content=(Image(media_type="image/png"),)), 1500),
        (File(name="a.pdf", media_type="application/pdf"), 1500),
    ],
)
def test_tokens_are_estimated_by_characters_and_images(block: Any, tokens: int) -> None:
    assert estimate_tokens((Message("user", (block,)),)) == tokens

"""Testing an agent without a model: `python examples/test_your_agent.py`.

`ScriptedProvider` plays a script instead of asking anybody, so a test is fast and always the same.
"""

import asyncio

from towline_agent import Agent
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import ToolResult, block_text


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_the_model_is_told_the_sum() -> None:
    provider = ScriptedProvider(call("add", a=2, b=3), "It is five.")
    result = await Agent(provider, tools=[add]).run("What is 2 and 3?")
    (told,) = provider.requests[1].messages[-1].content
    assert isinstance(told, ToolResult)
    assert block_text(told.content) == "5"
    assert result.final_message == "It is five."


async def test_a_bad_call_is_told_and_the_run_goes_on() -> None:
    provider = ScriptedProvider(call("add", a="two"), "I can't add that.")
    result = await Agent(provider, tools=[add]).run("What is two and 3?")
    (told,) = provider.requests[1].messages[-1].content
    assert isinstance(told, ToolResult)
    assert told.is_error
    assert result.stop_reason == "end_turn"


asyncio.run(test_the_model_is_told_the_sum())
asyncio.run(test_a_bad_call_is_told_and_the_run_goes_on())
print("2 tests passed")

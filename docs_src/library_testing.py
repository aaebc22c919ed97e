from towline_agent import Agent, OpenAIChat
from towline_agent.testing import (
    FakeClock,
    Scripted,
    ScriptedProvider,
    ScriptedTransport,
    call,
    event_stream,
    say,
)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_the_model_is_told_the_sum() -> None:
    provider = ScriptedProvider(call("add", a=2, b=3), say("It is five."))
    result = await Agent(provider, tools=[add]).run("What is 2 and 3?")
    assert result.final_message == "It is five."
    assert provider.requests[1].messages[-1].role == "tool"


async def test_a_rate_limit_is_waited_out() -> None:
    busy = Scripted(status=429, headers={"retry-after": "7"})
    hello = event_stream({"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]})
    clock = FakeClock()
    provider = OpenAIChat(
        "any-model",
        base_url="https://llm.example",
        transport=ScriptedTransport(busy, hello),
        clock=clock,
    )
    result = await Agent(provider, clock=clock).run("Hello")
    assert result.final_message == "Hi."
    assert clock.sleeps == [7.0]

"""The blocks that an agent gives: a stream, and the agent itself."""

from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.testing import ScriptedProvider
from towline_protocol import UsageError


@pytest.mark.rules("A4.52")
async def test_a_stream_that_is_no_block_says_how_to_write_one() -> None:
    agent = Agent(ScriptedProvider("Hi."))
    loose: Any = agent.stream("Hi")
    with pytest.raises(UsageError, match="async with agent"):
        async for _ in loose:
            pass
    with pytest.raises(UsageError, match="async with agent"):
        await loose
    async with loose as events:  # nothing was begun by then
        assert [event async for event in events]
    assert events.result.final_message == "Hi."


@pytest.mark.rules("A4.53")
async def test_a_block_of_an_agent_gives_back_its_connections_and_keeps_its_failure() -> None:
    provider = ScriptedProvider("Hi.", "Again.")
    agent = Agent(provider)

    async def broken() -> None:
        async with agent as entered:
            assert entered is agent
            assert (await agent.run("Hi")).final_message == "Hi."
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken()
    assert provider.closed == 1
    assert (await agent.run("Hi")).final_message == "Again."

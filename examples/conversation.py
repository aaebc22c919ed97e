"""A conversation over several runs, one of them broken off: `python examples/conversation.py`."""

import asyncio
import os
import sys

from towline_agent import Agent
from towline_protocol import TextDelta, TowlineError


async def main() -> None:
    agent = Agent(os.environ.get("TOWLINE_MODEL", "openai"), instructions="Be brief.")
    first = await agent.run("My name is Ann.")
    print(first.final_message)

    async with agent.stream("Tell me a long story.", messages=first.messages) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                print(f"{event.text}…")
                break  # leaving the block stops the run

    last = await agent.run("That will do. What is my name?", messages=events.messages)
    print(last.final_message)
    await agent.aclose()


try:
    asyncio.run(main())
except TowlineError as error:
    sys.exit(error.message)  # one line, such as which key is missing

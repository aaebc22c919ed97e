import asyncio

from towline_agent import Agent
from towline_protocol import TextDelta


async def main() -> None:
    agent = Agent("openai")
    async with agent.stream("Count to a million.") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break  # leaving the block stops the run

    later = await agent.run("Where were you?", messages=events.messages)
    print(later.final_message)


asyncio.run(main())

import asyncio

from towline_agent import Agent


async def main() -> None:
    agent = Agent("anthropic/claude-opus-5-5", instructions="Answer in one sentence.")
    first = await agent.run("What is the capital of Portugal?")
    second = await agent.run("How many people live there?", messages=first.messages)
    print(second.final_message)
    await agent.aclose()


asyncio.run(main())

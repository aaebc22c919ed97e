"""Words as they come: `python examples/stream.py "Tell me a story."`."""

import asyncio
import os
import sys

from towline_agent import Agent
from towline_protocol import TextDelta, ToolProposed, TowlineError


def roll(sides: int = 6) -> int:
    """Roll a die."""
    return sides  # a die that one can rely on


async def main(prompt: str) -> None:
    agent = Agent(os.environ.get("TOWLINE_MODEL", "openai"), tools=[roll])
    async with agent.stream(prompt) as events:
        async for event in events:
            match event:
                case TextDelta():
                    print(event.text, end="", flush=True)
                case ToolProposed():
                    print(f"[{event.tool} {event.arguments}]")
                case _:
                    pass
    print()
    await agent.aclose()


try:
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "Roll a die and tell me about it."))
except TowlineError as error:
    sys.exit(error.message)  # one line, such as which key is missing

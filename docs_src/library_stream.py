import asyncio

from towline_agent import Agent
from towline_protocol import TextDelta, ToolProposed, Waiting


def roll(sides: int = 6) -> int:
    """Roll a die."""
    return sides  # a die that one can rely on


async def main() -> None:
    agent = Agent("openai", tools=[roll])
    async with agent.stream("Roll a die and tell me about it.") as events:
        async for event in events:
            match event:
                case TextDelta():
                    print(event.text, end="", flush=True)
                case ToolProposed():
                    print(f"[{event.tool} {event.arguments}]")
                case Waiting():
                    print(f"[{event.reason}, until {event.until}]")
                case _:
                    pass
        assert events.result is not None  # it is there after the last event
        print(f"\n{events.result.steps} steps")


asyncio.run(main())

"""Several keys and a second model, and what becomes of a request that is refused.

`OPENAI_API_KEYS=sk-first,sk-second python examples/fallback.py`. When one key is refused, the next
one is asked; when the model itself cannot serve, the next model.
"""

import asyncio
import os
import sys

from towline_agent import Agent
from towline_protocol import Fallback, Notice, TowlineError, Waiting


async def main() -> None:
    agent = Agent(
        os.environ.get("TOWLINE_MODEL", "openai"),
        fallbacks=[os.environ.get("TOWLINE_SECOND_MODEL", "openai/gpt-6.1-luna")],
    )
    async with agent.stream("Say hello.") as events:
        async for event in events:
            match event:
                case Notice():
                    print(event.message)
                case Waiting():
                    print(f"Waiting until {event.until} ({event.reason}).")
                case Fallback():
                    print(f"{event.to} takes over from {event.from_}: {event.fault.reason}.")
                case _:
                    pass
    if events.result is not None:
        print(events.result.final_message)
    await agent.aclose()


try:
    asyncio.run(main())
except TowlineError as error:
    sys.exit(error.message)  # one line, such as which key is missing

"""An agent that hands work to others: `python examples/sub_agent.py "Is tea healthy?"`."""

import os
import sys

from towline_agent import Agent, make_spawn_agent
from towline_protocol import Limits, TowlineError

MODEL = os.environ.get("TOWLINE_MODEL", "openai")

SPEAKERS = {
    "friend": "speaks for it",
    "foe": "speaks against it",
}


def main(question: str) -> None:
    agents = {
        name: Agent(MODEL, name=name, instructions=f"One who {what}, in one sentence.")
        for name, what in SPEAKERS.items()
    }

    async def speak(task: str, name: str | None) -> str:
        """Run the agent that was chosen; what it spends is counted here, not by the judge."""
        result = await agents[name or "friend"].run(task)
        print(f"{name}: {result.final_message}")
        return result.final_message

    judge = Agent(
        MODEL,
        instructions="Hear both sides, then judge in one sentence.",
        tools=[make_spawn_agent(speak, SPEAKERS)],
        limits=Limits(max_steps=6),
    )
    print(f"judge: {judge.run_sync(question).final_message}")


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "Is tea healthy?")
except TowlineError as error:
    sys.exit(error.message)  # one line, such as which key is missing

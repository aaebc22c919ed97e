"""An agent that asks before it does something: `python examples/ask_first.py`."""

import asyncio
import os
import sys

from towline_agent import Agent, tool
from towline_protocol import PermissionRequested, TowlineError

notes: list[str] = []


@tool(effect="write", title=lambda arguments: f"Write down: {arguments['text']}")
async def write_note(text: str) -> str:
    """Keep a note."""
    notes.append(text)
    return f"There are {len(notes)} notes now."


@tool(effect="read")
async def read_notes() -> list[str]:
    """Read all notes. Reads are never asked about."""
    return notes


async def answer(request: PermissionRequested) -> str:
    """Ask on the terminal. What is returned is the id of one of the request's options."""
    print(request.title)
    loop = asyncio.get_running_loop()
    said = await loop.run_in_executor(None, input, "Allow it? [y/N] ")
    return "allow_once" if said.strip().lower() == "y" else "deny"


async def main() -> None:
    agent = Agent(
        os.environ.get("TOWLINE_MODEL", "openai"),
        tools=[write_note, read_notes],
        mode="ask",
        answer=answer,
    )
    result = await agent.run("Note that the door code is 4747.")
    print(result.final_message)
    print(f"notes: {notes}")
    await agent.aclose()


try:
    asyncio.run(main())
except TowlineError as error:
    sys.exit(error.message)  # one line, such as which key is missing

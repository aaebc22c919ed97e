"""A chat in the terminal: `python examples/chat_client.py [SESSION]`; an empty line leaves.

Needs TOWLINE_TOKEN (see pair_client.py), and TOWLINE_URL if the server is elsewhere.
"""

import asyncio
import os
import sys

from towline_client import Client, PromptWatch, Session, follow_prompt
from towline_protocol import PromptAccepted, block_text

URL = os.environ.get("TOWLINE_URL", "http://127.0.0.1:4747")


async def show(session: Session, accepted: PromptAccepted) -> None:
    """Print the answer as it grows, through every cut of the line."""
    watch, shown = PromptWatch(prompt=accepted.prompt, turn=accepted.turn), ""
    async for view in session.views:
        watch, outcome = follow_prompt(watch, view)
        answers = [each for each in view.messages if each.role == "assistant"]
        entries = [each for each in (*answers, *view.open_messages) if each.turn == watch.turn]
        said = "\n".join(filter(None, (block_text(each.content) for each in entries)))
        print(said.removeprefix(shown), end="", flush=True)
        shown = said
        if outcome is not None:
            print("" if outcome.kind == "completed" else f"[{outcome.kind}: {outcome.text}]")
            return


async def main() -> None:
    async with Client(URL, os.environ["TOWLINE_TOKEN"]) as client:
        session = await client.open(sys.argv[1] if sys.argv[1:] else None)
        print("session", session.id)
        loop = asyncio.get_running_loop()
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            await show(session, await session.prompt(line))


asyncio.run(main())

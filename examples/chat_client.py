"""A chat in the terminal: `python examples/chat_client.py [SESSION]`; an empty line leaves.

Needs TOWLINE_TOKEN (see pair_client.py), and TOWLINE_URL if the server is elsewhere.
"""

import asyncio
import os
import sys

from towline_client import Client, PromptWatch, Session, TowlineError, follow_prompt
from towline_protocol import PromptAccepted, block_text

URL = os.environ.get("TOWLINE_URL", "http://127.0.0.1:4747")
TOKEN = os.environ.get("TOWLINE_TOKEN") or sys.exit("Set TOWLINE_TOKEN; see pair_client.py.")


async def show(session: Session, accepted: PromptAccepted) -> None:
    """Print the answer as it grows, through every cut of the line."""
    watch, shown = PromptWatch(prompt=accepted.prompt, turn=accepted.turn), ""
    async for view in session.views:
        watch, outcome = follow_prompt(watch, view)
        answers = [each for each in view.messages if each.role == "assistant"]
        entries = [each for each in (*answers, *view.open_messages) if each.turn == watch.turn]
        said = "\n".join(filter(None, (block_text(each.content) for each in entries)))
        if not (said.startswith(shown) or shown.startswith(said)):
            print()  # the server was killed, and the answer begins anew in other words
            shown = ""
        print(said[len(shown) :], end="", flush=True)
        shown = max(shown, said, key=len)
        if outcome is not None:
            print("" if outcome.kind == "completed" else f"[{outcome.kind}: {outcome.text}]")
            return


async def main() -> None:
    async with Client(URL, TOKEN) as client:
        session = await client.open(sys.argv[1] if sys.argv[1:] else None)
        print("session", session.id)
        loop = asyncio.get_running_loop()
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            await show(session, await session.prompt(line))


try:
    asyncio.run(main())
except TowlineError as error:
    sys.exit(error.message)  # one line, such as that the token is not known

"""A bot that follows three sessions at once: `python examples/three_sessions.py`.

The feed tells how each stands, and when one waits for a person; its events tell what it does. Needs
TOWLINE_TOKEN (see pair_client.py), and TOWLINE_URL if the server is elsewhere.
"""

import asyncio
import os
import sys
from contextlib import aclosing

from towline_client import Client, Rebuilt, Session, TowlineError
from towline_protocol import (
    CreateSession,
    Envelope,
    MessageEnded,
    SessionChanged,
    ToolProposed,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    block_text,
)

URL = os.environ.get("TOWLINE_URL", "http://127.0.0.1:4747")
TOKEN = os.environ.get("TOWLINE_TOKEN") or sys.exit("Set TOWLINE_TOKEN; see pair_client.py.")
TASKS = {"rivers": "Name a long river.", "lakes": "Name a deep lake.", "seas": "Name a small sea."}


async def follow(session: Session, name: str) -> None:
    """Tell what a session does, until its turn has ended."""
    async for event in session.events:
        match event:
            case Envelope(event=MessageEnded(content=content)):
                if words := block_text(content):
                    print(f"{name}: {words}")
            case Envelope(event=ToolProposed(title=title)):
                print(f"{name} wants: {title}")
            case Envelope(event=TurnCompleted() | TurnFailed() | TurnCancelled()):
                return
            case Rebuilt(view=view) if view.turn is None:
                return  # it ended while the line was cut for long
            case _:
                pass


async def watch(client: Client) -> None:
    """Say when a session waits for somebody. Ends when it is cancelled."""
    async with aclosing(client.feed()) as feed:
        async for frame in feed:
            if isinstance(frame, SessionChanged) and frame.session.pending:
                print(f"{frame.session.title} needs you: {URL}")


async def main() -> None:
    async with Client(URL, TOKEN) as client:
        await client.me()  # what is wrong with the token is said before anything is begun
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch(client))
            async with asyncio.TaskGroup() as three:
                for name, task in TASKS.items():
                    session = await client.open(new=CreateSession(title=name))
                    await session.prompt(task)
                    three.create_task(follow(session, name))
            watching.cancel()


try:
    asyncio.run(main())
except TowlineError as error:
    sys.exit(error.message)  # one line, such as that the token is not known

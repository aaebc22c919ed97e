"""A program that lends a tool of its own to an agent, and is asked before it runs.

`TOWLINE_URL=http://127.0.0.1:4747 TOWLINE_TOKEN=… python examples/client_tool.py`
"""

import asyncio
import os

from towline_client import CallContext, CallFailed, Client
from towline_protocol import PermissionRequested

client = Client(os.environ["TOWLINE_URL"], os.environ["TOWLINE_TOKEN"])

ROOMS = {"kitchen": 24.5, "cellar": 11.0}


@client.tool(effect="read", timeout_s=30)
async def measure(context: CallContext, room: str) -> dict[str, float]:
    """How warm a room of this house is.

    Args:
        room: Its English name.
    """
    context.progress(f"asking the sensor in the {room}")
    if room not in ROOMS:
        raise CallFailed(f"There is no sensor in the {room}; there are {', '.join(ROOMS)}.")
    return {"celsius": ROOMS[room]}


@client.on_permission
def decide(request: PermissionRequested) -> str:
    """Ask on the terminal. What is returned is the id of one of the request's options."""
    said = input(f"{request.title}: allow it? [y/N] ")
    return "allow_once" if said.strip().lower() == "y" else "deny"


async def main() -> None:
    async with client:
        session = await client.open()
        print(await session.ask("Is it warm in the kitchen?"))


asyncio.run(main())

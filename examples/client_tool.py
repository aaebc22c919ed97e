"""A client with a tool of its own: `python examples/client_tool.py "Buy two lemons."`.

The tool changes something, so the agent asks first, and this program asks whoever runs it.
Needs TOWLINE_TOKEN (see pair_client.py), and TOWLINE_URL if the server is elsewhere.
"""

import asyncio
import os
import sys

from towline_client import CallFailed, Client, TowlineError
from towline_protocol import PermissionRequested

URL = os.environ.get("TOWLINE_URL", "http://127.0.0.1:4747")
TOKEN = os.environ.get("TOWLINE_TOKEN") or sys.exit("Set TOWLINE_TOKEN; see pair_client.py.")
SHOPPING = {"milk": 1}

client = Client(URL, TOKEN)


@client.tool
async def add_to_list(what: str, count: int = 1) -> dict[str, int]:
    """Put something on the shopping list of this device.

    Args:
        what: One thing, such as `lemon`.
        count: How many, 1 to 20.
    """
    if not 1 <= count <= 20:
        raise CallFailed(f"{count} is not between 1 and 20; ask how many are meant.")
    SHOPPING[what] = SHOPPING.get(what, 0) + count
    return SHOPPING


@client.on_permission
def ask_user(request: PermissionRequested) -> str:
    """A plain function runs in a thread, so it may wait for somebody to type."""
    print(request.title)
    print(request.preview.text)
    return "allow_once" if input("Allow it? [y/N] ").strip().lower() == "y" else "deny"


async def main() -> None:
    async with client:
        session = await client.open()
        print(await session.ask(sys.argv[1] if sys.argv[1:] else "Buy two lemons."))
    print("On the list:", ", ".join(f"{count} {what}" for what, count in SHOPPING.items()))


try:
    asyncio.run(main())
except TowlineError as error:
    sys.exit(error.message)  # one line, such as that the token is not known

"""What a client of yours does on a bad network: `python examples/bad_network.py`.

A proxy of `towline_client.testing` stands in front of your server and does harm on purpose. Needs
TOWLINE_TOKEN (see pair_client.py), and TOWLINE_URL if the server is elsewhere.
"""

import asyncio
import os
import sys

from towline_client import Client, TowlineError
from towline_client.testing import ChaosProxy, Faults

URL = os.environ.get("TOWLINE_URL", "http://127.0.0.1:4747")
TOKEN = os.environ.get("TOWLINE_TOKEN") or sys.exit("Set TOWLINE_TOKEN; see pair_client.py.")


async def main() -> None:
    async with (
        ChaosProxy(URL, seed=4747) as proxy,
        Client(proxy.url, TOKEN) as client,
    ):
        session = await client.open()
        proxy.faults = Faults(cut=0.25, double=0.25, half_frame=0.2)
        for number in range(1, 6):
            proxy.cut()  # whatever is open now, on top of what the faults do
            print(await session.ask(f"Say {number}."))
        asked = [entry for entry in session.view.messages if entry.role == "user"]
        print(f"{len(asked)} prompts, each once, over {proxy.counts['exchange']} exchanges")


try:
    asyncio.run(main())
except TowlineError as error:
    sys.exit(error.message)  # one line, such as that the token is not known

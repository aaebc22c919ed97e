import asyncio

from towline_client import Client
from towline_protocol import Presentation


async def main() -> None:
    async with Client("http://127.0.0.1:4747", "a token") as client:
        whole = Presentation(text="final", thinking="off")
        session = await client.open(presentation=whole)
        print(await session.ask("What time is it?"))
        session.presentation = Presentation()  # all, from the next block on
        print(await session.ask("And now?"))


asyncio.run(main())

import asyncio

from towline_client import Client, Scrollback

URL = "http://127.0.0.1:4747"
SEEN = "~/.cache/my-client/seen.db"


async def main() -> None:
    async with Client(URL, "a token", scrollback=Scrollback(SEEN)) as client:
        session = await client.open()
        await session.ask("What time is it?")
    # the program ends here, and is started again without a network
    async with Client(URL, "a token", scrollback=Scrollback(SEEN)) as client:
        session = await client.open(session.id)
        print(session.connection.value.phase, len(session.view.messages))


asyncio.run(main())

import asyncio

from towline_client import Client


async def main() -> None:
    async with Client("http://127.0.0.1:4747", "a token") as client:
        session = await client.open()
        await session.prompt("What time is it?")
        async for view in session.views:
            if view.last_turn is not None:
                print(view.last_turn.outcome)
                break


asyncio.run(main())

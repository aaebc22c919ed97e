import asyncio

from towline_client import Client, Session

WORDS = {
    "connecting": "Connecting …",
    "retrying": "No connection. Trying again …",
    "recovering": "Catching up …",
    "auth_expired": "Signing in again …",
}


async def show_line(session: Session) -> None:
    async for connection in session.connection:
        if connection.phase == "failed":
            print("Given up:", connection.error)
        else:
            print(WORDS.get(connection.phase, f"({connection.phase})"))


async def main() -> None:
    async with Client("http://127.0.0.1:4747", "a token") as client:
        session = await client.open()
        watching = asyncio.create_task(show_line(session))
        print(await session.ask("What time is it?"))
        await session.close()  # the flows end
        await watching


asyncio.run(main())

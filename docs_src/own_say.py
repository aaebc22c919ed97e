import asyncio

from towline_client import Client, ClientError, Session


async def say(session: Session, words: str) -> None:
    try:
        await session.prompt(words, timeout_s=0.5)  # two minutes when left out
    except ClientError:
        for prompt in session.view.outgoing:
            print(prompt.state, "-", prompt.message)


async def main() -> None:
    async with Client("http://127.0.0.1:4747", "a token") as client:
        session = await client.open()
        await say(session, "What time is it?")
        for prompt in session.view.outgoing:
            if prompt.state == "unknown":  # somebody pressed "Send again"
                await session.send_again(prompt.key)
            else:  # somebody pressed "Discard"
                session.drop(prompt.key)


asyncio.run(main())

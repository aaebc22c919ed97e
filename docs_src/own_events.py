import asyncio

from towline_client import Client, Rebuilt
from towline_protocol import (
    TERMINAL_EVENTS,
    Envelope,
    MessageEnded,
    MessageStarted,
    Partial,
    TextDelta,
    block_text,
)


async def main() -> None:
    async with Client("http://127.0.0.1:4747", "a token") as client:
        session = await client.open()
        await session.prompt("What time is it?")
        shown = ""  # of the message that is being written
        async for event in session.events:
            match event:
                case Envelope(event=MessageStarted()):
                    shown = ""
                case Envelope(event=TextDelta(text=text)):
                    print(text, end="", flush=True)
                    shown += text
                case (
                    Partial(message=str(), content=content)
                    | Envelope(event=MessageEnded(content=content))
                ):  # all so far, or all: a line that was cut has brought less
                    said = block_text(content)
                    print(said.removeprefix(shown), end="", flush=True)
                    shown = said
                case Envelope(event=end) if isinstance(end, TERMINAL_EVENTS):
                    print(f"\n{type(end).__name__}")
                    break
                case Rebuilt(view=view):
                    print(f"\n[what came up to event {view.seq} is in the view]")
                case _:
                    pass


asyncio.run(main())

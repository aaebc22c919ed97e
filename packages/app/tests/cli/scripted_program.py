"""`towline chat --plain` on a scripted server, as a program of its own."""

import asyncio

from rich.console import Console

from towline.cli.chat import chat
from towline_client import Client
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn
from towline_protocol import Preview


async def _script(turn: ScriptedTurn, text: str) -> None:
    if text.startswith("hang"):
        await turn.say("Working")
        await asyncio.Event().wait()
    if text.startswith("run"):
        preview = Preview(kind="command", text="make test")
        call, _ = await turn.ask("run_program", "Run make test", preview=preview)
        turn.end_call(call, "ok")
    await turn.say("You said: ", text)


async def _main() -> int:
    async with (
        ScriptedServer(_script) as server,
        Client("", transport=ScriptedTransport(server)) as client,
    ):
        return await chat(client, None, Console(highlight=False))


if __name__ == "__main__":
    raise SystemExit(asyncio.run(_main()))

"""`towline chat`: attach to the server of this user, then talk."""

from pathlib import Path

from rich.console import Console

from towline.cli.attach import ensure_server
from towline.cli.chat import chat
from towline.cli.command import command_name
from towline.paths import find_paths
from towline_client import Client

__all__ = ["talk"]


async def talk(session: str | None, mode: str | None, console: Console) -> int:
    """Talk until the person leaves.

    Raises:
        NoServer: None runs and none starts.
    """
    server, started = await ensure_server(find_paths().run_file)
    if started:
        console.print(
            f"Started a server at {server.url}; it goes on when you leave "
            f"(`{command_name()} stop` ends it)."
        )
    async with Client(server.url, server.token) as client:
        return await chat(
            client, session, console, mode=mode, cwd=str(Path.cwd()), program=command_name()
        )

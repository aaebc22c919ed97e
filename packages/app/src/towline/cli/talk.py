"""`towline chat` and `towline pair`: attach to the server of this user, then talk."""

from pathlib import Path

from rich.console import Console

from towline.cli.attach import NoServer, ensure_server, find_server
from towline.cli.chat import chat
from towline.cli.command import command_name
from towline.paths import find_paths
from towline_client import Client

__all__ = ["pair", "talk"]


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


async def pair(console: Console) -> int:
    """Print a one-time link.

    Raises:
        NoServer: None runs.
    """
    server = find_server(find_paths().run_file)
    if server is None:
        raise NoServer(f"No server of yours runs; start one with `{command_name()} up`.")
    async with Client(server.url, server.token) as client:
        pairing = await client.pair()
    console.print(f"Open   {pairing.url}", soft_wrap=True)
    console.print(f"or type the code {pairing.code} on the page. It works once, for 10 minutes.")
    return 0

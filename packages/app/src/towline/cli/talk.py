"""`towline chat`: attach to the server of this user, then talk."""

from pathlib import Path

from rich.console import Console

from towline.cli.attach import ensure_server
from towline.cli.chat import chat
from towline.cli.command import command_name
from towline.paths import find_paths
from towline_client import Client

__all__ = ["talk"]


async def talk(
    session: str | None, console: Console, *, mode: str | None = None, model: str | None = None
) -> int:
    """Talk until the person leaves.

    Args:
        session: The session to go on with; `None` begins one in this folder.
        console: Where to write.
        mode: The mode, if it is to be another one.
        model: The model, if it is to be another one.

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
            client,
            session,
            console,
            mode=mode,
            model=model,
            cwd=str(Path.cwd()),
            program=command_name(),
        )

"""`towline pair`: a one-time link, and the same for a camera."""

import io
import os
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from towline.cli.attach import NoServer, find_server
from towline.cli.command import command_name
from towline.paths import find_paths
from towline_client import Client

__all__ = ["draw_code", "pair"]


async def pair(console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Print a one-time link.

    Raises:
        NoServer: None runs.
    """
    server = find_server(find_paths(environ).run_file)
    if server is None:
        raise NoServer(f"No server of yours runs; start one with `{command_name()} up`.")
    async with Client(server.url, server.token) as client:
        pairing = await client.pair()
    if console.is_terminal:
        # in these colours on any terminal: some cameras read no light code on a dark ground
        console.print(Text(draw_code(pairing.url), style="white on black"), soft_wrap=True)
    console.print(f"Open   {pairing.url}", soft_wrap=True)
    console.print(f"or type the code {pairing.code} on the page. It works once, for 10 minutes.")
    return 0


def draw_code(text: str) -> str:
    """A QR code in half blocks, two modules a character; light modules are drawn."""
    import segno  # takes a while to import, and only this command needs it

    drawn = io.StringIO()
    segno.make_qr(text, error="m").terminal(drawn, compact=True)
    return drawn.getvalue().rstrip("\n")

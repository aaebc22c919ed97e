"""`towline pair`: a one-time link, and the same for a camera."""

import io
import os
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from towline.cli.attach import NoServer, find_server
from towline.cli.command import command_name, name_command
from towline.cli.exposure import HOW_TO_OPEN, is_only_here
from towline.paths import find_paths
from towline_client import Client
from towline_server import OWNER

__all__ = ["draw_code", "pair", "show_code", "show_link"]


async def pair(console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Print a one-time link to the owner's account, and draw it where another device can open it.

    Raises:
        NoServer: None runs.
    """
    server = find_server(find_paths(environ).run_file)
    if server is None:
        raise NoServer(f"No server of yours runs; start one with `{command_name()} up`.")
    async with Client(server.url, server.token) as client:
        pairing = await client.pair()
    show_link(console, pairing.url, pairing.code)
    return 0


def show_link(console: Console, url: str, code: str) -> None:
    """Print a link and its code; draw it for a camera where another device can open it.

    Args:
        console: Where to.
        url: The link.
        code: The code in it, for who has to type.
    """
    only_here = is_only_here(url)
    show_code(console, url)
    console.print(f"Open   {url}", soft_wrap=True)
    console.print(f"or type the code {code} on the page. It works once, for 10 minutes.")
    console.print(f"Whoever opens it comes in as {OWNER!r}, with all that you may do here.")
    if only_here:
        said = f"It opens on this machine alone, or at the other end of a tunnel. {HOW_TO_OPEN}"
        console.print(escape(name_command(said)), soft_wrap=True)


def show_code(console: Console, url: str) -> None:
    """Draw a link for a camera, on a terminal and where another device can open it."""
    if not console.is_terminal or is_only_here(url):
        return
    # in these colours on any terminal: some cameras read no light code on a dark ground
    console.print(Text(draw_code(url), style="white on black"), soft_wrap=True)


def draw_code(text: str) -> str:
    """A QR code in half blocks, two modules a character; light modules are drawn."""
    import segno  # takes a while to import, and only this command needs it

    drawn = io.StringIO()
    segno.make_qr(text, error="m").terminal(drawn, compact=True)
    return drawn.getvalue().rstrip("\n")

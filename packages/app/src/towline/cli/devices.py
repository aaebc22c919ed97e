"""`towline devices`: what is let in as the owner."""

import os
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from towline.cli.accounts import open_keeper
from towline.cli.command import command_name
from towline.cli.visible import show_line
from towline_protocol import TokenInfo

__all__ = ["list_devices", "revoke_device"]


async def list_devices(console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Show paired devices, logins and tokens of programs, each with its id."""
    async with open_keeper(environ) as keeper:
        tokens = (await keeper.list_tokens()).tokens
    for token in tokens:
        _say(console, _line(token))
    if not tokens:
        _say(console, f"No device is paired; `{command_name()} pair` makes a link for one.")
    return 0


async def revoke_device(
    device: str, console: Console, environ: Mapping[str, str] = os.environ
) -> int:
    """Let one of them in no more; what it has open ends at once.

    Raises:
        TowlineError: There is none of that id, or the tokens cannot be changed.
    """
    async with open_keeper(environ) as keeper:
        await keeper.revoke_token(device)
    _say(console, f"{device} is let in no more.")
    return 0


def _line(token: TokenInfo) -> str:
    ends = f"until {token.expires_at[:10]}" if token.expires_at else "until it is revoked"
    return f"{token.id}  {token.kind:<7}  used {token.last_used[:10]}, {ends}  {token.name}"


def _say(console: Console, text: str) -> None:
    console.print(escape(show_line(text)), soft_wrap=True, highlight=False, emoji=False)

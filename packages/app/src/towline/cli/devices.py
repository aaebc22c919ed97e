"""`towline devices`: what is let in as the owner."""

import os
from collections.abc import Mapping
from datetime import datetime

from rich.console import Console
from rich.markup import escape

from towline.cli.accounts import open_keeper
from towline.cli.command import command_name
from towline.cli.visible import show_line
from towline_protocol import TokenInfo

__all__ = ["describe_device", "list_devices", "revoke_device"]


async def list_devices(console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Show paired devices, logins and tokens of programs, each with its id."""
    async with open_keeper(environ) as keeper:
        tokens = (await keeper.list_tokens()).tokens
    for token in tokens:
        _say(console, describe_device(token))
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


def describe_device(token: TokenInfo) -> str:
    """One line of the list: its id, what it is, since when it is let in and how long, its name."""
    ends = f"until {_when(token.expires_at)}" if token.expires_at else "until it is revoked"
    name = "(no name)" if token.name in ("", token.kind) else token.name
    used = f"since {_when(token.created)}, used {_when(token.last_used)}, {ends}"
    return f"{token.id}  {token.kind:<7}  {used}  {name}"


def _when(time: str) -> str:
    """A time of the store, such as `2026-01-31T09:05:00.250Z`, to the minute of this place."""
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M}"


def _say(console: Console, text: str) -> None:
    console.print(escape(show_line(text)), soft_wrap=True, highlight=False, emoji=False)

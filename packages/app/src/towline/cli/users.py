"""`towline users`: who may come in."""

import getpass
import os
import sys
from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.markup import escape

from towline.cli.accounts import open_keeper
from towline.cli.command import name_command
from towline.cli.visible import show_visible
from towline_protocol import AddUser, UsageError
from towline_server import check_new_password, check_user_name

__all__ = ["add_user", "change_password", "list_users", "remove_user"]

_MAX_CHARS: Final = 4096
"""More than any password that is taken, and little enough to read whole."""


async def list_users(console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Show who may come in."""
    async with open_keeper(environ) as keeper:
        users = (await keeper.list_users()).users
    for user in users:
        role = "admin" if user.admin else "user"
        way = "has a password" if user.has_password else "no password: comes in by a link alone"
        _say(console, f"{user.name:<20} {role:<6} {way}")
    return 0


async def add_user(
    name: str,
    console: Console,
    *,
    admin: bool,
    restore: bool,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Read a password and let somebody in by it.

    Raises:
        UsageError: That is no name or no password to be.
        TowlineError: The name is taken, or the accounts cannot be changed.
    """
    check_user_name(name)
    password = read_new_password(name)
    async with open_keeper(environ) as keeper:
        await keeper.add_user(AddUser(name=name, password=password, admin=admin, restore=restore))
    _say(console, f"{name} may come in{', as an admin' if admin else ''}.")
    return 0


async def remove_user(name: str, console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Let a user in no more.

    Raises:
        TowlineError: There is nobody of that name, they must stay, or accounts cannot be changed.
    """
    async with open_keeper(environ) as keeper:
        await keeper.remove_user(name)
    _say(
        console,
        f"{name} may come in no more, on any device. Their sessions stay in the store, where "
        f"nobody reaches them; `towline users add {name} --restore` gives both back.",
    )
    return 0


async def change_password(
    name: str, console: Console, *, everywhere: bool, environ: Mapping[str, str] = os.environ
) -> int:
    """Read a password and set it.

    Raises:
        UsageError: That is no password to be.
        TowlineError: There is nobody of that name, or accounts cannot be changed.
    """
    check_user_name(name)
    password = read_new_password(name)
    async with open_keeper(environ) as keeper:
        await keeper.change_password(name, password, everywhere=everywhere)
    let_go = "Every device and program was let go." if everywhere else "Paired devices stay in."
    _say(console, f"The password of {name} is set. {let_go}")
    return 0


def read_new_password(name: str) -> str:
    """A password to be: typed twice, hidden, or the first line of standard input.

    Raises:
        UsageError: It is none, or the two differ. The message does not repeat it.
    """
    if sys.stdin.isatty():
        text = _ask(f"New password for {name} (it is not shown): ")
        check_new_password(text)
        if _ask("The same again: ") != text:
            raise UsageError("The two passwords differ; nothing was changed. Type them once more.")
        return text
    lines = sys.stdin.read(_MAX_CHARS).splitlines()
    if not lines or not lines[0]:
        raise UsageError("No password came; type it at the prompt, or send it to standard input.")
    check_new_password(lines[0])
    return lines[0]


def _ask(prompt: str) -> str:
    try:
        return getpass.getpass(prompt)
    except EOFError as error:
        raise UsageError("No password came; nothing was changed.") from error


def _say(console: Console, text: str) -> None:
    console.print(
        escape(show_visible(name_command(text))), soft_wrap=True, highlight=False, emoji=False
    )

"""`towline sessions`: what there is to go on with."""

import os
from collections.abc import Mapping
from datetime import datetime

import msgspec
from rich.console import Console
from rich.markup import escape

from towline.cli.attach import find_server
from towline.cli.command import name_command
from towline.cli.visible import show_line, show_visible
from towline.paths import find_paths
from towline_agent import mint_now
from towline_client import Client
from towline_protocol import SessionInfo, SessionList
from towline_server import OWNER, list_stored_sessions, load_config, open_store

__all__ = ["describe_session", "show_sessions"]


async def show_sessions(
    console: Console,
    *,
    limit: int,
    after: str | None = None,
    archived: bool = False,
    needs: bool = False,
    as_json: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Print a page of sessions, newest first: id, time, what it needs, title.

    Args:
        console: Where to.
        limit: The most rows.
        after: Where the page before has ended.
        archived: Those that are put away, instead of the others.
        needs: Only those in which something waits for a person.
        as_json: Whether a program reads it.
        environ: Says where the server or its store is.

    Raises:
        TowlineError: Neither the server nor its store can be asked, or `after` is no such place.
    """
    page = await _ask(environ, limit=limit, after=after, archived=archived, needs=needs)
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(page)).decode()
        text = show_visible(text) if console.is_terminal else text
        console.print(text, soft_wrap=True, markup=False, emoji=False, highlight=False)
        return 0
    for row in page.sessions:
        _say(console, describe_session(row))
    if not page.sessions:
        _say(console, "There are none; `towline chat` begins one.")
    elif page.next is not None:
        _say(console, f"There are more: `towline sessions --after {page.next}`.")
    else:
        _say(console, "Go on with one: `towline chat --session ID`.")
    return 0


def describe_session(row: SessionInfo) -> str:
    """One line of the list."""
    when = f"{datetime.fromisoformat(row.updated).astimezone():%Y-%m-%d %H:%M}"
    return f"{row.id}  {when}  {_state(row):<14}  {row.title or '(no title)'}"


def _state(row: SessionInfo) -> str:
    if row.pending:
        return "waits for you"
    if row.turn is not None:
        return "works"
    if row.closed:
        return "closed"
    return "unread" if row.unread else ""


async def _ask(
    environ: Mapping[str, str], *, limit: int, after: str | None, archived: bool, needs: bool
) -> SessionList:
    """From the server that runs, else out of its store at rest."""
    paths = find_paths(environ)
    server = find_server(paths.run_file)
    if server is not None:
        async with Client(server.url, server.token) as client:
            return await client.list_sessions(
                limit=limit, after=after, archived=archived, needs=needs
            )
    config = load_config(paths.config_file, environ, data_dir=paths.data_dir)
    store = await open_store(config.data_dir, mint=mint_now)
    try:
        return await list_stored_sessions(
            store, OWNER, limit=limit, after=after, archived=archived, needs=needs
        )
    finally:
        await store.close()


def _say(console: Console, text: str) -> None:
    line = escape(show_line(name_command(text)))
    console.print(line, soft_wrap=True, highlight=False, emoji=False)

"""What towline needs of this machine, looked at piece by piece; a look changes nothing."""

import asyncio
import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from towline.cli.attach import find_server
from towline.cli.exposure import warn_of_plain_http
from towline.cli.rules import check_rules
from towline.paths import Paths
from towline.providers.info import describe_provider
from towline.providers.reach import Reach, open_reach
from towline.secrets import SecretsUnavailable, open_wallet
from towline_agent import VENDORS, AuthenticationFailed, Transport, find_tools, list_models
from towline_protocol import UsageError
from towline_server import Config, Finding, check_page, check_port, load_config

__all__ = ["ask_providers", "check_environment", "read_config"]

_PYTHON: Final = (3, 11)
_SQLITE: Final = (3, 35)  # the first one with RETURNING
_FAULT_BYTES: Final = 100_000_000
"""Less room than this is gone within a session: pictures and long outputs are kept."""
_WARNING_BYTES: Final = 1_000_000_000
_ASK_S: Final = 8.0
"""Seconds for a provider to name its models: a person looks on."""


def read_config(paths: Paths, environ: Mapping[str, str]) -> tuple[Config, Finding]:
    """The settings, and whether they can be read; what stands without them when they cannot."""
    try:
        config = load_config(paths.config_file, environ, data_dir=paths.data_dir)
    except UsageError as error:
        said = Finding(level="fault", check="config", message=error.message)
        return Config(data_dir=paths.data_dir), said
    there = "can be read" if paths.config_file.exists() else "is not there, which is fine"
    said = f"The settings file {str(paths.config_file)!r} {there}."
    return config, Finding(level="ok", check="config", message=said)


def check_environment(
    paths: Paths, config: Config, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Look at the program, the folders, the port, the keys and the page. Asks nobody outside.

    Args:
        paths: Where things lie.
        config: The settings.
        environ: The environment.
    """
    yield _check_python()
    yield _check_folder("data", config.data_dir, private=True)
    yield _check_folder("runtime", paths.run_file.parent, private=False)
    yield from _check_modes(config.data_dir)
    yield _check_room(config.data_dir)
    yield _check_server(paths.run_file, config)
    warning = warn_of_plain_http(config)
    if warning is not None:
        yield Finding(level="warning", check="network", message=warning)
    yield _check_keyring(environ)
    yield _check_providers(open_reach(environ))
    yield from check_rules(config, find_tools(config.tools).tools)
    yield check_page()


def _check_python() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    said = f"Python {python}, SQLite {sqlite3.sqlite_version}."
    if sys.version_info[:2] >= _PYTHON and sqlite3.sqlite_version_info[:2] >= _SQLITE:
        return Finding(level="ok", check="python", message=said)
    said = f"{said} Towline needs Python 3.11 and SQLite 3.35, or newer ones: install those."
    return Finding(level="fault", check="python", message=said)


def _check_folder(name: str, folder: Path, *, private: bool) -> Finding:
    place = f"The {name} folder {str(folder)!r}"
    there = _nearest(folder)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        said = f"{place} cannot be written: make {str(there)!r} a folder that this user can write."
        return Finding(level="fault", check="folder", message=said)
    if there != folder:
        said = f"{place} is not there yet; the first start makes it."
        return Finding(level="ok", check="folder", message=said)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & (0o077 if private else 0o022):
        what = "read" if private else "change"
        said = f"{place} is open to other users, who may {what} it: chmod 700 it."
        return Finding(level="warning", check="folder", message=said)
    return Finding(level="ok", check="folder", message=f"{place} can be written.")


def _check_modes(folder: Path) -> Iterator[Finding]:
    """The files of the data folder are for this user alone."""
    try:
        files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
        is_open = [path.name for path in files if path.stat().st_mode & 0o077]
    except OSError as error:
        said = f"The data folder {str(folder)!r} cannot be listed ({error.strerror})."
        yield Finding(level="fault", check="folder", message=said)
        return
    if is_open:
        said = f"Other users may open {', '.join(sorted(is_open))} in {str(folder)!r}: chmod 600."
        yield Finding(level="warning", check="folder", message=said)


def _check_room(folder: Path) -> Finding:
    free = shutil.disk_usage(_nearest(folder)).free
    level = "ok" if free >= _WARNING_BYTES else "warning" if free >= _FAULT_BYTES else "fault"
    more = "" if level == "ok" else " Make room: what does not fit is not kept."
    said = f"The disk of the data folder has {free / 1_000_000_000:.1f} GB of room.{more}"
    return Finding(level=level, check="disk", message=said)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    for place in (folder, *folder.parents):
        if place.exists():
            return place
    return folder


def _check_server(run_file: Path, config: Config) -> Finding:
    """Our own server answers, or one could listen."""
    server = find_server(run_file)
    if server is not None:
        said = f"The server at {server.url} (process {server.pid}) answers."
        return Finding(level="ok", check="port", message=said)
    if run_file.exists():
        said = (
            f"{str(run_file)!r} names a server that does not answer. It died, or hangs; the next "
            "`towline up` writes the file anew."
        )
        return Finding(level="warning", check="port", message=said)
    return check_port(config.host, config.port)


def _check_keyring(environ: Mapping[str, str]) -> Finding:
    try:
        placed = open_wallet(environ).place()
    except SecretsUnavailable as error:
        return Finding(level="fault", check="keyring", message=error.message)
    if placed.preferred:
        said = f"Keys are kept in {placed.title}, which answers."
        return Finding(level="ok", check="keyring", message=said)
    said = f"Keys are kept in {placed.title}. Why not in a keyring: {placed.why}"
    return Finding(level="warning", check="keyring", message=said)


def _check_providers(reach: Reach) -> Finding:
    infos = [describe_provider(reach, name) for name in VENDORS]
    unread = [info for info in infos if info.state == "unreadable"]
    if unread:
        names = ", ".join(info.provider for info in unread)
        said = f"What is kept for {names} cannot be read now. {unread[0].problem or ''}".strip()
        return Finding(level="warning", check="providers", message=said)
    ready = [f"{info.provider} ({info.found})" for info in infos if info.state == "ready"]
    if not ready:
        said = "There is no key of a provider; a local model answers."
        return Finding(level="ok", check="providers", message=said)
    return Finding(level="ok", check="providers", message=f"There are keys: {', '.join(ready)}.")


async def ask_providers(
    environ: Mapping[str, str], *, transport: Transport | None = None
) -> list[Finding]:
    """Ask each provider that has a key for its models, once, all at the same time.

    Args:
        environ: The environment.
        transport: Who asks; `None` for the process's own.
    """
    reach = open_reach(environ)
    names = [name for name in VENDORS if describe_provider(reach, name).state == "ready"]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(reach, name, transport)) for name in names]
    return [task.result() for task in tasks]


async def _ask(reach: Reach, name: str, transport: Transport | None) -> Finding:
    title = VENDORS[name].title
    try:
        async with asyncio.timeout(_ASK_S):
            listing = await list_models(
                name,
                reach.environ_of(name),
                stored=reach.stored,
                credential=reach.credential(name),
                transport=transport,
            )
    except TimeoutError:
        said = f"{title} did not answer within {_ASK_S:g} s."
        return Finding(level="warning", check="online", message=said)
    except UsageError as error:
        return Finding(level="fault", check="online", message=error.message)
    if isinstance(listing.problem, AuthenticationFailed):
        return Finding(level="fault", check="online", message=listing.problem.message)
    if listing.problem is not None:
        return Finding(level="warning", check="online", message=listing.problem.message)
    said = f"{title} answers; it offers {len(listing.models)} models."
    return Finding(level="ok", check="online", message=said)

"""The client's distribution is enough for a program that talks to a server (C4)."""

import asyncio
import importlib.metadata
import os
import re
import sys
from pathlib import Path
from typing import Final

from towline_agent.testing import ScriptedProvider
from towline_client import Client
from towline_server.testing import open_test_server

PYTHON: Final = "TOWLINE_ALONE_PYTHON"
"""The environment variable that names the Python of an environment with the client alone; without
it this one is fenced to what the client depends on."""

_PROGRAM: Final = Path(__file__).with_name("alone_client.py")


async def test_the_client_talks_to_a_server_where_nothing_else_is_installed(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider("Yes, somebody is.")
    async with (
        asyncio.timeout(60),
        open_test_server(provider, root=tmp_path) as server,
        Client(server.url, server.token) as here,
    ):
        told = await _run(server.url, (await here.pair()).code)
        assert told == "Yes, somebody is."
        assert len((await here.list_sessions()).sessions) == 1


async def _run(url: str, code: str) -> str:
    """What the program printed."""
    own = os.environ.get(PYTHON)
    command = [own] if own else [sys.executable]
    allowed = () if own else _importable("towline-client")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, str(_PROGRAM), url, code, *allowed, stdout=pipe, stderr=pipe
    )
    told, said = await process.communicate()
    assert process.returncode == 0, said.decode()
    return told.decode()


def _importable(distribution: str) -> list[str]:
    """The top-level names of a distribution and of all that it needs."""
    found = _needed(distribution)
    owners = importlib.metadata.packages_distributions()
    names = [name for name, of in owners.items() if found & {_plain(each) for each in of}]
    return [*names, *(name.replace("-", "_") for name in found if name.startswith("towline"))]


def _needed(distribution: str) -> set[str]:
    """The names of a distribution and of all that it needs here."""
    found: set[str] = set()
    waiting = [distribution]
    while waiting:
        name = _plain(waiting.pop())
        if name in found:
            continue
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another version of Python
        found.add(name)
        for need in needs:
            what, _, when = need.partition(";")
            match = re.match(r"[\w.-]+", what)
            if match is not None and "extra" not in when:
                waiting.append(match.group())
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

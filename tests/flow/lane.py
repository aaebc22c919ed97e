"""Servers in processes of their own, and what they leave behind; see `crash_server.py`."""

import asyncio
import contextlib
import itertools
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from towline_client import Client
from towline_protocol import Envelope, SessionId, decode_envelope

__all__ = [
    "PATIENCE_S",
    "Lane",
    "claim_token",
    "decode",
    "make_folder",
    "make_order",
    "open_lane",
    "read_log",
]

SERVER: Final = Path(__file__).with_name("crash_server.py")
PATIENCE_S: Final = 60.0
"""The longest that anything here may take; it is some hundred milliseconds on an idle machine."""

_WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# Of each hundred ports a quarter is for one of the processes that tests run in beside each other.
_ports = itertools.count(18_000 + os.getpid() % 80 * 100 + _WORKER % 4 * 25, 100)


class Lane:
    """A process that serves one order after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pid: int | None = None

    async def order(self, order: Mapping[str, object]) -> dict[str, Any]:
        """Order a server; gives the first line that comes of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        line = await self._line()
        self._pid = line["pid"] if line["word"] == "ready" else None
        return line

    async def start(self, order: Mapping[str, object]) -> dict[str, Any]:
        """The `ready` line of a new server."""
        line = await self.order(order)
        assert line["word"] == "ready", line
        return line

    async def ended(self) -> int:
        """How the server ended."""
        line = await self._line()
        self._pid = None
        assert line["word"] == "ended", line
        return line.get("status", 0)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send the server a signal."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it has just died by itself
                os.kill(self._pid, number)

    async def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        text = await self._process.stdout.readline()
        assert text, "the lane is gone"
        return msgspec.json.decode(text)


@contextlib.asynccontextmanager
async def open_lane() -> AsyncGenerator[Lane]:
    """A lane; its server and the lane itself are gone at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SERVER),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield Lane(process)
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has crashed
            os.killpg(process.pid, signal.SIGKILL)  # a server that is just starting, too
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()


async def claim_token(url: str, code: str) -> str:
    """A device's token, which works at the server's next life too."""
    async with Client(url) as client:
        token = (await client.claim(code)).token
    assert token is not None
    return token


def make_order(folder: Path, **more: object) -> dict[str, object]:
    """An order for a server in this folder, with a port of its own; see `crash_server.Order`."""
    return {"folder": str(folder), "port": next(_ports), **more}


def make_folder(parent: Path, number: int = 1) -> Path:
    """A new folder for one server's store."""
    folder = parent / f"{number}"
    folder.mkdir()
    return folder


def read_log(folder: Path, session: SessionId) -> list[bytes]:
    """The stored bytes, in order; the numbers must be 1, 2, 3 …"""
    connection = sqlite3.connect(folder / "data" / "towline.db")
    rows = connection.execute(
        "SELECT seq, data FROM events WHERE session = ? ORDER BY seq", (session,)
    ).fetchall()
    connection.close()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    return [row[1] for row in rows]


def decode(data: bytes) -> Envelope:
    """A stored event."""
    envelope = decode_envelope(data)
    assert isinstance(envelope, Envelope)
    return envelope

"""Finding the server of this user, or starting one (D1)."""

import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Final

import msgspec

from towline_protocol import TowlineError
from towline_server import RunFile

__all__ = ["NoServer", "ensure_server", "find_server"]

_START_S: Final = 30.0  # a cold start takes two seconds; this allows for a busy machine
_HEALTH_S: Final = 3.0


class NoServer(TowlineError):
    """No server of this user runs, and none could be started."""

    code = "upstream_unavailable"


def find_server(run_file: Path) -> RunFile | None:
    """The running server, or `None`: its process must live and answer for itself."""
    try:
        found = msgspec.json.decode(run_file.read_bytes(), type=RunFile)
        os.kill(found.pid, 0)
    except (OSError, msgspec.DecodeError):
        return None
    try:
        with urllib.request.urlopen(f"{found.url}/healthz", timeout=_HEALTH_S) as answer:  # noqa: S310
            pid = msgspec.json.decode(answer.read()).get("pid")
    except (OSError, ValueError):
        return None
    return found if pid == found.pid else None


async def ensure_server(run_file: Path, arguments: tuple[str, ...] = ()) -> tuple[RunFile, bool]:
    """The running server, else a new one in the background.

    Args:
        run_file: Where its address stands.
        arguments: More arguments for `towline up`.

    Returns:
        The server, and whether it was started here.

    Raises:
        NoServer: It did not start; the message says what it printed.
    """
    found = find_server(run_file)
    if found is not None:
        return found, False
    log = run_file.with_name("server.log")
    try:
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        output = log.open("wb")
    except OSError as error:
        raise NoServer(
            f"The folder {str(log.parent)!r} cannot be written ({error.strerror}); make it "
            "writable, or name another one with TOWLINE_HOME."
        ) from error
    with output:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program
            [sys.executable, "-m", "towline", "up", "--background", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # it outlives this terminal
        )
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        await asyncio.sleep(0.1)
        found = find_server(run_file)
        if found is not None:
            return found, True
        if process.poll() is not None:
            break
    said = log.read_text(errors="replace").strip()[-2000:]
    raise NoServer(f"The server did not start. It said: {said or 'nothing'}. See {log}.")

"""`towline stop`: tell the server of this user to stop, and wait until it has."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console

from towline.cli.attach import NoServer, find_server
from towline.paths import find_paths

__all__ = ["stop"]

_PATIENCE_S: Final = 60.0
"""More than a stop takes: 30 s for running turns, 5 each for the last word of a turn and of a
connection, and what a busy machine adds."""
_LOOK_S: Final = 0.05


def stop(
    console: Console,
    environ: Mapping[str, str] = os.environ,
    *,
    patience_s: float = _PATIENCE_S,
) -> int:
    """Stop the server; a second call while it still ends makes it end at once.

    Args:
        console: Where to say what happens.
        environ: Says where the server is.
        patience_s: Seconds to wait for its end.

    Returns:
        The exit code: 1 when it had not ended after that.

    Raises:
        NoServer: None runs.
    """
    found = find_server(find_paths(environ).run_file)
    if found is None:
        raise NoServer("No server of yours runs.")
    os.kill(found.pid, signal.SIGTERM)
    console.print(
        f"Stopping the server at {found.url} (process {found.pid}); running turns have 30 s.",
        soft_wrap=True,
    )
    until = time.monotonic() + patience_s
    while not _has_ended(found.pid):
        if time.monotonic() > until:
            console.print(
                f"It has not ended within {patience_s:g} s. The same command once more ends it at "
                "once; what was confirmed is kept.",
                soft_wrap=True,
            )
            return 1
        time.sleep(_LOOK_S)
    console.print("Stopped.")
    return 0


def _has_ended(pid: int) -> bool:
    """Whether a process is gone, or is dead and only waits for whoever started it to look."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # gone, or its number is another user's by now
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not on this system
        return False
    return state.rpartition(")")[2].split()[:1] == ["Z"]

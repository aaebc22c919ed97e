"""A project's folder, looked at in threads: commands and paths."""

import os
from pathlib import Path
from typing import Final

from towline_agent.errors import ToolDenied, ToolError
from towline_agent.permissions.secret import is_secret
from towline_agent.project.command import OwnCommand, read_command
from towline_agent.project.suggest import rank_paths
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.fence import FILE_FLAGS, Fence
from towline_agent.workspaces.threads import FILES
from towline_agent.workspaces.twin import Twins
from towline_protocol import UsageError

__all__ = ["COMMANDS_MAX", "find_commands", "find_paths"]

COMMANDS_MAX: Final = 200
"""Files of one folder that are looked at: more of them nobody can tell apart."""

_COMMAND_BYTES: Final = 256 * 1024


async def find_commands(
    folder: Path, source: str, *, within: Path | None = None
) -> tuple[tuple[OwnCommand, ...], tuple[str, ...]]:
    """The commands of a folder by name, and notices about files that are none.

    Args:
        folder: It need not exist.
        source: `user` or `project`: whose it is.
        within: The project: what a link leads to must lie in it, and be no secret file (A5.2).
            `None` follows every link, as a person's own folder may.
    """
    return await FILES.run(lambda: _read_all(folder, source, within))


async def find_paths(workspace: Workspace, typed: str, limit: int) -> tuple[tuple[str, ...], bool]:
    """Paths that may be meant, the best first, and whether not all were looked at (A5.81).

    Args:
        workspace: Where.
        typed: What was typed so far.
        limit: How many at most.

    Raises:
        ToolError: The folder cannot be read.
    """
    walk = await workspace.walk(".")
    times = {f"{e.name}/" if e.kind == "dir" else e.name: e.mtime_ns for e in walk.entries}
    found = await FILES.run(lambda: rank_paths(times, typed, limit, times.__getitem__))
    return found, walk.truncated


def _read_all(
    folder: Path, source: str, within: Path | None
) -> tuple[tuple[OwnCommand, ...], tuple[str, ...]]:
    found: list[OwnCommand] = []
    notices: list[str] = []
    for path in _markdown_files(folder):
        try:
            text = _read(path, within).decode("utf-8", "replace")
            found.append(read_command(path.stem, text, source))
        except (UsageError, ToolError) as error:
            notices.append(f"{path.name} in {folder} was left out. {error.message}")
        except OSError as error:
            notices.append(f"{path.name} in {folder} cannot be read: {error.strerror}.")
    return tuple(found), tuple(notices)


def _markdown_files(folder: Path) -> list[Path]:
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".md")
    except OSError:  # there is no such folder
        return []
    return [path for path in names if path.is_file()][:COMMANDS_MAX]


def _read(path: Path, within: Path | None) -> bytes:
    """A command's file; of a project only what really lies in it."""
    if within is None:
        with path.open("rb") as file:
            return file.read(_COMMAND_BYTES)
    fence = Fence(str(within))
    place = fence.judge(str(path))
    twin = Twins(fence.judge(".").real, is_secret).find(place.real)
    if is_secret(place.shown) or twin is not None:
        raise ToolDenied(f"It leads to {place.shown!r}, which may hold secrets.")
    with os.fdopen(fence.open(place, FILE_FLAGS), "rb") as file:
        return file.read(_COMMAND_BYTES)

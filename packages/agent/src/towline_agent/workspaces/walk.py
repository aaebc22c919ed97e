"""What folders hold."""

import os
from collections import deque
from itertools import islice
from typing import Final

from towline_agent.errors import ToolDenied
from towline_agent.workspaces.base import DirEntry, Walk
from towline_agent.workspaces.fence import FOLDER_FLAGS, Fence
from towline_agent.workspaces.paths import failed_path

__all__ = ["WALK_MAX", "walk_folder"]

WALK_MAX: Final = 50_000
"""Names of one walk; what is larger is searched in parts, or with a program."""


def walk_folder(fence: Fence, path: str, *, deep: bool, ignored: bool) -> Walk:
    """Do as `Workspace.walk` says; blocking."""
    entries: list[DirEntry] = []
    folders = deque([""])
    while folders:
        below = folders.popleft()
        try:
            found = _list(fence, os.path.join(path, below) if below else path, below)
        except (OSError, ToolDenied) as error:
            if below:  # it went meanwhile, or may not be read
                continue
            if isinstance(error, ToolDenied):
                raise
            raise failed_path(path, error) from error
        for entry in found:
            if len(entries) >= WALK_MAX:
                return Walk(_sorted(entries), truncated=True)
            entries.append(entry)
            if deep and entry.kind == "dir" and not entry.name.endswith("/.git"):
                folders.append(entry.name)
    return Walk(_sorted(entries))


def _list(fence: Fence, path: str, below: str) -> list[DirEntry]:
    fd = fence.open(fence.judge(path), FOLDER_FLAGS)
    try:
        with os.scandir(fd) as found:
            entries = [_entry(entry, below) for entry in islice(found, WALK_MAX + 1)]
    finally:
        os.close(fd)
    return sorted(entries, key=lambda entry: entry.name)


def _sorted(entries: list[DirEntry]) -> tuple[DirEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.name))


def _entry(entry: os.DirEntry[str], below: str) -> DirEntry:
    name = os.fsencode(entry.name).decode("utf-8", "replace")
    if below:
        name = f"{below}/{name}"
    if entry.is_symlink():
        return DirEntry(name=name, kind="link", size=0)
    if entry.is_dir(follow_symlinks=False):
        return DirEntry(name=name, kind="dir", size=0)
    if not entry.is_file(follow_symlinks=False):
        return DirEntry(name=name, kind="other", size=0)
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # it was removed meanwhile
        return DirEntry(name=name, kind="file", size=0)
    return DirEntry(name=name, kind="file", size=found.st_size, mtime_ns=found.st_mtime_ns)

"""What folders hold."""

import os
import stat
import time
from collections import deque
from itertools import islice
from typing import Final, NamedTuple

from towline_agent.errors import ToolDenied
from towline_agent.workspaces.base import DirEntry, Walk
from towline_agent.workspaces.fence import FILE_FLAGS, FOLDER_FLAGS, Fence, Place
from towline_agent.workspaces.ignore import IGNORE_FILE, IGNORE_MAX_BYTES, Ignore
from towline_agent.workspaces.paths import failed_path

__all__ = ["WALK_MAX", "WALK_MAX_S", "walk_folder"]

WALK_MAX: Final = 50_000
"""Names of one walk; what is larger is searched in parts, or with a program."""
WALK_MAX_S: Final = 20.0
"""Seconds of one walk: a slow disk, or patterns made to be slow, must not hold a thread on."""
_NAMES_MAX: Final = 2 * WALK_MAX
"""Names of one folder that are looked at, those that are left out among them."""


class _Folder(NamedTuple):
    """A folder that has to be listed."""

    below: str
    """Its path below the one that is walked; empty for that one."""
    ignore: Ignore | None
    """What is left out in it, its own patterns not yet read; `None` to leave out nothing."""


def walk_folder(fence: Fence, path: str, *, deep: bool, ignored: bool) -> Walk:
    """Do as `Workspace.walk` says; blocking.

    Folders are listed level by level, so what a bound cuts off is what lies deepest.
    """
    place = fence.judge(path)
    walk = _Walk(fence, place, deep=deep)
    try:
        ignore = None if ignored else _ignore_above(fence, place)
        walk.list_all(ignore)
    except OSError as error:
        raise failed_path(path, error) from error
    entries = sorted(walk.entries, key=lambda entry: entry.name)
    return Walk(tuple(entries), truncated=walk.truncated)


class _Walk:
    """One walk while it goes on."""

    def __init__(self, fence: Fence, place: Place, *, deep: bool) -> None:
        self.entries: list[DirEntry] = []
        self.truncated = False
        self._fence = fence
        self._place = place
        self._top = "/".join(place.parts)
        self._deep = deep
        self._folders: deque[_Folder] = deque()
        self._held: tuple[str, int] | None = None
        """The folder above the last one, open: its other subfolders come next."""

    def list_all(self, ignore: Ignore | None) -> None:
        """List the folder, then all in it if the walk is deep."""
        until = time.monotonic() + WALK_MAX_S
        try:
            fd = self._fence.open(self._place, FOLDER_FLAGS)
            if ignore is not None and not self._top:
                ignore = ignore.within("", _read_exclude(fd))
            self._list(fd, _Folder("", ignore))
            while self._folders and not self.truncated:
                folder = self._folders.popleft()
                try:
                    fd = self._open(folder.below)
                except (OSError, ToolDenied):  # it went meanwhile, or is closed to us
                    continue
                self._list(fd, folder)
                self.truncated = self.truncated or time.monotonic() > until
        finally:
            if self._held is not None:
                os.close(self._held[1])

    def _open(self, below: str) -> int:
        above, _, name = below.rpartition("/")
        if self._held is None or self._held[0] != above:
            if self._held is not None:
                os.close(self._held[1])
                self._held = None
            self._held = (above, self._fence.open(self._at(above), FOLDER_FLAGS))
        return os.open(name, FOLDER_FLAGS, dir_fd=self._held[1])

    def _at(self, below: str) -> Place:
        place = self._place
        if not below:
            return place
        parts = (*place.parts, *below.split("/"))
        return place._replace(real=os.path.join(place.real, below), parts=parts)

    def _list(self, fd: int, folder: _Folder) -> None:
        """Take in what a folder holds, and close it."""
        try:
            below = folder.below
            here = "/".join(part for part in (self._top, below) if part)
            ignore = folder.ignore
            if ignore is not None:
                ignore = ignore.within(here, _read_patterns(fd, IGNORE_FILE))
            with os.scandir(fd) as found:
                names = sorted(islice(found, _NAMES_MAX + 1), key=lambda entry: entry.name)
            self.truncated = len(names) > _NAMES_MAX
            for entry in names:
                told = self._tell(entry, below, here, ignore)
                if told is None:
                    continue
                if len(self.entries) >= WALK_MAX:
                    self.truncated = True
                    return
                self.entries.append(told)
                if self._deep and told.kind == "dir":
                    own = f"{below}/{entry.name}" if below else entry.name
                    self._folders.append(_Folder(own, ignore))
        finally:
            os.close(fd)

    def _tell(
        self, entry: os.DirEntry[str], below: str, here: str, ignore: Ignore | None
    ) -> DirEntry | None:
        """An entry as it is told; `None` for one that is left out."""
        name = entry.name
        if self._deep and name == ".git":
            return None
        kind = _kind(entry)
        if ignore is not None:
            path = f"{here}/{name}" if here else name
            if ignore.leaves_out(path, name, is_dir=kind == "dir"):
                return None
        size = mtime_ns = 0
        if kind == "file" or (kind == "dir" and self._fence.hidden):
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # it was removed meanwhile
                return None
            if self._fence.is_hidden(found):
                return None
            if kind == "file":
                size, mtime_ns = found.st_size, found.st_mtime_ns
        told = f"{below}/{name}" if below else name
        if not told.isascii():
            told = os.fsencode(told).decode("utf-8", "replace")
        return DirEntry(name=told, kind=kind, size=size, mtime_ns=mtime_ns)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "dir"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _ignore_above(fence: Fence, place: Place) -> Ignore:
    """What the files above a folder leave out in it; nothing when it is left out itself.

    Whoever names such a folder wants to see it.
    """
    if os.path.isabs(place.shown):
        return Ignore()
    ignore = Ignore()
    for depth, name in enumerate(place.parts):
        fd = fence.open(place._replace(parts=place.parts[:depth]), FOLDER_FLAGS)
        try:
            if depth == 0:
                ignore = ignore.within("", _read_exclude(fd))
            above = "/".join(place.parts[:depth])
            ignore = ignore.within(above, _read_patterns(fd, IGNORE_FILE))
        finally:
            os.close(fd)
        if ignore.leaves_out("/".join(place.parts[: depth + 1]), name, is_dir=True):
            return Ignore()
    return ignore


def _read_exclude(fd: int) -> str | None:
    """The patterns of a repository that are not shared."""
    try:
        git = os.open(".git", FOLDER_FLAGS, dir_fd=fd)
    except OSError:
        return None
    try:
        info = os.open("info", FOLDER_FLAGS, dir_fd=git)
    except OSError:
        return None
    finally:
        os.close(git)
    try:
        return _read_patterns(info, "exclude")
    finally:
        os.close(info)


def _read_patterns(above: int, name: str) -> str | None:
    try:
        fd = os.open(name, FILE_FLAGS, dir_fd=above)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > IGNORE_MAX_BYTES:
            return None
        return os.read(fd, IGNORE_MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)

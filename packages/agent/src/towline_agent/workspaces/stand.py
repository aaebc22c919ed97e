"""What stands at a place on the disk, looked at without following a link."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from towline_agent.workspaces.fence import FILE_FLAGS, FOLDER_FLAGS, Fence, Place
from towline_agent.workspaces.ledger import Side
from towline_agent.workspaces.paths import (
    changed_since,
    denied_outside,
    failed_edit,
    holds_too_much,
    too_big,
)

__all__ = [
    "TREE_MAX_BYTES",
    "TREE_MAX_NAMES",
    "Stand",
    "file_identity",
    "list_tree",
    "stand_at",
]

TREE_MAX_NAMES: Final = 20_000
"""Names in a folder that is moved or removed: each is kept to be undone."""
TREE_MAX_BYTES: Final = 512 * 2**20
"""Bytes of all that is moved or removed in one edit: they may have to be kept to be undone."""

_CHUNK: Final = 2**20
_DIFFED_BYTES: Final = 2 * 2**20
"""Bytes of a file that are held for its diff; one that is larger has a diff that nobody reads."""


class Stand(NamedTuple):
    """What stands at a place."""

    kind: str
    """`file`, `dir`, `link` or `other`."""
    side: Side
    """How the changes tell it."""
    found: os.stat_result
    """What the system says of it."""


def file_identity(found: os.stat_result) -> tuple[int, ...]:
    """What changes when a file becomes another, or its content does."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def stand_at(above: int, name: str, path: str, *, read: bool = True) -> Stand | None:
    """What a name in an open folder stands for; `None` when there is nothing.

    A pipe, socket or device is told by its name alone and never opened.

    Args:
        above: The open folder.
        name: The name in it.
        path: The path as it was written, for messages.
        read: Whether a file is read, for its hash and diff.

    Raises:
        OSError: It can't be looked at.
    """
    try:
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return Stand(_kind(found), Side(), found)
    if not read:
        return Stand("file", Side(mode=stat.S_IMODE(found.st_mode)), found)
    if found.st_size > TREE_MAX_BYTES:
        raise too_big(path, TREE_MAX_BYTES)
    fd = os.open(name, FILE_FLAGS, dir_fd=above)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):  # it became a pipe meanwhile
            return Stand(_kind(found), Side(), found)
        side = _read_side(fd, stat.S_IMODE(found.st_mode))
        if file_identity(os.fstat(fd)) != file_identity(found):
            raise changed_since(path)
        return Stand("file", side, found)
    finally:
        os.close(fd)


def list_tree(fence: Fence, place: Place, *, removed: bool) -> list[str]:
    """The real paths of a folder that is to be moved or removed and of all in it.

    Args:
        fence: What must not be left.
        place: The folder.
        removed: Whether all of it goes, so that it must be possible to remove it and to undo that.

    Raises:
        ToolDenied: A hidden folder is among it.
        ToolError: It is too much, or something in it can't be moved or removed.
        OSError: A folder in it can't be listed.
    """
    found = [place.real]
    folders = [place.real]
    size = 0
    for folder in folders:
        fd = fence.open(fence.judge(folder, follow=False), FOLDER_FLAGS)
        try:
            _check_folder(fd, fence.show(folder), removed=removed)
            for name, status in _scan(fd):
                real = os.path.join(folder, name)
                _check_entry(fence, place, real, status, removed=removed)
                found.append(real)
                size += status.st_size if stat.S_ISREG(status.st_mode) else 0
                if stat.S_ISDIR(status.st_mode):
                    folders.append(real)
                if len(found) > TREE_MAX_NAMES or size > TREE_MAX_BYTES:
                    raise holds_too_much(place.path, TREE_MAX_NAMES, TREE_MAX_BYTES)
        finally:
            os.close(fd)
    return found


def _scan(fd: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(fd) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # it went meanwhile
                yield entry.name, entry.stat(follow_symlinks=False)


def _check_folder(fd: int, shown: str, *, removed: bool) -> None:
    if removed and not os.access(".", os.W_OK | os.X_OK, dir_fd=fd):
        raise failed_edit(shown, OSError(errno.EACCES, ""))


def _check_entry(
    fence: Fence, place: Place, real: str, status: os.stat_result, *, removed: bool
) -> None:
    if fence.is_hidden(status):
        raise denied_outside(place.path, fence.root)
    if removed and _kind(status) == "other":
        raise failed_edit(fence.show(real), OSError(errno.ENXIO, ""))
    if stat.S_ISDIR(status.st_mode) and status.st_dev != os.stat(place.base).st_dev:
        raise failed_edit(fence.show(real), OSError(errno.EBUSY, ""))


def _kind(found: os.stat_result) -> str:
    if stat.S_ISDIR(found.st_mode):
        return "dir"
    if stat.S_ISLNK(found.st_mode):
        return "link"
    return "file" if stat.S_ISREG(found.st_mode) else "other"


def _read_side(fd: int, mode: int) -> Side:
    digest = hashlib.sha256()
    pieces: list[bytes] = []
    total = 0
    while piece := os.read(fd, _CHUNK):
        digest.update(piece)
        total += len(piece)
        if total <= _DIFFED_BYTES:
            pieces.append(piece)
    data = b"".join(pieces) if total <= _DIFFED_BYTES else None
    return Side(data=data, hash=digest.hexdigest(), mode=mode)

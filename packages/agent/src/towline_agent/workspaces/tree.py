"""What stands at a path below a folder, links not followed, and how to make it stand so again."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["ABSENT_STATE", "State", "Tree", "ancestors", "hash_open_file", "read_pieces"]

_PIECE: Final = 2**20  # bytes that are in memory at once
_LOOK: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_WRITE: Final = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL
_NOT_THERE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class State(msgspec.Struct, frozen=True, array_like=True):
    """What stands at a path."""

    kind: str
    """`absent`, `file`, `link`, `dir`; `other` for a pipe, a socket or a device."""
    mode: int = 0
    """Permission bits of a file or folder."""
    hash: str = ""
    """Content hash of a file."""
    target: bytes = b""
    """What a link says."""

    def same(self, other: "State") -> bool:
        """Whether two are alike; the mode of a folder does not count."""
        return self == other or (self.kind == other.kind == "dir")


ABSENT_STATE: Final = State("absent")
"""Nothing."""


def ancestors(path: str) -> list[str]:
    """The folders above a path, the nearest first, without the one that all is relative to."""
    found: list[str] = []
    above = path.rpartition("/")[0]
    while above:
        found.append(above)
        above = above.rpartition("/")[0]
    return found


def read_pieces(fd: int) -> Generator[bytes]:
    """An open file's bytes from its beginning, piece by piece."""
    at = 0
    while piece := os.pread(fd, _PIECE, at):
        at += len(piece)
        yield piece


def hash_open_file(fd: int) -> str:
    """The content hash of an open file."""
    found = hashlib.sha256()
    for piece in read_pieces(fd):
        found.update(piece)
    return found.hexdigest()


class Tree:
    """A folder whose paths are looked at and set without following any link below it.

    Args:
        root: The folder; paths are relative to it, or absolute where an edit outside was granted.
        on_write: Called before each change of the disk; a seam for crash tests.
    """

    def __init__(self, root: str, *, on_write: Callable[[str], None] = lambda path: None) -> None:
        self.root = root
        """The folder."""
        self._on_write = on_write

    def look(self, path: str, keep: Callable[[int], str] = hash_open_file) -> State:
        """What stands at a path.

        Args:
            path: The path.
            keep: Makes the hash of an open file, and may keep its bytes.

        Raises:
            OSError: It cannot be read.
        """
        try:
            with self._parent(path) as (parent, name):
                return _look(parent, name, keep)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
            return ABSENT_STATE  # also behind a link: what is there stands elsewhere

    def stamp(self, path: str) -> str:
        """What changes whenever the file does, cheap to read; empty for nothing."""
        try:
            found = Path(self.root, path).lstat()
        except OSError:
            return ""
        times = f"{found.st_mtime_ns} {found.st_ctime_ns}"
        return f"{found.st_mode} {found.st_ino} {found.st_size} {times}"

    def names(self, path: str) -> list[str]:
        """The paths right in a folder; none when it is none."""
        try:
            with self._parent(path) as (parent, name):
                folder = os.open(name, _FOLDER, dir_fd=parent)
            try:
                with os.scandir(folder) as found:
                    return sorted(f"{path}/{entry.name}" for entry in found)
            finally:
                os.close(folder)
        except OSError:
            return []

    def set(self, path: str, state: State, data: Callable[[], Iterable[bytes]], temp: str) -> None:
        """Make a path stand so; what is put in a place comes whole or not at all.

        Args:
            path: The path; the folders above it stand.
            state: How: `absent`, `file`, `link` or `dir`.
            data: A file's bytes.
            temp: The name, beside it, under which it is made ready.

        Raises:
            OSError: It cannot be; a folder that should go still holds something, for one.
        """
        with self._parent(path) as (parent, name):
            self._on_write(path)
            there = _kind(parent, name)
            if there == "dir" and state.kind != "dir":
                os.rmdir(name, dir_fd=parent)
            elif there not in ("absent", "dir") and state.kind in ("absent", "dir"):
                os.unlink(name, dir_fd=parent)
            if state.kind == "dir":
                _make_dir(parent, name, state.mode)
            elif state.kind != "absent":
                self._put(parent, (name, temp), state, data)
            os.fsync(parent)

    def clear(self, path: str, temp: str) -> None:
        """Remove what was made ready beside a path and never came to its place."""
        with suppress(OSError), self._parent(path) as (parent, _):
            os.unlink(temp, dir_fd=parent)

    def sweep(self, folder: str, prefix: str) -> None:
        """Remove what stands in a folder under names that begin so; what can't be is left.

        Args:
            folder: Its path; empty for the root.
            prefix: How the names begin.
        """
        within = f"{folder}/{prefix}" if folder else prefix
        with suppress(OSError), self._parent(within) as (parent, _):
            with os.scandir(parent) as found:
                names = [entry.name for entry in found if entry.name.startswith(prefix)]
            for name in names:
                self._on_write(name)
                with suppress(OSError):
                    if _kind(parent, name) == "dir":
                        shutil.rmtree(name, dir_fd=parent)
                    else:
                        os.unlink(name, dir_fd=parent)

    def _put(
        self,
        parent: int,
        names: tuple[str, str],
        state: State,
        data: Callable[[], Iterable[bytes]],
    ) -> None:
        name, temp = names
        with suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=parent)
        try:
            if state.kind == "link":
                os.symlink(state.target, os.fsencode(temp), dir_fd=parent)
            else:
                _write(parent, temp, state.mode, data())
            self._on_write(name)
            os.rename(temp, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            with suppress(OSError):
                os.unlink(temp, dir_fd=parent)
            raise

    @contextmanager
    def _parent(self, path: str) -> Generator[tuple[int, str]]:
        """The folder that a path stands in, held open, and its name there."""
        base = "/" if path.startswith("/") else self.root
        *above, name = [part for part in path.split("/") if part]
        if ".." in above or name in ("..", "."):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        fd = os.open(base, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            for part in above:
                inner = os.open(part, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd, name
        finally:
            os.close(fd)


def _look(parent: int, name: str, keep: Callable[[int], str]) -> State:
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        return State("link", target=os.readlink(os.fsencode(name), dir_fd=parent))
    if stat.S_ISDIR(found.st_mode):
        return State("dir", stat.S_IMODE(found.st_mode))
    if not stat.S_ISREG(found.st_mode):
        return State("other")
    fd = os.open(name, _LOOK, dir_fd=parent)
    try:
        opened = os.fstat(fd)
        if not stat.S_ISREG(opened.st_mode):
            return State("other")
        return State("file", stat.S_IMODE(opened.st_mode), keep(fd))
    finally:
        os.close(fd)


def _kind(parent: int, name: str) -> str:
    try:
        return _look(parent, name, lambda fd: "").kind
    except FileNotFoundError:
        return "absent"


def _make_dir(parent: int, name: str, mode: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    fd = os.open(name, _FOLDER, dir_fd=parent)
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _write(parent: int, name: str, mode: int, data: Iterable[bytes]) -> None:
    fd = os.open(name, _WRITE, 0o600, dir_fd=parent)
    with os.fdopen(fd, "wb") as file:
        for piece in data:
            file.write(piece)
        file.flush()
        os.fchmod(fd, mode)
        os.fsync(fd)

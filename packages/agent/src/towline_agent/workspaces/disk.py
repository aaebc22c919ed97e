"""The few ways in which files get into their place: whole, and over nothing that was not meant."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from typing import Final

from towline_agent.workspaces.fence import FILE_FLAGS, FOLDER_FLAGS

__all__ = [
    "Names",
    "give_second_name",
    "move_to_free",
    "respells",
    "sync_folder",
    "write_beside",
]

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 2**20
_NO_LINKS: Final = frozenset(
    {errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
)
"""What a file system says that has no hard links, or allows none here."""


class Names:
    """Names beside files that nothing else has; those of one batch begin alike."""

    def __init__(self) -> None:
        self.prefix = f".towline-{secrets.token_hex(6)}"
        """How each of them begins; it tells this batch from all others."""
        self._given = 0

    def new(self) -> str:
        """The next name."""
        self._given += 1
        return f"{self.prefix}{self._given:04x}"


def write_beside(
    above: int, name: str, data: bytes, mode: int | None, like: os.stat_result | None
) -> None:
    """Write a new file in an open folder, safe on the disk.

    Args:
        above: The open folder.
        name: Its name.
        data: Its bytes.
        mode: Its permission bits; `None` for the usual ones.
        like: A file whose owner and group it gets, where the system lets us.

    Raises:
        OSError: The disk refuses; then nothing of it is left.
    """
    fd = os.open(name, _NEW, 0o666, dir_fd=above)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view[:_CHUNK]) :]
        made = os.fstat(fd)
        if like is not None and (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
            with suppress(OSError):
                os.fchown(fd, like.st_uid, like.st_gid)
        if mode is not None:
            os.fchmod(fd, mode & 0o777)
        os.fsync(fd)
    except BaseException:
        os.unlink(name, dir_fd=above)
        raise
    finally:
        os.close(fd)


def give_second_name(above: int, name: str, kept: str) -> None:
    """Have a file stand under a new name beside too, so that it outlives what comes in its place.

    Where the file system has no hard links it is a copy.
    """
    try:
        os.link(name, kept, src_dir_fd=above, dst_dir_fd=above, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy_beside(above, name, kept)


def move_to_free(old_above: int, old: str, new_above: int, new: str) -> None:
    """Rename; when something stands at the new name it stays as it is.

    Raises:
        FileExistsError: Something stands there.
        OSError: The disk refuses.
    """
    found = os.stat(old, dir_fd=old_above, follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):  # over which nothing but an empty folder could be lost
        _rename_to_free(old_above, old, found, new_above, new)
        return
    try:
        os.link(old, new, src_dir_fd=old_above, dst_dir_fd=new_above, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (*_NO_LINKS, errno.EEXIST):
            raise
        _rename_to_free(old_above, old, found, new_above, new)
        return
    try:
        os.unlink(old, dir_fd=old_above)
    except BaseException:
        os.unlink(new, dir_fd=new_above)
        raise


def sync_folder(above: int) -> None:
    """Make a folder's names safe on the disk, where the system can."""
    with suppress(OSError):
        fd = os.open(".", FOLDER_FLAGS, dir_fd=above)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def respells(above: int, name: str, found: os.stat_result) -> bool:
    """Whether a name is only another spelling of the one that a file or folder has.

    So it is where the file system does not tell capital letters from small ones: the name is found,
    but the folder does not list it.

    Args:
        above: The open folder.
        name: The name in it, found there.
        found: The file or folder that may be the same.
    """
    there = os.stat(name, dir_fd=above, follow_symlinks=False)
    if (there.st_dev, there.st_ino) != (found.st_dev, found.st_ino):
        return False
    fd = os.open(".", FOLDER_FLAGS, dir_fd=above)
    try:
        return name not in os.listdir(fd)
    finally:
        os.close(fd)


def _rename_to_free(
    old_above: int, old: str, found: os.stat_result, new_above: int, new: str
) -> None:
    with suppress(FileNotFoundError):
        if not respells(new_above, new, found):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old, new, src_dir_fd=old_above, dst_dir_fd=new_above)


def _copy_beside(above: int, name: str, kept: str) -> None:
    source = os.open(name, FILE_FLAGS, dir_fd=above)
    try:
        found = os.fstat(source)
        with os.fdopen(source, "rb", closefd=False) as file:
            write_beside(above, kept, file.read(), stat.S_IMODE(found.st_mode), found)
        times = (found.st_atime_ns, found.st_mtime_ns)
        os.utime(kept, ns=times, dir_fd=above, follow_symlinks=False)
    finally:
        os.close(source)

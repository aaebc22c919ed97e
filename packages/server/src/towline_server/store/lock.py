"""One process owns a data folder: whoever holds the OS lock on `store.lock` (C5.3).

The kernel drops the lock when its holder dies, however it dies, so there is nothing to clean up.
"""

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

import msgspec

from towline_server.errors import StoreError, StoreFull, StoreLocked

__all__ = ["LOCK_FILE", "StoreLock", "make_folder", "take_lock", "unusable"]

LOCK_FILE: Final = "store.lock"
"""The file's name in the data folder."""


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    url: str = ""


class StoreLock:
    """A lock that is held."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self._folder = folder
        self._descriptor = descriptor

    def announce(self, url: str) -> None:
        """Write down where this process can be reached, for a second one to name.

        Raises:
            StoreError: It cannot be written.
        """
        text = msgspec.json.encode(_Holder(os.getpid(), url))
        try:
            os.pwrite(self._descriptor, text, 0)
            os.ftruncate(self._descriptor, len(text))
        except OSError as error:
            raise unusable(self._folder, error) from error

    def release(self) -> None:
        """Let the folder go; may be called twice. The file stays: removing it would race."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def make_folder(folder: Path) -> None:
    """Make the data folder, for this user alone, unless it is there.

    Raises:
        StoreFull: The disk has no room for it.
        StoreError: It cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(folder, error) from error


def take_lock(folder: Path) -> StoreLock:
    """Own the data folder, or say who does.

    Raises:
        StoreLocked: Another process owns it.
        StoreFull: The disk has no room for the lock.
        StoreError: The folder cannot be written, or its disk cannot lock.
    """
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(folder, error) from error
    lock = StoreLock(folder, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.announce("")
    except BlockingIOError as error:
        holder = _read_holder(descriptor)
        lock.release()
        raise StoreLocked(_locked(folder, holder), details=holder) from error
    except OSError as error:
        lock.release()
        raise unusable(folder, error) from error
    except StoreError:
        lock.release()
        raise
    return lock


def _read_holder(descriptor: int) -> dict[str, object]:
    try:
        holder = msgspec.json.decode(os.pread(descriptor, 4096, 0), type=_Holder)
    except msgspec.DecodeError:  # it was locked a moment ago and is not written yet
        return {}
    return {"pid": holder.pid, **({"url": holder.url} if holder.url else {})}


def _locked(folder: Path, holder: dict[str, object]) -> str:
    who = f"process {holder['pid']}" if "pid" in holder else "another process"
    at = f" at {holder['url']}" if "url" in holder else ""
    use = f"Open {holder['url']}, stop" if "url" in holder else "Stop"
    return (
        f"The data folder {str(folder)!r} is in use by {who}{at}. {use} that process, or name "
        "another folder with TOWLINE_DATA_DIR."
    )


def unusable(folder: Path, error: OSError) -> StoreError:
    """The exception to raise when the system refuses a file of the data folder."""
    place = f"The data folder {str(folder)!r}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"{place} lies on a full disk: make room, then start again.")
    if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
        return StoreError(
            f"{place} lies on a disk that cannot lock files: name one on a local disk with "
            "TOWLINE_DATA_DIR."
        )
    return StoreError(
        f"{place} cannot be written ({error.strerror}): make it writable, or name another one with "
        "TOWLINE_DATA_DIR."
    )

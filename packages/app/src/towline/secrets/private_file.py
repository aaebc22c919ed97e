"""Files of this user alone: written whole or not at all, by one process at a time."""

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

from towline.secrets.store import SecretsUnavailable

__all__ = ["locked", "read_private", "write_private"]

_PRIVATE: Final = 0o600
_LOCK_S: Final = 30.0
"""Seconds to wait for another process: it may itself wait for a keyring."""
_POLL_S: Final = 0.02


def read_private(path: Path) -> bytes | None:
    """The whole of a file, `None` when there is none; others lose their access to it.

    Raises:
        SecretsUnavailable: It cannot be read, or is no ordinary file.
    """
    try:
        # a pipe in its place would keep whoever opens it waiting
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise SecretsUnavailable(
                    f"{str(path)!r} is no ordinary file; move away what stands there."
                )
            if stat.S_IMODE(mode) & ~_PRIVATE:  # copied or restored with other rights
                os.fchmod(file.fileno(), _PRIVATE)
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SecretsUnavailable(
            f"The file {str(path)!r} cannot be read ({error.strerror}); make it readable for you."
        ) from error


def write_private(path: Path, content: bytes) -> None:
    """Put a file in the place of any before it, readable by this user alone.

    The caller holds the lock of the file, so what an ended process has left half written goes too.

    Raises:
        SecretsUnavailable: It cannot be written; the one before it is whole.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in path.parent.glob(f".{path.name}.*"):
            left.unlink(missing_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600
        fresh = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise SecretsUnavailable(
            f"The file {str(path)!r} cannot be written ({error.strerror}); make its folder "
            "writable and see that there is room."
        ) from error


@contextlib.contextmanager
def locked(path: Path, limit_s: float = _LOCK_S) -> Generator[None]:
    """Hold a lock file against other threads and processes; the system drops it with its holder.

    Raises:
        SecretsUnavailable: Somebody else has held it for all of `limit_s`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
    except OSError as error:
        raise SecretsUnavailable(
            f"The file {str(path)!r} cannot be made ({error.strerror}); make its folder writable."
        ) from error
    try:
        until_s = time.monotonic() + limit_s
        while not _try_lock(lock):
            if time.monotonic() >= until_s:
                raise SecretsUnavailable(
                    f"Another process has held {str(path)!r} for {limit_s:g} s; end it or try "
                    "again."
                )
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

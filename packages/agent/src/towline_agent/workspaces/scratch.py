"""Folders for what programs in a sandbox write beside the one that they work in.

Each folder that is worked in has one, the same for all processes of the user. Whoever uses it holds
a shared lock on the file beside it until it ends, however it ends; one that nobody holds may go.
"""

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from towline_agent.errors import ToolError

__all__ = ["drop_scratch", "make_scratch"]

_LOCKED: Final = ".lock"
_TRIES: Final = 10
"""Times that a lock is looked for: it goes when another process tidies up at this very moment."""

_held: Final[dict[str, int]] = {}
"""The folders that this process uses, with the descriptor that holds each one's lock."""
_lock: Final = threading.Lock()


def make_scratch(root: str) -> str:
    """A folder for what programs of `root` write beside it; the same one each time. Blocks.

    Raises:
        ToolError: There is no place for it.
    """
    ours = _ours()
    place = ours / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    try:
        ours.mkdir(mode=0o700, exist_ok=True)
        if _is_ours_alone(ours):
            with _lock:
                _hold(place)
                place.mkdir(mode=0o700, exist_ok=True)
            return str(place)
    except OSError as error:
        raise ToolError(
            f"There is no place for temporary files ({error.strerror}); make room in "
            f"{str(ours.parent)!r}."
        ) from error
    raise ToolError(
        f"{str(ours)!r} is not ours alone, so nothing is put there; remove it, then try again."
    )


def drop_scratch(*, own: bool = False) -> int:
    """Remove the folders that no process uses. Blocks.

    Args:
        own: Whether this process is done with its own: they go too, unless another one uses them.

    Returns:
        How many are gone.
    """
    ours = _ours()
    with _lock, suppress(OSError):
        if not _is_ours_alone(ours):
            return 0
        if own:
            for descriptor in _held.values():
                os.close(descriptor)
            _held.clear()
        return sum(_drop(place) for place in ours.iterdir() if place.suffix != _LOCKED)
    return 0


def _ours() -> Path:
    return Path(tempfile.gettempdir()) / f"towline-{os.geteuid()}"


def _is_ours_alone(folder: Path) -> bool:
    found = folder.lstat()
    ours = found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return stat.S_ISDIR(found.st_mode) and ours


def _hold(place: Path) -> None:
    """Hold a place's lock until this process ends."""
    if str(place) in _held:
        return
    path = _lock_of(place)
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if _still_stands(path, descriptor):
            _held[str(place)] = descriptor
            return
        os.close(descriptor)
    raise OSError(11, "it is being tidied up all the time")


def _drop(place: Path) -> bool:
    """Remove a place that nobody holds; whether it is gone."""
    if str(place) in _held:
        return False
    path = _lock_of(place)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _still_stands(path, descriptor):
            return False
        shutil.rmtree(place, ignore_errors=True)
        path.unlink()
    except BlockingIOError:
        return False
    else:
        return not place.exists()
    finally:
        os.close(descriptor)


def _lock_of(place: Path) -> Path:
    return place.with_name(place.name + _LOCKED)


def _still_stands(path: Path, descriptor: int) -> bool:
    """Whether a lock is still the one that others find."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    return False

"""Linux's landlock: what a process gives up for itself and all that it starts.

It can only allow, folder by folder, so that a hidden place is one whose neighbours are allowed.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from towline_agent.workspaces.launcher import LANDLOCK

__all__ = ["MIN_ABI", "NETWORK_ABI", "allowed_places", "landlock_abi", "landlock_words"]

MIN_ABI: Final = 3
"""Linux 6.2: before it a file could be cut to nothing anywhere."""
NETWORK_ABI: Final = 4
"""Linux 6.7 closes TCP too."""
_SCOPE_ABI: Final = 6
"""Linux 6.12 also keeps signals and nameless sockets inside."""

_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_ALL: Final = (1 << 15) - 1
"""All rights of version 3, of files and folders."""
_TRUNCATE: Final = 1 << 14
_OF_FILES: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE
_DEVICE: Final = _READ | _WRITE
_TCP: Final = 3
_SCOPES: Final = 3

_DEVICES: Final = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
    *("/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"),  # noqa: S108 - shared, as they are made to be
)


def landlock_abi() -> int:
    """Which version the kernel has; 0 when none, or when it is switched off."""
    if sys.platform != "linux":
        return 0
    found = int(ctypes.CDLL(None, use_errno=True).syscall(LANDLOCK, None, ctypes.c_size_t(0), 1))
    return max(0, found)


def landlock_words(
    *,
    writable: Iterable[str],
    hidden: Iterable[str],
    network: bool,
    abi: int | None = None,
) -> tuple[str, ...]:
    """What a launcher gives up, in its words. Blocks.

    Args:
        writable: Real paths below which all may be written.
        hidden: Real paths that may not be read.
        network: Whether TCP stays open.
        abi: The kernel's version; `None` to ask it.
    """
    abi = landlock_abi() if abi is None else abi
    hidden = frozenset(hidden)
    tcp = _TCP if abi >= NETWORK_ABI and not network else 0
    scopes = _SCOPES if abi >= _SCOPE_ABI else 0
    rules = [("/", _LIST | _EXECUTE)]
    rules += [(place, _READ) for place in allowed_places("/", hidden, _children)]
    for top in writable:
        for place in allowed_places(top, hidden, _children):
            rules.append((place, _ALL if Path(place).is_dir() else _OF_FILES))
    rules += [(place, _DEVICE if not Path(place).is_dir() else _ALL) for place in _DEVICES]
    words = [str(_ALL), str(tcp), str(scopes)]
    for place, bits in rules:
        words += (str(bits), place)
    return tuple(words)


def allowed_places(
    folder: str, hidden: frozenset[str], children: Callable[[str], Iterable[str]]
) -> list[str]:
    """The fewest places below a folder that hold all of it but what is hidden.

    Links are left out: where they lead is a place of its own.
    """
    if folder in hidden:
        return []
    start = folder.rstrip("/") + "/"
    if not any(place.startswith(start) for place in hidden):
        return [folder]
    return [
        place for child in children(folder) for place in allowed_places(child, hidden, children)
    ]


def _children(folder: str) -> list[str]:
    with suppress(OSError), os.scandir(folder) as found:
        return [entry.path for entry in found if not entry.is_symlink()]
    return []

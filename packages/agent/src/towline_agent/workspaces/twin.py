"""Files that are secret ones under another name: hard links (A5.67).

A hard link has no real path that tells what it is. So a file with several names is held against the
secret files that a bounded look finds: those of the folder, and those that lie where keys lie.
"""

import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

__all__ = ["TWIN_NAMES_MAX", "Lead", "Twin", "Twins", "follow"]

TWIN_NAMES_MAX: Final = 50_000
"""Names that are looked at for secret files; of a larger folder it is not known what it holds."""

_KEY_PLACES: Final = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gh", ".")
"""Folders of a home that are looked at too, themselves alone."""
_PASSED_OVER: Final = frozenset({"objects"})
"""Folders of `.git` in which no secret file has its name."""


class Twin(NamedTuple):
    """A secret file that another name leads to."""

    path: str | None
    """Its path: below the folder, absolute elsewhere; `None` when the folder holds too much to
    know."""

    @property
    def names(self) -> tuple[str, ...]:
        """The path, if it is known."""
        return () if self.path is None else (self.path,)

    def doubt(self, path: str) -> str | None:
        """Why a person is asked about a file of which it is not known; `None` where it is.

        Args:
            path: The file as it is called.
        """
        if self.path is not None:
            return None
        return (
            f"{path!r} has other names, by hard links, and the folder holds too much to see "
            "whether one of them is a secret file's."
        )


class Lead(NamedTuple):
    """Where a path leads."""

    real: str
    """The real, absolute path; the path as it was written when it is none."""
    shown: str
    """The same below the root; absolute outside."""
    twin: Twin | None
    """The secret file that stands there under another name."""


def follow(root: str, path: str, secret: Callable[[str], bool]) -> Lead:
    """Where a path leads, and which secret file that is. Blocks.

    Args:
        root: The folder that a relative path begins at.
        path: As it was written.
        secret: Whether a path is a secret file's.
    """
    try:
        base = os.path.realpath(root)
        real = os.path.realpath(os.path.join(base, path))
    except ValueError:  # no path at all, which reading tells
        return Lead(path, path, None)
    inside = real == base or real.startswith(base.rstrip("/") + "/")
    shown = os.path.relpath(real, base) if inside else real
    return Lead(real, shown, Twins(base, secret).find(real))


class Twins:
    """Knows of files of several names whether one of them is a secret file's.

    The folder is looked through when the first such file comes, and then once.

    Args:
        root: The folder.
        secret: Whether a path is a secret file's.
        home: Where keys of the user lie.
        most: Names that are looked at.
    """

    def __init__(
        self,
        root: str,
        secret: Callable[[str], bool],
        *,
        home: str | None = None,
        most: int = TWIN_NAMES_MAX,
    ) -> None:
        self._root = root
        self._secret = secret
        self._home = os.path.expanduser("~") if home is None else home
        self._left = most
        self._known: dict[tuple[int, int], str] | None = None

    def find(self, real: str) -> Twin | None:
        """The secret file that a path leads to under another name; `None` for none. Blocks.

        Args:
            real: The real, absolute path.
        """
        try:
            found = os.stat(real, follow_symlinks=False)
        except (OSError, ValueError):  # nothing there, which reading tells
            return None
        if not stat.S_ISREG(found.st_mode) or found.st_nlink < 2:
            return None
        if self._known is None:
            self._known = dict(self._look())
        path = self._known.get((found.st_dev, found.st_ino))
        if path is not None:
            return Twin(path)
        return Twin(None) if self._left <= 0 else None

    def _look(self) -> Iterator[tuple[tuple[int, int], str]]:
        """The secret files that have several names."""
        for place in _KEY_PLACES:
            folder = os.path.normpath(os.path.join(self._home, place))
            yield from self._list(folder, f"{folder}/", deque())
        folders = deque([""])
        while folders and self._left > 0:
            below = folders.popleft()
            yield from self._list(os.path.join(self._root, below), below, folders)

    def _list(
        self, folder: str, below: str, folders: deque[str]
    ) -> Iterator[tuple[tuple[int, int], str]]:
        try:
            entries = os.scandir(folder)
        except OSError:  # not there, or closed to us
            return
        with entries:
            for entry in entries:
                self._left -= 1
                if self._left <= 0:
                    return
                path = below + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not (entry.name in _PASSED_OVER and below.endswith(".git/")):
                        folders.append(f"{path}/")
                elif self._secret(path):
                    yield from _identity(entry, path)


def _identity(entry: os.DirEntry[str], path: str) -> Iterator[tuple[tuple[int, int], str]]:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # it went meanwhile
        return
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        yield (found.st_dev, found.st_ino), path

"""The fence round a root: from a path as it was written to an open folder and a name in it."""

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from towline_agent.errors import ToolError
from towline_agent.workspaces.paths import denied_outside, failed_path

__all__ = [
    "DEPTH_MAX",
    "FILE_FLAGS",
    "FOLDER_FLAGS",
    "PATH_MAX_BYTES",
    "Fence",
    "Place",
    "is_below",
]

FILE_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
"""How a file is opened: a pipe or terminal must not hold the reader up or take it over."""
FOLDER_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
"""How a folder is opened to list its names."""

PATH_MAX_BYTES: Final = 4096
"""Bytes of a path, as on Linux; what goes name by name would not be stopped by the system."""
DEPTH_MAX: Final = 256
"""Names in a path: each costs calls of the system, and no project lies deeper."""

_STEP: Final = FOLDER_FLAGS | getattr(os, "O_PATH", 0)
"""How a folder on the way is opened; where the system can, without the right to list it."""


class Place(NamedTuple):
    """Where a path leads, judged: it lies inside, as far as links were followed."""

    path: str
    """The path as it was written, for messages."""
    real: str
    """The real, absolute path."""
    shown: str
    """Relative to the root; absolute when it lies outside by a grant. `.` for the root."""
    base: str
    """The real folder from which it is reached."""
    parts: tuple[str, ...]
    """The names from there on, no link among them but the last at most; none for `base` itself."""


def is_below(path: str, folder: str) -> bool:
    """Whether a real, absolute path is the folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Fence:
    """Judges paths, and opens what it judged.

    A path is judged by its real path: links followed, `..` after them. What was judged is then
    opened name by name from the root down, and no step follows a link: one that was swapped in
    meanwhile is refused, so that what is opened is what was judged.

    Args:
        root: The folder, absolute; it may itself be a link.
        hidden: Folders that count as outside even where they lie in the root (A5.8).
        granted: Real, absolute paths outside that may be reached, with all below them.
    """

    def __init__(
        self, root: str, hidden: Sequence[str] = (), granted: frozenset[str] = frozenset()
    ) -> None:
        self.root = root
        """The folder, absolute."""
        self.hidden = tuple(hidden)
        """What counts as outside."""
        self.granted = granted
        """What may be reached outside."""

    def judge(self, path: str, *, follow: bool = True) -> Place:
        """Where a path leads.

        Args:
            path: Relative to the root, or absolute.
            follow: Whether a link at its end is followed; else the link itself is meant.

        Raises:
            ToolDenied: It leads outside.
            ToolError: It is no path at all.
        """
        try:
            root = os.path.realpath(self.root)
            if len(os.fsencode(path)) >= PATH_MAX_BYTES:
                raise failed_path(path, OSError(errno.ENAMETOOLONG, ""))
            real = _real(os.path.join(root, path), follow)
            if b"\0" in os.fsencode(real):
                raise ValueError("a NUL character")
        except ValueError as error:  # also what the file system can't name
            raise ToolError(f"{path!r} is no path that can be used; check it.") from error
        base = self._base(real, root)
        if base is None or any(is_below(real, os.path.realpath(part)) for part in self.hidden):
            raise denied_outside(path, self.root)
        below = real[len(base.rstrip("/")) + 1 :]
        parts = tuple(below.split("/")) if below else ()
        if len(parts) > DEPTH_MAX or len(os.fsencode(real)) >= PATH_MAX_BYTES:
            raise failed_path(path, OSError(errno.ENAMETOOLONG, ""))
        return Place(path, real, _show(real, root), base, parts)

    def show(self, real: str) -> str:
        """A real path as it is told: relative to the root, absolute outside."""
        return _show(real, os.path.realpath(self.root))

    @contextmanager
    def enter(
        self, place: Place, make: Callable[[int, str, str], None] | None = None
    ) -> Generator[tuple[int, str]]:
        """Open the folder above a place.

        Args:
            place: What was judged.
            make: Makes a folder that is missing on the way: gets the open folder above it, its
                name and its real path.

        Yields:
            The open folder and the name in it; the folder itself and `.` for the root.

        Raises:
            OSError: A part of the way is missing or no folder.
            ToolDenied: A link stands on the way that was not there before, or a hidden folder.
        """
        *way, name = place.parts or (".",)
        fd = os.open(place.base, _STEP)
        try:
            real = place.base
            for part in way:
                real = os.path.join(real, part)
                fd = self._step(fd, part, real, place, make)
            yield fd, name
        finally:
            os.close(fd)

    def open(self, place: Place, flags: int) -> int:
        """Open what a place names; the caller closes it.

        Raises:
            OSError: It is missing or can't be opened so.
            ToolDenied: It has become a link, or is a hidden folder.
        """
        with self.enter(place) as (above, name):
            try:
                fd = os.open(name, flags, dir_fd=above)
            except OSError as error:
                self._refuse_link(above, name, place, error)
                raise
        if self.is_hidden(os.fstat(fd)):
            os.close(fd)
            raise denied_outside(place.path, self.root)
        return fd

    def is_hidden(self, found: os.stat_result) -> bool:
        """Whether this is a hidden folder, by whatever name it was reached."""
        if not stat.S_ISDIR(found.st_mode):
            return False
        return any(_same(found, folder) for folder in self.hidden)

    def _base(self, real: str, root: str) -> str | None:
        if is_below(real, root):
            return root
        for grant in sorted(self.granted):
            if is_below(real, grant):
                return os.path.dirname(grant)
        return None

    def _step(
        self,
        above: int,
        name: str,
        real: str,
        place: Place,
        make: Callable[[int, str, str], None] | None,
    ) -> int:
        """One folder down; closes the one above when it returns."""
        try:
            fd = os.open(name, _STEP, dir_fd=above)
        except FileNotFoundError:
            if make is None:
                raise
            make(above, name, real)
            fd = os.open(name, _STEP, dir_fd=above)
        except OSError as error:
            self._refuse_link(above, name, place, error)
            raise
        if self.is_hidden(os.fstat(fd)):
            os.close(fd)
            raise denied_outside(place.path, self.root)
        os.close(above)
        return fd

    def _refuse_link(self, above: int, name: str, place: Place, error: OSError) -> None:
        """Tell a link that was swapped in from one that leads round in a circle."""
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            return
        try:
            found = os.stat(name, dir_fd=above, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISLNK(found.st_mode):
            if os.path.realpath(place.real) == place.real:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
            raise denied_outside(place.path, self.root) from error


def _real(path: str, follow: bool) -> str:
    if follow:
        return os.path.realpath(path)
    above, name = os.path.split(path.rstrip("/") or "/")
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(above), name)


def _show(real: str, root: str) -> str:
    return (real[len(root.rstrip("/")) + 1 :] or ".") if is_below(real, root) else real


def _same(found: os.stat_result, folder: str) -> bool:
    try:
        other = os.stat(folder)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (other.st_dev, other.st_ino)

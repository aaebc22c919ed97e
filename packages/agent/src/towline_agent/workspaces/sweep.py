"""A bounded look for files that a program which reads a whole folder would read."""

import fnmatch
import glob
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from towline_agent.workspaces.ignore import IGNORE_FILE, IGNORE_MAX_BYTES, Ignore
from towline_agent.workspaces.twin import Twins

__all__ = ["EXPANDED_MAX", "SWEEP_MAX", "Found", "Look", "expand_pattern", "find_below"]

SWEEP_MAX: Final = 50_000
"""Names that are looked at; of a larger folder it is not known what it holds."""
EXPANDED_MAX: Final = 5_000
"""Names that one pattern of a shell may stand for."""

_FOUND_MAX: Final = 20
"""What is found beyond these adds nothing to what a person is asked."""
_IGNORE_MORE: Final = frozenset({".ignore", ".rgignore"})
"""Files that may have a program read what a `.gitignore` leaves out."""
_CONFIG_BYTES: Final = 256 * 1024
_SECRET_IN_CONFIG: Final = re.compile(
    rb"://[^/\s@]*:[^/\s@]*@|token|passw|secret|extraheader", re.I
)
_NO_NAMES: Final = frozenset({"objects"})
"""Folders of `.git` that are not looked at: their names are numbers."""


class Look(NamedTuple):
    """Which files count."""

    secret: Callable[[str], bool]
    """Whether a path, below the folder or absolute, is a secret file's."""
    hidden: bool = True
    """Whether names count that begin with a dot."""
    ignored: bool = True
    """Whether what a `.gitignore` leaves out counts."""
    links: bool = False
    """Whether links are followed."""
    globs: tuple[str, ...] = ()
    """Patterns of names, with a `!` ahead those that do not count; the last one that fits."""
    folders: tuple[str, ...] = ()
    """Patterns of names of folders that do not count."""
    twins: Twins | None = None
    """Knows the files that are secret ones under another name."""


class Found(NamedTuple):
    """What a look has found."""

    paths: tuple[str, ...]
    """Absolute paths."""
    whole: bool
    """Whether these are all, or so many that more add nothing."""


def find_below(folder: str, look: Look, *, most: int = SWEEP_MAX) -> Found:
    """The secret files below a real folder. Blocks.

    Git's own settings count only where they hold a password or the like.
    """
    walk = _Sweep(folder, look, most)
    paths = tuple(islice(walk.run(), _FOUND_MAX))
    if walk.read_more and not look.ignored:  # what leaves out more may also leave out less
        return find_below(folder, look._replace(ignored=True), most=most)
    return Found(paths, walk.left > 0 or len(paths) == _FOUND_MAX)


def expand_pattern(folder: str, pattern: str, *, wide: bool) -> Found:
    """What a shell puts in the place of a pattern. Blocks.

    Args:
        folder: Where the shell stands.
        pattern: The pattern.
        wide: Whether it may also fit hidden names, and `**` any depth.
    """
    plain = re.sub(r"\[[^/]*\]", "*", pattern)
    names = glob.iglob(plain, root_dir=folder, recursive=wide, include_hidden=wide)
    paths = tuple(os.path.join(folder, name) for name in islice(names, EXPANDED_MAX + 1))
    return Found(paths, len(paths) <= EXPANDED_MAX)


class _Sweep:
    """One look while it goes on."""

    def __init__(self, folder: str, look: Look, most: int) -> None:
        self.left = most
        self.read_more = False
        self._top = folder
        self._prefix = ""  # from the repository's top, by which patterns go
        self._look = look
        self._seen: set[tuple[int, int]] = set()

    def run(self) -> Iterator[str]:
        """The paths, level by level."""
        ignore = None if self._look.ignored else self._ignore_above()
        folders: deque[tuple[str, Ignore | None]] = deque([("", ignore)])
        while folders and self.left > 0:
            below, ignore = folders.popleft()
            yield from self._list(below, ignore, folders)

    def _list(
        self, below: str, ignore: Ignore | None, folders: deque[tuple[str, Ignore | None]]
    ) -> Iterator[str]:
        here = os.path.join(self._top, below)
        if ignore is not None:
            text = _read(os.path.join(here, IGNORE_FILE))
            ignore = ignore.within(f"{self._prefix}{below}".rstrip("/"), text)
        try:
            entries = os.scandir(here)
        except OSError:  # closed to us, and so to a program
            return
        with entries:
            for entry in entries:
                self.left -= 1
                if self.left <= 0:
                    return
                self.read_more = self.read_more or entry.name in _IGNORE_MORE
                path = below + entry.name
                is_dir = self._is_dir(entry)
                if self._passes_over(entry.name, path, ignore, is_dir):
                    continue
                if not is_dir:
                    yield from self._judge(entry, path)
                elif self._enters(entry, below):
                    folders.append((f"{path}/", ignore))

    def _is_dir(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir(follow_symlinks=self._look.links)
        except OSError:
            return False

    def _passes_over(self, name: str, path: str, ignore: Ignore | None, is_dir: bool) -> bool:
        look = self._look
        if name[:1] == "." and not look.hidden:
            return True
        if is_dir and any(fnmatch.fnmatchcase(name, pattern) for pattern in look.folders):
            return True
        if ignore is None:
            return False
        return ignore.leaves_out(self._prefix + path, name, is_dir=is_dir)

    def _ignore_above(self) -> Ignore | None:
        """What files above the folder leave out in it; `None` where no repository is.

        Programs heed such files in repositories alone.
        """
        above = self._top
        while not os.path.lexists(os.path.join(above, ".git")):
            if above == os.path.dirname(above):
                return None
            above = os.path.dirname(above)
        ignore = Ignore()
        for name in os.path.relpath(self._top, above).split("/"):
            if name != ".":
                text = _read(os.path.join(above, self._prefix, IGNORE_FILE))
                ignore = ignore.within(self._prefix.rstrip("/"), text)
                self._prefix += f"{name}/"
        return ignore

    def _enters(self, entry: os.DirEntry[str], below: str) -> bool:
        """Whether a folder is listed: none twice, whatever links lead to it."""
        if entry.name in _NO_NAMES and below.endswith(".git/"):
            return False
        if not self._look.links:
            return True
        try:
            found = entry.stat()
        except OSError:
            return False
        known = (found.st_dev, found.st_ino) in self._seen
        self._seen.add((found.st_dev, found.st_ino))
        return not known

    def _judge(self, entry: os.DirEntry[str], path: str) -> Iterator[str]:
        look = self._look
        if look.globs and not _wants(entry.name, look.globs):
            return
        if entry.is_symlink():
            full = os.path.join(self._top, path)
            if look.links and (look.secret(path) or look.secret(os.path.realpath(full))):
                yield full
        elif look.secret(path):
            full = os.path.join(self._top, path)
            if not _is_harmless_config(path, full):
                yield full
        elif look.twins is not None and _has_names(entry):
            full = os.path.join(self._top, path)
            if look.twins.find(full) is not None:
                yield full


def _has_names(entry: os.DirEntry[str]) -> bool:
    """Whether a file has more than one name."""
    try:
        return entry.stat(follow_symlinks=False).st_nlink > 1
    except OSError:  # it went meanwhile
        return False


def _wants(name: str, globs: tuple[str, ...]) -> bool:
    """Whether a file's name counts; of a pattern with folders that can't be said, so it does."""
    for pattern in reversed(globs):
        plain = pattern.removeprefix("!")
        if "/" in plain or "{" in plain:
            if pattern[:1] != "!":
                return True
        elif fnmatch.fnmatchcase(name, plain):
            return pattern[:1] != "!"
    return not globs or globs[0][:1] == "!"


def _is_harmless_config(path: str, full: str) -> bool:
    """Whether these are settings of git without a password."""
    if not f"/{path}".endswith("/.git/config"):
        return False
    try:
        if not stat.S_ISREG(os.stat(full).st_mode):
            return False
        with open(full, "rb") as file:
            raw = file.read(_CONFIG_BYTES + 1)
    except OSError:
        return True
    return len(raw) <= _CONFIG_BYTES and _SECRET_IN_CONFIG.search(raw) is None


def _read(path: str) -> str | None:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as file:
            return file.read(IGNORE_MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return None

"""The disk under commands: what they would find there when they are judged (A5.64, A5.67)."""

import os
import posixpath

from towline_agent.permissions.ground import GitRead, GitSight, Ground, Names, Sight, Sweep
from towline_agent.permissions.secret import SECRET_GLOBS, is_secret
from towline_agent.workspaces.fence import is_below
from towline_agent.workspaces.git_folder import (
    Repository,
    find_repository,
    read_history,
    read_index,
    tell_start,
)
from towline_agent.workspaces.sweep import Look, expand_pattern, find_below
from towline_agent.workspaces.twin import Twins

__all__ = ["DiskGround"]


class DiskGround(Ground):
    """Looks at the disk, within bounds. Blocks.

    Args:
        root: The folder that commands run in.
    """

    def __init__(self, root: str) -> None:
        self._twins = Twins(root, is_secret)
        self._starts: dict[Repository, str | None] = {}

    def real(self, path: str) -> str:
        """An absolute path with its links followed."""
        return os.path.realpath(path)

    def names(self, real: str) -> Names:
        """The secret files that a real path leads to under another name."""
        twin = self._twins.find(real)
        return Names() if twin is None else Names(paths=twin.names, doubt=twin.doubt(real))

    def expand(self, folder: str, pattern: str, *, wide: bool) -> Sight:
        """The files that a shell would put in the place of a pattern."""
        found = expand_pattern(folder, pattern, wide=wide)
        doubt = None if found.whole else f"{pattern!r} stands for too many files to look at each."
        return Sight(paths=found.paths, doubt=doubt)

    def find_secrets(self, folder: str, sweep: Sweep) -> Sight:
        """The secret files below a folder that a command would read; nothing below a file."""
        found = find_below(
            os.path.realpath(folder),
            Look(
                is_secret,
                hidden=sweep.hidden,
                ignored=sweep.ignored,
                links=sweep.links,
                globs=sweep.globs,
                folders=sweep.folders,
                twins=self._twins,
            ),
        )
        doubt = (
            None if found.whole else "The folder holds too much to see whether secrets are read."
        )
        return Sight(paths=found.paths, doubt=doubt)

    def look_at_git(self, folder: str, read: GitRead) -> GitSight:
        """What git would start and print in a folder."""
        found = find_repository(folder)
        if found is None:
            return GitSight()
        if found not in self._starts:
            self._starts[found] = tell_start(found)
        starts = self._starts[found]
        if starts is not None or not read.prints:
            return GitSight(starts=starts)
        return _look_at_files(folder, found, read)


def _look_at_files(folder: str, found: Repository, read: GitRead) -> GitSight:
    """The secret files that git would print: of those it tracks, and of earlier commits."""
    doubt = None
    entries = read_index(found)
    names = {entry.path for entry in entries or ()}
    if entries is None:
        doubt = "Which files git tracks can't be read, so secrets may be among what it prints."
    paths = [*read.paths, *(word for word in read.operands if _is_there(folder, word))]
    if read.history or len(paths) < len(read.paths) + len(read.operands):
        history = read_history(found, SECRET_GLOBS)
        names.update(history or ())
        if history is None:
            doubt = "The history can't be looked through, so secrets may be among what git prints."
    reached = [posixpath.join(found.top, name) for name in sorted(names) if is_secret(name)]
    limits = [posixpath.normpath(posixpath.join(folder, path)) for path in paths]
    if limits and all(_is_plain(path) for path in paths):
        reached = [path for path in reached if any(is_below(path, limit) for limit in limits)]
    return GitSight(secrets=tuple(reached), doubt=doubt)


def _is_there(folder: str, word: str) -> bool:
    return os.path.lexists(posixpath.join(folder, word))


def _is_plain(path: str) -> bool:
    """Whether git reads a word as this path alone."""
    return path[:1] != ":" and not any(sign in path for sign in "*?[\\")

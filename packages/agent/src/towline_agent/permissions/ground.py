"""What a command would find on the disk at the moment when it is judged (A5.64, A5.67)."""

import posixpath

import msgspec

__all__ = ["GitRead", "GitSight", "Ground", "Names", "Sight", "Sweep"]


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """How a command reads all files below a folder."""

    hidden: bool = True
    """Whether it reads files and folders whose name begins with a dot."""
    ignored: bool = True
    """Whether it reads what a `.gitignore` leaves out."""
    links: bool = False
    """Whether it follows links that it meets."""
    globs: tuple[str, ...] = ()
    """Patterns of the names that it reads, those that it leaves out with a `!` ahead; the last one
    that fits decides. None for all names."""
    folders: tuple[str, ...] = ()
    """Patterns of the names of folders that it leaves out."""


class GitRead(msgspec.Struct, frozen=True, kw_only=True):
    """How a command of git reads."""

    prints: bool = False
    """Whether it prints what files hold."""
    history: bool = False
    """Whether also as they were in earlier commits."""
    operands: tuple[str, ...] = ()
    """Words that may be paths or revisions."""
    paths: tuple[str, ...] = ()
    """Words that can only be paths."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found."""

    paths: tuple[str, ...] = ()
    """Real, absolute paths."""
    doubt: str | None = None
    """Why there may be more."""


class GitSight(msgspec.Struct, frozen=True, kw_only=True):
    """What a command of git would meet."""

    starts: str | None = None
    """A sentence on the program that the repository would have it start."""
    secrets: tuple[str, ...] = ()
    """Secret files that it would print, as absolute paths."""
    doubt: str | None = None
    """Why there may be more."""


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """What a file is called besides."""

    paths: tuple[str, ...] = ()
    """Secret files that are the same one, by a hard link."""
    doubt: str | None = None
    """Why it is not known."""


class Ground:
    """Where commands run; this one has no disk, so nothing is found on it."""

    def real(self, path: str) -> str:
        """An absolute path with its links followed."""
        return posixpath.normpath(path)

    def names(self, real: str) -> Names:
        """The secret files that a real path leads to under another name."""
        return Names()

    def expand(self, folder: str, pattern: str, *, wide: bool) -> Sight:
        """The files that a shell would put in the place of a pattern.

        Args:
            folder: Where the shell stands.
            pattern: As it is written, without quotes.
            wide: Whether options of the shell may make it fit more than usual.
        """
        return Sight()

    def find_secrets(self, folder: str, sweep: Sweep) -> Sight:
        """The secret files below a folder that a command would read; nothing below a file."""
        return Sight()

    def look_at_git(self, folder: str, read: GitRead) -> GitSight:
        """What git would start and print in a folder."""
        return GitSight()

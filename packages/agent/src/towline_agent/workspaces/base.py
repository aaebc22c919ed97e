"""The workspace seam: where tools touch files and processes."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, Self

import msgspec

from towline_protocol import FileChange, Process

__all__ = [
    "ABSENT",
    "Deed",
    "DirEntry",
    "Edit",
    "FileData",
    "Intent",
    "Keeper",
    "MakeDir",
    "Move",
    "ProgramResult",
    "Put",
    "Remove",
    "Walk",
    "Workspace",
    "hash_bytes",
]

ABSENT: Final = ""
"""The `expect` of an edit where nothing may stand yet."""


def hash_bytes(data: bytes) -> str:
    """The content hash that edits, previews and checkpoints use: SHA-256 in hex."""
    import hashlib  # for who works with files: it brings OpenSSL along

    return hashlib.sha256(data).hexdigest()


class DirEntry(msgspec.Struct, frozen=True):
    """One name in a folder."""

    name: str
    """The name alone; in a walk the path below the folder that was walked, with `/`."""
    kind: str
    """`file`, `dir`, `link` or `other`."""
    size: int
    """Bytes; 0 for folders."""
    mtime_ns: int = 0
    """When the file was changed last, in nanoseconds since 1970; 0 for all else."""


class Walk(msgspec.Struct, frozen=True):
    """What a walk found."""

    entries: tuple[DirEntry, ...]
    """Sorted by path; folders are listed too, links are listed and not followed."""
    truncated: bool = False
    """Whether a bound ended it."""


class FileData(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it stands."""

    data: bytes
    """Its bytes."""
    mode: int
    """Its permission bits."""
    mtime_ns: int
    """When it was changed last, in nanoseconds since 1970."""

    @property
    def hash(self) -> str:
        """Its content hash."""
        return hash_bytes(self.data)


class Put(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Write a file whole; folders above it are made."""

    path: str
    """Where."""
    data: bytes
    """Its new bytes."""
    mode: int | None = None
    """Its permission bits; `None` for those it has, or the usual ones of a new file."""
    expect: str | None = None
    """The hash it must have now, `ABSENT` for none; `None` for whatever stands there."""


class MakeDir(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Make a folder, and those above it; one that is there already is left alone."""

    path: str
    """Where."""


class Remove(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Remove a file, a link, or a folder with all in it."""

    path: str
    """What."""
    expect: str | None = None
    """The hash that the file must have now; `None` for any."""


class Move(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Move a file, a link, or a folder with all in it; nothing may stand at the target."""

    source: str
    """From where."""
    target: str
    """To where; folders above it are made."""
    expect: str | None = None
    """The hash that the file must have now; `None` for any."""


Edit = Put | MakeDir | Remove | Move
"""One change of files."""


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """What one edit is about to do, as a keeper is told it; its paths are real ones."""

    number: int
    """Its place in the batch; one that is told again takes the place of what was told before."""
    kind: str
    """`put`, `dir`, `there` for a folder that stands already, `remove` or `move`."""
    path: str
    """Where."""
    target: str = ""
    """To where something moves."""
    hash: str = ""
    """The hash of a file that is written."""
    mode: int | None = None
    """Its permission bits; `None` for those it has, or the usual ones of a new file."""
    expect: str | None = None
    """The hash that it must have before, `ABSENT` for none; `None` for any."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch of edits is about to do: enough to make it whole after a crash (A5.12)."""

    prefix: str
    """How the names begin under which it puts things aside, beside what they stood at; it tells
    this batch from all others."""
    deeds: tuple[Deed, ...]
    """What is told for the first time, or in another way than before."""


class Keeper(Protocol):
    """Told of every path that edits touch; keeps what is needed to undo them (A5.71).

    It is called in a thread, one batch of edits at a time. Paths are real ones: relative to the
    root (absolute where granted outside it), no link on the way, a link at the end meant itself,
    names as `os.fsdecode` gives them. Folders that are made, and every file, link and folder in one
    that moves or goes, are named by themselves, and so are the places they move to.
    """

    def before(self, paths: tuple[str, ...], intent: Intent) -> None:
        """Keep what stands at these, nothing included, before it changes, and what is meant to be.

        For one batch it may be called more than once, never for the same path. What it raises ends
        the batch with nothing changed.
        """
        ...

    def after(self, paths: tuple[str, ...]) -> None:
        """Take note of what stands at all of these now; not called when the batch failed."""
        ...

    def settled(self, *, whole: bool) -> None:
        """The batch is over.

        Args:
            whole: Whether it is wholly done or wholly undone, and nothing stands aside any more;
                else the disk let it be neither.
        """
        ...

    def ran(self, line: str) -> int:
        """Take note of a command before it begins; gives its number (A5.74)."""
        ...

    def ended(self, number: int) -> tuple[str, ...]:
        """Find out which of the paths that edits touched a command has changed."""
        ...


class ProgramResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended."""

    exit_code: int | None
    """Its exit code, negative for a signal; `None` when it was ended from outside."""
    output: str
    """Standard output and error together, cut in the middle when too long (A5.18, R49)."""
    truncated: bool = False
    """Whether the output was cut."""
    why: str | None = None
    """Why it was ended from outside, as half a sentence; `None` when its time ran out, or when it
    ended by itself."""


class Workspace(Protocol):
    """A fenced place to work in.

    Paths are relative to `root`, or absolute below it; a path that leads outside on the real file
    system, symbolic links followed, raises `ToolDenied` unless it was granted (A5.1 to A5.3). What
    is missing or unreadable raises `ToolError` with a sentence for the model. Cancelling `run` ends
    the program and all its children before the cancellation goes on (A5.19).
    """

    root: str
    """The folder, absolute, as the model is told it."""

    async def read(self, path: str) -> FileData:
        """A file with its mode and time."""
        ...

    async def walk(self, path: str, *, deep: bool = True, ignored: bool = False) -> Walk:
        """What a folder holds.

        Args:
            path: The folder.
            deep: Also in its subfolders; else its own names alone.
            ignored: Also what `.gitignore` files leave out (A5.4); `.git` itself never when deep.
        """
        ...

    async def apply(self, edits: tuple[Edit, ...]) -> tuple[FileChange, ...]:
        """Change files: all of it or none.

        Everything is checked first; what fails on the way is undone. Each file is written to one
        beside it and moved into its place (A5.6). The changes tell hashes and, of texts, the diff.

        Raises:
            ToolError: A file is not as an edit expects it ("changed since you looked"), something
                stands at the target of a move, or the disk refuses.
        """
        ...

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        timeout_s: float,
        on_start: Callable[[Process], Awaitable[None]],
        on_output: Callable[[str], None],
        stdin: bytes = b"",
        network: bool = False,
    ) -> ProgramResult:
        """Run a program in its own process group; its input is `stdin`, then its end.

        Args:
            argv: The program and its arguments; no shell reads them.
            timeout_s: Seconds after which the whole process tree is ended.
            on_start: Awaited when the process exists but before the program begins, so that its
                start is durable before its effect (C5.5, C5.6).
            on_output: Called with each piece of output as it comes.
            stdin: What it reads.
            network: Whether it may reach the network, where a sandbox could keep it from that.
        """
        ...

    def grant(self, paths: frozenset[str]) -> Self:
        """The same place, with these real, absolute paths outside reachable too."""
        ...

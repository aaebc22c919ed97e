"""A folder of this machine as a workspace."""

import copy
import errno
import os
import stat
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Self

from towline_agent.workspaces.base import Edit, FileData, Keeper, ProgramResult, Walk
from towline_agent.workspaces.edit import apply_edits
from towline_agent.workspaces.fence import FILE_FLAGS, FOLDER_FLAGS, Fence, is_below
from towline_agent.workspaces.keeper import run_noted
from towline_agent.workspaces.paths import failed_path, too_big
from towline_agent.workspaces.program import run_program
from towline_agent.workspaces.sandbox import Confinement
from towline_agent.workspaces.threads import FILES, run_to_the_end
from towline_agent.workspaces.walk import walk_folder
from towline_protocol import FileChange, Process

__all__ = ["READ_MAX_BYTES", "LocalWorkspace", "OpenFolder"]

READ_MAX_BYTES: Final = 16 * 2**20
"""Bytes of one file that are read into memory; source and logs of any use are smaller."""


class OpenFolder(NamedTuple):
    """A folder that is held open, so that what is searched is what was judged."""

    fd: int
    """The open folder; whoever asked for it closes it."""
    hidden: tuple[str, ...]
    """What must not be looked at, as paths below it."""


class LocalWorkspace:
    """A folder of this machine; files are used in threads, programs run as children.

    Args:
        root: The folder. It need not exist yet; what is missing is told at use.
        hidden: Folders that count as outside even where they lie in the root, such as the one in
            which towline keeps its own data (A5.8).
        keeper: Told of every path that edits touch.
        sandbox: Whether programs run in one: one of `SANDBOXES` (A5.21).

    Raises:
        UsageError: There is no such choice.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        hidden: Sequence[str | os.PathLike[str]] = (),
        keeper: Keeper | None = None,
        sandbox: str = "auto",
    ) -> None:
        self.root = os.path.abspath(root)
        """The folder, absolute, as the model is told it."""
        self._fence = Fence(self.root, tuple(os.path.abspath(folder) for folder in hidden))
        self.confinement = Confinement(self.root, mode=sandbox, hidden=self._fence.hidden)
        """What its programs are kept in by."""
        self._keeper = keeper
        self._turn = threading.Lock()  # one edit at a time, as a keeper is promised

    async def read(self, path: str) -> FileData:
        """A file, `READ_MAX_BYTES` at most.

        Raises:
            ToolDenied: The path leads outside.
            ToolError: It is missing, no file, unreadable or too large.
        """
        return await FILES.run(lambda: self._read(path))

    async def walk(self, path: str, *, deep: bool = True, ignored: bool = False) -> Walk:
        """What a folder holds; links are listed and not followed.

        Raises:
            ToolDenied: The path leads outside.
            ToolError: It is missing, no folder or unreadable.
        """
        return await FILES.run(lambda: walk_folder(self._fence, path, deep=deep, ignored=ignored))

    async def apply(self, edits: tuple[Edit, ...]) -> tuple[FileChange, ...]:
        """Change files: all of it or none. A cancel waits for its end.

        Raises:
            ToolDenied: A path leads outside.
            ToolError: A file is not as an edit expects it, something stands at the target of a
                move, or the disk refuses.
        """
        return await run_to_the_end(FILES.run(lambda: self._apply(edits)))

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
        """Run a program in its own process group and session, in a sandbox if there is one.

        Args:
            argv: The program and its arguments; no shell reads them.
            timeout_s: Seconds from its begin after which the whole process tree is ended.
            on_start: Awaited when the process exists but before the program begins.
            on_output: Called with each piece of output as it comes.
            stdin: What it reads, then its input's end.
            network: Whether it may reach the network.

        Raises:
            ToolError: It can't be started.
        """
        work = run_program(
            argv,
            root=self.root,
            timeout_s=timeout_s,
            on_start=on_start,
            on_output=on_output,
            stdin=stdin,
            network=network,
            confinement=self.confinement,
            writable=self._fence.granted,
        )
        return await run_noted(self._keeper, argv, work)

    async def open_folder(self, path: str) -> OpenFolder:
        """Open a folder for a program of ours that only reads, such as a search.

        Raises:
            ToolDenied: The path leads outside.
            ToolError: It is missing, no folder or unreadable.
        """
        return await FILES.run(lambda: self._open_folder(path))

    async def tell_limits(self) -> str:
        """What programs may do here, as sentences for a model (A4.10)."""
        return await FILES.run(self.confinement.describe)

    def grant(self, paths: frozenset[str]) -> Self:
        """The same folder, with these real, absolute paths outside reachable too."""
        granted = copy.copy(self)
        fence = self._fence
        granted._fence = Fence(fence.root, fence.hidden, fence.granted | paths)
        return granted

    def _open_folder(self, path: str) -> OpenFolder:
        place = self._fence.judge(path)
        try:
            fd = self._fence.open(place, FOLDER_FLAGS)
        except OSError as error:
            raise failed_path(path, error) from error
        reals = (os.path.realpath(folder) for folder in self._fence.hidden)
        hidden = (os.path.relpath(real, place.real) for real in reals if is_below(real, place.real))
        return OpenFolder(fd, tuple(hidden))

    def _apply(self, edits: tuple[Edit, ...]) -> tuple[FileChange, ...]:
        with self._turn:
            return apply_edits(self._fence, self._keeper, edits)

    def _read(self, path: str) -> FileData:
        place = self._fence.judge(path)
        try:
            fd = self._fence.open(place, FILE_FLAGS)
        except OSError as error:
            raise failed_path(path, error) from error
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                number = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.ENXIO
                raise failed_path(path, OSError(number, ""))
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(READ_MAX_BYTES + 1)
        except OSError as error:
            raise failed_path(path, error) from error
        finally:
            os.close(fd)
        if len(data) > READ_MAX_BYTES:
            raise too_big(path, READ_MAX_BYTES)
        return FileData(data=data, mode=stat.S_IMODE(found.st_mode), mtime_ns=found.st_mtime_ns)

"""A folder of this machine as a workspace."""

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import DirEntry, ProgramResult
from towline_agent.workspaces.paths import denied_outside, failed_path, too_big
from towline_agent.workspaces.program import run_program
from towline_agent.workspaces.threads import FILES
from towline_protocol import Process

__all__ = ["ENTRIES_MAX", "READ_MAX_BYTES", "LocalWorkspace"]

READ_MAX_BYTES: Final = 16 * 2**20
"""Bytes of one file that are read into memory; source and logs of any use are smaller."""
ENTRIES_MAX: Final = 20_000
"""Names of one folder that are read into memory."""

_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""A pipe or terminal that lies in the folder must not hold the reader up or take it over."""


class LocalWorkspace:
    """A folder of this machine; files are read in threads, programs run as children.

    A path is judged twice. First its real path is worked out, links followed, so that nothing
    outside is even opened. Then, once it is open, the system is asked where the open file really
    is: a link that was swapped in between leads to a refusal, and what is read is what was judged.

    Args:
        root: The folder. It need not exist yet; what is missing is told at use.
        hidden: Folders that count as outside even where they lie in the root, such as the one in
            which towline keeps its own data (A5.8).
    """

    def __init__(
        self, root: str | os.PathLike[str], *, hidden: Sequence[str | os.PathLike[str]] = ()
    ) -> None:
        self.root = str(Path(root).absolute())
        """The folder, absolute, as the model is told it."""
        self._hidden = tuple(Path(folder).absolute() for folder in hidden)

    async def read_bytes(self, path: str) -> bytes:
        """A file's bytes, `READ_MAX_BYTES` at most.

        Raises:
            ToolDenied: The path leads outside.
            ToolError: It is missing, no file, unreadable or too large.
        """
        return await FILES.run(lambda: self._read(path))

    async def list_dir(self, path: str) -> tuple[DirEntry, ...]:
        """A folder's names: folders first, then by name; links are not followed.

        Raises:
            ToolDenied: The path leads outside.
            ToolError: It is missing, no folder, unreadable or too large.
        """
        return await FILES.run(lambda: self._list(path))

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        timeout_s: float,
        on_start: Callable[[Process], Awaitable[None]],
        on_output: Callable[[str], None],
    ) -> ProgramResult:
        """Run a program in its own process group and session, its input closed.

        Args:
            argv: The program and its arguments; no shell reads them.
            timeout_s: Seconds from its begin after which the whole process tree is ended.
            on_start: Awaited when the process exists but before the program begins.
            on_output: Called with each piece of output as it comes.

        Raises:
            ToolError: It can't be started.
        """
        return await run_program(
            argv, root=self.root, timeout_s=timeout_s, on_start=on_start, on_output=on_output
        )

    def _read(self, path: str) -> bytes:
        fd = self._open(path, _OPEN)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                number = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
                raise failed_path(path, OSError(number, ""))
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(READ_MAX_BYTES + 1)
        except OSError as error:
            raise failed_path(path, error) from error
        finally:
            os.close(fd)
        if len(data) > READ_MAX_BYTES:
            raise too_big(path, READ_MAX_BYTES)
        return data

    def _list(self, path: str) -> tuple[DirEntry, ...]:
        fd = self._open(path, _OPEN | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as found:
                entries = [_entry(entry) for entry in islice(found, ENTRIES_MAX + 1)]
        finally:
            os.close(fd)
        if len(entries) > ENTRIES_MAX:
            raise ToolError(
                f"{path!r} holds more than {ENTRIES_MAX} names; look for what you need with a "
                "program, such as `find`."
            )
        return tuple(sorted(entries, key=lambda entry: (entry.kind != "dir", entry.name)))

    def _open(self, path: str, flags: int) -> int:
        try:
            root = Path(self.root).resolve()
            real = (root / path).resolve()
            if not self._may_open(real, root):
                raise denied_outside(path, self.root)
            fd = os.open(real, flags)
        except OSError as error:
            raise failed_path(path, error) from error
        except (ValueError, RuntimeError) as error:  # a NUL character; a circle of links
            raise ToolError(f"{path!r} is no path that can be used; check it.") from error
        if not self._may_open(_real_path(fd), root):
            os.close(fd)
            raise denied_outside(path, self.root)
        return fd

    def _may_open(self, real: Path, root: Path) -> bool:
        if not real.is_relative_to(root):
            return False
        return not any(real.is_relative_to(folder.resolve()) for folder in self._hidden)


def _real_path(fd: int) -> Path:
    """Where an open file is; its last place when it was removed."""
    if sys.platform == "linux":
        return Path(f"/proc/self/fd/{fd}").readlink()
    raw: bytes = fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024))
    return Path(os.fsdecode(raw.rstrip(b"\0")))


def _entry(entry: os.DirEntry[str]) -> DirEntry:
    name = os.fsencode(entry.name).decode("utf-8", "replace")
    if entry.is_symlink():
        return DirEntry(name=name, kind="link", size=0)
    if entry.is_dir(follow_symlinks=False):
        return DirEntry(name=name, kind="dir", size=0)
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:  # it was removed meanwhile
        size = 0
    return DirEntry(name=name, kind="file", size=size)

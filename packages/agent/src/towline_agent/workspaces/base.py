"""The workspace seam: where tools touch files and processes."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from towline_protocol import Process

__all__ = ["DirEntry", "ProgramResult", "Workspace"]


class DirEntry(msgspec.Struct, frozen=True):
    """One name in a folder."""

    name: str
    """The name alone."""
    kind: str
    """`file`, `dir` or `link`."""
    size: int
    """Bytes; 0 for folders."""


class ProgramResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended."""

    exit_code: int | None
    """Its exit code, negative for a signal; `None` when its time ran out."""
    output: str
    """Standard output and error together, cut in the middle when too long (A5.18, R49)."""
    truncated: bool = False
    """Whether the output was cut."""


class Workspace(Protocol):
    """A fenced place to work in.

    Paths are relative to `root`; a path that leads outside on the real file system, symbolic links
    followed, raises `ToolDenied` (A5.1 to A5.3). What is missing or unreadable raises `ToolError`
    with a sentence for the model. Cancelling `run` ends the program and all its children before the
    cancellation goes on (A5.19).
    """

    root: str
    """The folder, absolute, as the model is told it."""

    async def read_bytes(self, path: str) -> bytes:
        """A file's bytes."""
        ...

    async def list_dir(self, path: str) -> tuple[DirEntry, ...]:
        """A folder's names: folders first, then by name."""
        ...

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        timeout_s: float,
        on_start: Callable[[Process], Awaitable[None]],
        on_output: Callable[[str], None],
    ) -> ProgramResult:
        """Run a program in its own process group, its input closed.

        Args:
            argv: The program and its arguments; no shell reads them.
            timeout_s: Seconds after which the whole process tree is ended.
            on_start: Awaited when the process exists but before the program begins, so that its
                start is durable before its effect (C5.5, C5.6).
            on_output: Called with each piece of output as it comes.
        """
        ...

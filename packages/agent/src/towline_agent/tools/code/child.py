"""Running a program of our own choice that only computes: text in, text out, nothing journalled."""

import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from typing import IO, Final, NamedTuple

from towline_agent.workspaces.environment import child_environment
from towline_agent.workspaces.threads import ThreadPool

__all__ = ["OUTPUT_BYTES", "ChildEnd", "run_child"]

OUTPUT_BYTES: Final = 16 * 2**20
"""Bytes of its output that are read."""

_ERROR_BYTES: Final = 4096
_POOL: Final = ThreadPool("towline-code", 4)
"""A few at once: each keeps a core busy."""


class ChildEnd(NamedTuple):
    """How it ended."""

    code: int | None
    """Its exit code, negative for a signal; `None` when its time ran out."""
    output: bytes
    """What it wrote, `OUTPUT_BYTES` at most."""
    error: str
    """The head of what it said on standard error."""


async def run_child(
    argv: tuple[str, ...], *, stdin: bytes = b"", cwd: str | None = None, timeout_s: float
) -> ChildEnd:
    """Run a checker, formatter or parser that changes nothing; a cancel ends it.

    Its input and output are files, so neither side can wait for the other, and neither is held in
    memory beyond its bound. It gets no key of ours (A5.23).

    Args:
        argv: The program, by its path, and its arguments.
        stdin: What it reads.
        cwd: Where it runs; the system's folder for temporary files when unset.
        timeout_s: Seconds after which it is ended.

    Raises:
        OSError: It can't be started.
    """
    child = _Child()
    try:
        return await _POOL.run(lambda: child.run(argv, stdin, cwd, timeout_s))
    finally:
        child.end()


class _Child:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._popen: subprocess.Popen[bytes] | None = None
        self._unwanted = False

    def run(self, argv: tuple[str, ...], stdin: bytes, cwd: str | None, limit_s: float) -> ChildEnd:
        with (
            tempfile.TemporaryFile() as source,
            tempfile.TemporaryFile() as sink,
            tempfile.TemporaryFile() as said,
        ):
            source.write(stdin)
            source.seek(0)
            popen = self._start(argv, (source, sink, said), cwd)
            try:
                code = None if popen is None else popen.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self.end()
            if popen is not None:
                popen.wait()
            sink.seek(0)
            said.seek(0)
            error = said.read(_ERROR_BYTES).decode("utf-8", "replace")
            return ChildEnd(code, sink.read(OUTPUT_BYTES), error)

    def _start(
        self, argv: tuple[str, ...], files: tuple[IO[bytes], ...], cwd: str | None
    ) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._unwanted:
                return None
            self._popen = subprocess.Popen(  # noqa: S603 - our own command lines, no shell
                argv,
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                cwd=cwd or tempfile.gettempdir(),
                env=child_environment(os.environ),
                start_new_session=True,
            )
            return self._popen

    def end(self) -> None:
        """End it with all that it started; nothing happens when it has ended."""
        with self._lock:
            self._unwanted = True
            if self._popen is not None and self._popen.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._popen.pid, signal.SIGKILL)

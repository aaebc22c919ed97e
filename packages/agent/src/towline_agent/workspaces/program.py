"""One program's run: held until its start is durable, watched, ended with all its children."""

import asyncio
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import IO, Final

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import ProgramResult
from towline_agent.workspaces.output import OutputCut
from towline_agent.workspaces.paths import failed_path, failed_program
from towline_agent.workspaces.processes import end_family, start_time
from towline_agent.workspaces.threads import FILES, run_to_the_end
from towline_protocol import Process

__all__ = ["child_environment", "run_program"]

_PASSED: Final = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
"""What a program is told of our environment, beside `LC_*`. No key has such a name (A5.23)."""

_READ_BYTES: Final = 65_536
"""A pipe's whole buffer."""
_DRAIN_S: Final = 0.2
"""After a program's end, time for what it left running to end as well and to close the output."""

_LAST_READS: Final = 16
"""Reads of what is left in the pipe at the end; bounded, since an escaped daemon may write on."""

_LAUNCHER: Final = """
import os, sys, _signal
gate = int(sys.argv[1])
os.set_inheritable(gate, False)
if os.read(gate, 1):
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(_signal, name):
            _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        os.write(gate, str(error.errno).encode())
os._exit(127)
"""
"""Becomes the program when it is told to, so the id, start time and group are already known.

It waits for one byte; when the other end closes without it, as in a crash of ours, it leaves.
Python ignores two signals that programs expect, so they are given back. A failed start is told by
its number; a good one closes the gate."""


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What of our environment a program gets: an allow-list, so no key gets out (A5.23)."""
    return {
        name: value
        for name, value in environment.items()
        if name in _PASSED or name.startswith("LC_")
    }


async def run_program(
    argv: tuple[str, ...],
    *,
    root: str,
    timeout_s: float,
    on_start: Callable[[Process], Awaitable[None]],
    on_output: Callable[[str], None],
    stdin: bytes = b"",
) -> ProgramResult:
    """Run a program in a folder, as `Workspace.run` says.

    When it has ended, what it left running in its session is ended too and the output says so;
    a program that makes itself a daemon with a session of its own lives on. At the time limit and
    at a cancel all its descendants are ended.
    """
    if not argv or not argv[0]:
        raise ToolError("There is no program to run; the command is empty.")
    child = _Child(OutputCut(on_output))
    ended = False
    left = 0
    try:
        process = await run_to_the_end(child.spawn(argv, root, stdin))
        await on_start(process)
        await child.release(argv[0])
        ended = await child.wait(timeout_s)
    finally:
        left = await run_to_the_end(child.end())
    output = child.output.text
    if ended and left:
        output += f"\n[processes that it left running and that were ended with it: {left}]"
    return ProgramResult(
        exit_code=child.exit_code if ended else None,
        output=output,
        truncated=child.output.truncated,
    )


class _Child:
    """A program from its creation to its end; all that must be given back is in here."""

    def __init__(self, output: OutputCut) -> None:
        self.output = output
        self.exit_code: int | None = None
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._silent = asyncio.Event()
        self._popen: subprocess.Popen[bytes] | None = None
        self._process: Process | None = None
        self._gate: socket.socket | None = None
        self._pipe: int | None = None
        self._watch: int | None = None

    async def spawn(self, argv: tuple[str, ...], root: str, stdin: bytes) -> Process:
        """Make the process, which waits to become the program."""
        process = await FILES.run(lambda: self._spawn(argv, root, stdin))
        assert self._pipe is not None
        assert self._watch is not None
        self._loop.add_reader(self._pipe, self._read)
        self._loop.add_reader(self._watch, self._see_exit)
        return process

    def _spawn(self, argv: tuple[str, ...], root: str, stdin: bytes) -> Process:
        self._gate, theirs = socket.socketpair()
        self._gate.setblocking(False)
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        given = _input_file(stdin)
        launcher = (sys.executable, "-I", "-S", "-c", _LAUNCHER, str(theirs.fileno()))
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - what runs was allowed by the gate
                (*launcher, *argv),
                stdin=given,
                stdout=write_end,
                stderr=subprocess.STDOUT,
                cwd=root,
                env=child_environment(os.environ),
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        except OSError as error:
            raise _failed_spawn(argv[0], root, error) from error
        except ValueError as error:
            raise ToolError("The command holds a NUL character; leave it out.") from error
        finally:
            theirs.close()
            os.close(write_end)
            given.close()
        pid = self._popen.pid
        self._process = Process(pid=pid, group=pid, started=start_time(pid) or "")
        self._watch = _watch_exit(pid)
        return self._process

    async def release(self, name: str) -> None:
        """Let the process become the program; returns when it has."""
        assert self._gate is not None
        try:
            await self._loop.sock_sendall(self._gate, b"\0")
            number = await self._loop.sock_recv(self._gate, 16)
        except ConnectionError as error:
            raise ToolError(f"{name!r} was ended before it began; try again.") from error
        if number:
            raise failed_program(name, int(number), os.strerror(int(number)))

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the program's end and its last output; false when its time runs out."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._exited.wait()
        except TimeoutError:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._silent.wait()
        return True

    async def end(self) -> int:
        """End what still runs and give everything back. Safe at any point of the life.

        Returns:
            How many processes had to be ended.
        """
        if self._gate is not None:
            self._gate.close()  # a launcher that still waits leaves by itself
        left = 0
        try:
            if self._process is not None and self._popen is not None:
                left = await end_family(self._process)
                self.exit_code = self._popen.poll()  # reaps it; its id was its own until here
            if self._pipe is not None:
                for _ in range(_LAST_READS):
                    self._read()
                self.output.feed(b"", final=True)
        finally:
            for fd in (self._pipe, self._watch):
                if fd is not None:
                    self._loop.remove_reader(fd)
                    os.close(fd)
        return left

    def _read(self) -> None:
        assert self._pipe is not None
        if self._silent.is_set():
            return
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self.output.feed(data)
        else:
            self._loop.remove_reader(self._pipe)
            self._silent.set()

    def _see_exit(self) -> None:
        assert self._watch is not None
        self._loop.remove_reader(self._watch)
        self._exited.set()


def _input_file(stdin: bytes) -> IO[bytes]:
    """What a program reads: a file without a name, so nobody has to feed it."""
    if not stdin:
        return open(os.devnull, "rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(stdin)
    file.seek(0)
    return file


def _failed_spawn(name: str, root: str, error: OSError) -> ToolError:
    if error.filename == root:
        return failed_path(root, error)
    return failed_program(name, error.errno or 0, error.strerror or "unknown error")


def _watch_exit(pid: int) -> int:
    """A file descriptor that can be read once a process has ended, and does not reap it."""
    if sys.platform == "linux":
        return os.pidfd_open(pid)
    queue = select.kqueue()
    try:
        wanted = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        queue.control([wanted], 0)
        return os.dup(queue.fileno())
    finally:
        queue.close()

"""One program's run: held until its start is durable, watched, ended with all its children."""

import asyncio
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

from towline_agent.errors import ToolError
from towline_agent.workspaces import launcher
from towline_agent.workspaces.base import ProgramResult
from towline_agent.workspaces.environment import child_environment
from towline_agent.workspaces.output import OutputCut
from towline_agent.workspaces.paths import failed_path, failed_program
from towline_agent.workspaces.processes import (
    count_tasks,
    end_family,
    find_family,
    list_processes,
    mark_of,
    name_maker,
    start_time,
)
from towline_agent.workspaces.sandbox import Confined, Confinement
from towline_agent.workspaces.threads import FILES, run_to_the_end
from towline_protocol import Process

__all__ = ["PROCESSES_MAX", "run_program"]

PROCESSES_MAX: Final = 1000
"""Processes that one program may have at once; a large build has some dozen a core."""

_READ_BYTES: Final = 65_536
"""A pipe's whole buffer."""
_SMALL_BYTES: Final = 4096
_SMALL_READS: Final = 64
"""So many small reads, and the next one waits until more is there: a program that writes byte by
byte would keep the loop busy otherwise."""
_PAUSE_S: Final = 0.01
_SHOW_S: Final = 0.05
"""How often small output is shown."""
_DRAIN_S: Final = 0.2
"""After a program's end, time for what it left running to end as well and to close the output."""
_LAST_READS: Final = 16
"""Reads of what is left in the pipe at the end; bounded, since somebody may write on."""
_HINDERED: Final = re.compile(
    r"(?i)read-only file system|permission denied|operation not permitted|\bE(?:ROFS|ACCES|PERM)\b"
    r"|network is unreachable|resolv|name resolution|getaddrinfo|ENETUNREACH|EAI_AGAIN"
)
"""What programs say when a sandbox is in their way; other things may be."""
_SANDBOXED: Final = (
    "\n[sandbox: no network unless asked for, and writes only in the folder and $TMPDIR]"
)
_WATCH_S: Final = 0.25
"""How often the number of processes is looked at, which costs some microseconds."""


async def run_program(
    argv: tuple[str, ...],
    *,
    root: str,
    timeout_s: float,
    on_start: Callable[[Process], Awaitable[None]],
    on_output: Callable[[str], None],
    stdin: bytes = b"",
    network: bool = False,
    confinement: Confinement | None = None,
    writable: Iterable[str] = (),
) -> ProgramResult:
    """Run a program in a folder, as `Workspace.run` says.

    When it has ended, all that it left running is ended too, daemons as well, and where we had to
    do that the output says so. At the time limit and at a cancel it is the same.

    Args:
        argv: The program and its arguments.
        root: The folder.
        timeout_s: Seconds that it has.
        on_start: Told of the process before the program begins.
        on_output: Told of each piece of output; all of it, so bound it.
        stdin: What it reads.
        network: Whether it may reach the network, where the sandbox keeps it from that.
        confinement: What it is kept in by; `None` for nothing.
        writable: Real paths outside the folder that it may write.
    """
    if not argv or not argv[0]:
        raise ToolError("There is no program to run; the command is empty.")
    confinement = confinement or Confinement(root, mode="off")
    child = _Child(OutputCut(on_output), confinement, stdin)
    ended = False
    left = 0
    try:
        confined = await FILES.run(lambda: confinement.prepare(network=network, writable=writable))
        process = await run_to_the_end(child.spawn(argv, root, confined, network=network))
        await on_start(process)
        await child.release(argv[0], confined)
        ended = await child.wait(timeout_s)
    finally:
        left = await run_to_the_end(child.end())
    output = child.output.text
    if ended and child.exit_code and confined.scratch and _HINDERED.search(output):
        output += _SANDBOXED
    if ended and left:
        output += f"\n[processes that it left running and that were ended with it: {left}]"
    return ProgramResult(
        exit_code=child.exit_code if ended else None,
        output=output,
        truncated=child.output.truncated,
        why=child.why,
    )


class _Child:
    """A program from its creation to its end; all that must be given back is in here."""

    def __init__(self, output: OutputCut, confinement: Confinement, stdin: bytes) -> None:
        self.output = output
        self.exit_code: int | None = None
        self.why: str | None = None
        self._confinement = confinement
        self._stdin = memoryview(stdin)
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._silent = asyncio.Event()
        self._popen: subprocess.Popen[bytes] | None = None
        self._process: Process | None = None
        self._marks = ("", "")
        self._gate: socket.socket | None = None
        self._pipe: int | None = None
        self._input: int | None = None
        self._watch: int | None = None
        self._tasks = 0  # of the whole machine, before the program began
        self._small = 0
        self._timer: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None

    # its beginning

    async def spawn(
        self, argv: tuple[str, ...], root: str, confined: Confined, *, network: bool
    ) -> Process:
        """Make the process, which waits to become the program."""
        environment = child_environment(
            os.environ, root=root, network=network, scratch=confined.scratch
        )
        process = await FILES.run(lambda: self._spawn((*confined.prefix,), argv, root, environment))
        assert self._pipe is not None
        assert self._watch is not None
        self._loop.add_reader(self._pipe, self._read)
        self._loop.add_reader(self._watch, self._see_exit)
        return process

    def _spawn(
        self, prefix: tuple[str, ...], argv: tuple[str, ...], root: str, env: dict[str, str]
    ) -> Process:
        self._tasks = count_tasks()
        self._gate, theirs = socket.socketpair()
        self._gate.setblocking(False)
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        read_end, self._input = os.pipe() if self._stdin else (subprocess.DEVNULL, None)
        made = (sys.executable, "-I", "-S", launcher.__file__, str(theirs.fileno()))
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - what runs was allowed by the gate
                (*prefix, *made, *argv),
                stdin=read_end,
                stdout=write_end,
                stderr=subprocess.STDOUT,
                cwd=root,
                env=env,
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
            if self._input is not None:
                os.close(read_end)
                os.set_blocking(self._input, False)
        pid = self._popen.pid
        self._process = Process(pid=pid, group=pid, started=start_time(pid) or "")
        self._marks = (mark_of(self._process), name_maker())
        self._watch = _watch_exit(pid)
        return self._process

    async def release(self, name: str, confined: Confined) -> None:
        """Let the process become the program; returns when it has."""
        assert self._gate is not None
        assert self._process is not None
        data = os.fsencode("\0".join((*self._marks, *confined.words)))
        answer = b""
        try:
            greeting = await self._loop.sock_recv(self._gate, 1)
            if greeting:
                await self._loop.sock_sendall(self._gate, len(data).to_bytes(4, "big") + data)
                answer = await self._loop.sock_recv(self._gate, 16)
        except ConnectionError:
            greeting = b""
        if answer.startswith(b"!"):
            raise self._failed_sandbox(os.strerror(int(answer[1:])))
        if answer:
            raise failed_program(name, int(answer), os.strerror(int(answer)))
        if not greeting:
            if confined.prefix:
                await self._see_why()
            if self.output.text.startswith("bwrap: "):
                raise self._failed_sandbox(self.output.text.removeprefix("bwrap: ").strip())
            raise ToolError(f"{name!r} was ended before it began; try again.")
        self._give_input()

    async def _see_why(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._silent.wait()

    def _failed_sandbox(self, why: str) -> ToolError:
        """The sandbox is broken: nothing runs with less than what people were told."""
        now = self._confinement.give_up(why)
        instead = "without a sandbox" if now.kind == "none" else f"in another one, {now.kind}"
        return ToolError(
            f"The sandbox failed ({why}), so nothing was run. Try again: programs run {instead} "
            "from now on."
        )

    # its run

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the program's end and its last output; false when it has to be ended."""
        watch = asyncio.create_task(self._watch_processes())
        try:
            async with asyncio.timeout(timeout_s):
                await self._exited.wait()
        except TimeoutError:
            return False
        finally:
            watch.cancel()
            await asyncio.wait({watch})
        if self.why is not None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._silent.wait()
        return True

    async def _watch_processes(self) -> None:
        """Let the run end when it makes processes without end."""
        process = self._process
        assert process is not None
        while True:
            await asyncio.sleep(_WATCH_S)
            tasks = await FILES.run(count_tasks)
            self._tasks = min(self._tasks, tasks)  # those of others end too
            if tasks - self._tasks <= PROCESSES_MAX:
                continue
            family = await FILES.run(lambda: find_family(list_processes(), process))
            if len(family) > PROCESSES_MAX:
                self.why = f"it had more than {PROCESSES_MAX} processes at once"
                self._exited.set()
                return

    def _give_input(self) -> None:
        """Write what fits into its input; the rest when there is room again."""
        if self._input is None:
            return
        try:
            written = os.write(self._input, self._stdin[:_READ_BYTES])
        except BlockingIOError:
            written = 0
        except OSError:  # it reads no more
            self._stdin = self._stdin[:0]
            written = 0
        self._stdin = self._stdin[written:]
        if self._stdin:
            self._loop.add_writer(self._input, self._give_input)
        else:
            self._close_input()

    def _close_input(self) -> None:
        if self._input is not None:
            self._loop.remove_writer(self._input)
            os.close(self._input)
            self._input = None

    def _read(self) -> None:
        assert self._pipe is not None
        if self._silent.is_set():
            return
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._pipe)
            self._silent.set()
            return
        self.output.feed(data)
        if len(data) >= _SMALL_BYTES:
            self._small = 0
            self.output.show(self._loop.time())
            return
        self._small += 1
        if self._timer is None:
            self._show()
        if self._small >= _SMALL_READS and self._pause is None:
            self._loop.remove_reader(self._pipe)
            self._pause = self._loop.call_later(_PAUSE_S, self._read_on)

    def _read_on(self) -> None:
        assert self._pipe is not None
        self._pause = None
        self._loop.add_reader(self._pipe, self._read)

    def _show(self) -> None:
        """Show what is there now; and again in a moment, while more comes."""
        shown = self._small
        self.output.show(self._loop.time())
        self._timer = self._loop.call_later(_SHOW_S, self._show_more, shown)

    def _show_more(self, shown: int) -> None:
        self._timer = None
        if self._small != shown:
            self._show()

    def _see_exit(self) -> None:
        assert self._watch is not None
        self._loop.remove_reader(self._watch)
        self._exited.set()

    # its end

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
                left = await end_family(self._process, polite=self.why is None)
                self.exit_code = self._popen.poll()  # reaps it; its id was its own until here
            if self._pipe is not None:
                for _ in range(_LAST_READS):
                    self._read()
                self.output.feed(b"", final=True)
                self.output.show(float("inf"))
        finally:
            for timer in (self._timer, self._pause):
                if timer is not None:
                    timer.cancel()
            self._close_input()
            for fd in (self._pipe, self._watch):
                if fd is not None:
                    self._loop.remove_reader(fd)
                    os.close(fd)
        return left


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

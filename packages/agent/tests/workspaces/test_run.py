"""A real program's run, from its held start to its last child's end."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from towline_agent.errors import ToolError
from towline_agent.workspaces import processes
from towline_agent.workspaces.base import ProgramResult
from towline_agent.workspaces.processes import list_processes, start_time
from towline_agent.workspaces.program import run_program
from towline_protocol import Process

LIMIT_S = 60


class Watcher:
    """Hears what a run tells, and can wait for words of it."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self.text = ""
        self._more = asyncio.Event()

    async def start(self, process: Process) -> None:
        self.process = process

    def output(self, text: str) -> None:
        self.text += text
        self._more.set()

    async def pids(self, count: int) -> list[int]:
        """The numbers on the first lines, once so many are whole."""
        async with asyncio.timeout(LIMIT_S):
            while self.text.count("\n") < count:
                await self._more.wait()
                self._more.clear()
        return [int(line) for line in self.text.splitlines()[:count]]


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    """After every test: no child, dead or alive, stays behind."""
    yield
    assert [row for row in list_processes() if row.parent == os.getpid()] == []


async def _run(
    root: Path, watcher: Watcher, *argv: str, timeout_s: float = LIMIT_S, stdin: bytes = b""
) -> ProgramResult:
    async with asyncio.timeout(2 * LIMIT_S):
        return await run_program(
            argv,
            root=str(root),
            stdin=stdin,
            timeout_s=timeout_s,
            on_start=watcher.start,
            on_output=watcher.output,
        )


def _open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def _held(pid: int) -> bool:
    """Whether a process is still the launcher."""
    return Path(f"/proc/{pid}/exe").resolve() == Path(sys.executable).resolve()


def _alive(pid: int) -> bool:
    return any(row.pid == pid and not row.zombie for row in list_processes())


async def test_both_outputs_and_the_exit_code_come_back(tmp_path: Path, watcher: Watcher) -> None:
    result = await _run(tmp_path, watcher, "sh", "-c", "echo out; echo err >&2; pwd; exit 3")
    assert result == ProgramResult(exit_code=3, output=f"out\nerr\n{tmp_path}\n")
    assert watcher.text == result.output


async def test_a_signal_is_a_negative_exit_code(tmp_path: Path, watcher: Watcher) -> None:
    result = await _run(tmp_path, watcher, "sh", "-c", "kill -9 $$")
    assert result.exit_code == -signal.SIGKILL


async def test_no_shell_reads_the_arguments(tmp_path: Path, watcher: Watcher) -> None:
    argv = ("printf", "%s|", "$HOME", "a  b", "*", "`id`", "", "ä\n", "-x")
    result = await _run(tmp_path, watcher, *argv)
    assert result.output == "$HOME|a  b|*|`id`||ä\n|-x|"


async def test_a_relative_program_is_one_of_the_folder(tmp_path: Path, watcher: Watcher) -> None:
    script = tmp_path / "tool.sh"
    script.write_text("#!/bin/sh\necho mine\n")
    script.chmod(0o755)
    assert (await _run(tmp_path, watcher, "./tool.sh")).output == "mine\n"


@pytest.mark.rules("A5.17")
@pytest.mark.parametrize("size", [1, 65_536, 3_000_000])
async def test_it_reads_its_input_to_the_end(tmp_path: Path, watcher: Watcher, size: int) -> None:
    result = await _run(tmp_path, watcher, "wc", "-c", stdin=b"x" * size)
    assert (result.exit_code, result.output.strip()) == (0, str(size))


@pytest.mark.rules("A5.17")
@pytest.mark.parametrize("argv", [("true",), ("head", "-c1"), ("sh", "-c", "exec <&-; echo x")])
async def test_a_program_need_not_read_its_input(
    tmp_path: Path, watcher: Watcher, argv: tuple[str, ...]
) -> None:
    result = await _run(tmp_path, watcher, *argv, stdin=b"x" * 3_000_000)
    assert result.exit_code == 0
    assert result.output.strip() in ("", "x")


@pytest.mark.rules("A5.17", "A5.19")
@pytest.mark.usefixtures("hurry")
async def test_a_program_that_never_reads_and_never_ends_is_ended(
    tmp_path: Path, watcher: Watcher
) -> None:
    result = await _run(tmp_path, watcher, "sleep", "1000", stdin=b"x" * 3_000_000, timeout_s=0.2)
    assert result.exit_code is None


@pytest.mark.rules("A5.17")
async def test_its_input_is_at_its_end_at_once(tmp_path: Path, watcher: Watcher) -> None:
    assert await _run(tmp_path, watcher, "cat") == ProgramResult(exit_code=0, output="")


@pytest.mark.rules("A5.17", "A5.24", "C5.6")
async def test_it_has_a_group_of_its_own_which_was_told_before(
    tmp_path: Path, watcher: Watcher
) -> None:
    code = "import os; print(os.getpid(), os.getpgid(0), os.getsid(0))"
    result = await _run(tmp_path, watcher, sys.executable, "-c", code)
    assert watcher.process is not None
    pid = watcher.process.pid
    assert result.output == f"{pid} {pid} {pid}\n"
    assert watcher.process.group == pid


async def test_signals_that_python_ignores_are_given_back(tmp_path: Path, watcher: Watcher) -> None:
    result = await _run(tmp_path, watcher, "grep", "SigIgn", "/proc/self/status")
    ignored = int(result.output.split()[1], 16)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored & 1 << number - 1


@pytest.mark.rules("C5.5", "C5.6", "A5.24")
async def test_it_does_not_begin_before_its_start_is_durable(tmp_path: Path) -> None:
    told: list[Process] = []

    async def start(process: Process) -> None:
        told.append(process)
        assert start_time(process.pid) == process.started
        assert _held(process.pid)
        assert not (tmp_path / "effect").exists()

    result = await run_program(
        ("touch", "effect"), root=str(tmp_path), timeout_s=LIMIT_S, on_start=start, on_output=print
    )
    assert result.exit_code == 0
    assert (tmp_path / "effect").exists()
    assert len(told) == 1


@pytest.mark.rules("C5.5")
async def test_a_start_that_cannot_be_made_durable_means_that_it_never_begins(
    tmp_path: Path,
) -> None:
    async def fail(process: Process) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await run_program(
            ("touch", "effect"),
            root=str(tmp_path),
            timeout_s=LIMIT_S,
            on_start=fail,
            on_output=print,
        )
    assert not (tmp_path / "effect").exists()


@pytest.mark.rules("C5.5", "A4.23")
async def test_a_cancel_before_its_start_is_durable_means_that_it_never_begins(
    tmp_path: Path,
) -> None:
    waiting = asyncio.Event()

    async def wait(process: Process) -> None:
        waiting.set()
        await asyncio.Event().wait()

    call = asyncio.create_task(
        run_program(
            ("touch", "effect"),
            root=str(tmp_path),
            timeout_s=LIMIT_S,
            on_start=wait,
            on_output=print,
        )
    )
    async with asyncio.timeout(LIMIT_S):
        await waiting.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert not (tmp_path / "effect").exists()


_CRASH = """
import asyncio, os, signal, sys
from towline_agent.workspaces.program import run_program
async def start(process):
    print(process.pid, flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
run = run_program(
    ("touch", "effect"), root=sys.argv[1], timeout_s=9, on_start=start, on_output=print
)
asyncio.run(run)
"""


@pytest.mark.rules("C5.5", "S12")
@pytest.mark.skipif(sys.platform != "linux", reason="NO PIDFD: waits for a stranger's process")
def test_a_crash_before_its_start_is_durable_means_that_it_never_begins(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CRASH, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        held = os.pidfd_open(int(server.stdout.readline()))
        try:
            server.communicate("\n", timeout=LIMIT_S)
            assert server.returncode == -signal.SIGKILL
            assert _wait_for_end(held)
        finally:
            os.close(held)
    assert not (tmp_path / "effect").exists()


def _wait_for_end(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(LIMIT_S * 1000))


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("no-such-program",), "There is no program 'no-such-program' here"),
        (("./none",), "There is no program './none' here"),
        (("./plain",), "'./plain' can't be run: it is no executable file"),
        (("./folder",), "'./folder' can't be run: it is no executable file"),
        (("./noformat",), "in no format the system can execute"),
        (("./badshebang",), "There is no program './badshebang' here"),
        (("printf", "a\0b"), "NUL character"),
        (("printf", "x" * 3_000_000), "longer than the system allows"),
        (("",), "the command is empty"),
        ((), "the command is empty"),
    ],
)
async def test_what_cannot_be_run_is_told(
    tmp_path: Path, watcher: Watcher, argv: tuple[str, ...], told: str
) -> None:
    (tmp_path / "plain").write_text("words")
    (tmp_path / "folder").mkdir()
    for name, text in (("noformat", "words"), ("badshebang", "#!/no/such/shell\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    with pytest.raises(ToolError) as refused:
        await _run(tmp_path, watcher, *argv)
    assert told in refused.value.message


async def test_a_folder_that_is_gone_is_told(tmp_path: Path, watcher: Watcher) -> None:
    with pytest.raises(ToolError, match="no file or folder"):
        await _run(tmp_path / "gone", watcher, "ls")
    assert watcher.process is None


TREE = """
trap '' TERM
echo $$
sh -c 'echo $$; exec sleep 1000' &
setsid sh -c 'echo $$; sleep 1000 & echo $!; wait' &
wait
"""
"""A program that ignores the polite signal, a child in its group, and two in a session apart."""


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE_S", 0.1)


@pytest.mark.rules("A5.19", "A4.23", "S28")
@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("cancels", [1, 3])
async def test_a_cancel_ends_the_whole_tree_before_it_goes_on(
    tmp_path: Path, watcher: Watcher, cancels: int
) -> None:
    call = asyncio.create_task(_run(tmp_path, watcher, "sh", "-c", TREE))
    pids = await watcher.pids(4)
    assert all(_alive(pid) for pid in pids)
    async with asyncio.timeout(LIMIT_S):
        for _ in range(cancels):
            call.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await call
    assert [pid for pid in pids if _alive(pid)] == []


@pytest.mark.rules("A5.19", "A5.18")
@pytest.mark.usefixtures("hurry")
async def test_the_time_limit_ends_the_whole_tree_and_keeps_the_output(
    tmp_path: Path, watcher: Watcher
) -> None:
    result = await _run(tmp_path, watcher, "sh", "-c", TREE, timeout_s=0.5)
    assert result.exit_code is None
    pids = [int(line) for line in result.output.splitlines()]
    assert [pid for pid in pids if _alive(pid)] == []
    assert watcher.process is not None
    assert not _alive(watcher.process.pid)


@pytest.mark.rules("A5.19")
async def test_the_polite_signal_comes_first(tmp_path: Path, watcher: Watcher) -> None:
    script = "trap 'touch tidied; exit 0' TERM; echo $$; while :; do sleep 0.01; done"
    call = asyncio.create_task(_run(tmp_path, watcher, "sh", "-c", script))
    await watcher.pids(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (tmp_path / "tidied").exists()


async def test_what_it_left_running_ends_with_it_and_is_told(
    tmp_path: Path, watcher: Watcher
) -> None:
    result = await _run(tmp_path, watcher, "sh", "-c", "sleep 1000 & echo $!")
    (pid,) = await watcher.pids(1)
    assert result.exit_code == 0
    assert result.output == (
        f"{pid}\n\n[processes that it left running and that were ended with it: 1]"
    )
    assert not _alive(pid)


DAEMON = """
import os, sys
if os.fork():
    os.waitpid(-1, 0) if sys.argv[1] == "wait" else None
    sys.stdin.read() if sys.argv[1] == "stay" else None
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.execvp("sleep", ["sleep", "1000"])
"""
"""Forks twice with a session between, so that neither parent, group nor session leads to it."""


@pytest.mark.rules("A5.19")
@pytest.mark.skipif(sys.platform != "linux", reason="NO MARKS: this system shows no environments")
async def test_a_daemon_with_a_session_of_its_own_ends_with_the_program(
    tmp_path: Path, watcher: Watcher
) -> None:
    result = await _run(tmp_path, watcher, sys.executable, "-c", DAEMON, "wait")
    (pid,) = await watcher.pids(1)
    assert result.exit_code == 0
    assert "that were ended with it: 1]" in result.output
    assert not _alive(pid)


@pytest.mark.rules("A5.19", "A4.23")
@pytest.mark.usefixtures("hurry")
@pytest.mark.skipif(sys.platform != "linux", reason="NO MARKS: this system shows no environments")
async def test_a_cancel_ends_a_daemon_too(tmp_path: Path, watcher: Watcher) -> None:
    script = f"{sys.executable} -c '{DAEMON}' wait; exec sleep 1000"
    call = asyncio.create_task(_run(tmp_path, watcher, "sh", "-c", script))
    (pid,) = await watcher.pids(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not _alive(pid)


@pytest.mark.rules("A5.19")
async def test_a_process_that_is_stopped_ends_politely_too(
    tmp_path: Path, watcher: Watcher
) -> None:
    script = "trap 'echo tidied; exit 0' TERM; echo $$; kill -STOP $$; sleep 1000"
    call = asyncio.create_task(_run(tmp_path, watcher, "sh", "-c", script))
    (pid,) = await watcher.pids(1)
    stopped = os.WSTOPPED | os.WNOWAIT
    await asyncio.get_running_loop().run_in_executor(None, os.waitid, os.P_PID, pid, stopped)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert watcher.text == f"{pid}\ntidied\n"


async def test_a_program_that_closes_its_output_goes_on(tmp_path: Path, watcher: Watcher) -> None:
    script = "echo a; exec >&- 2>&-; touch later; exit 4"
    assert await _run(tmp_path, watcher, "sh", "-c", script) == ProgramResult(
        exit_code=4, output="a\n"
    )
    assert (tmp_path / "later").exists()


@pytest.mark.usefixtures("hurry")
async def test_no_file_stays_open_however_it_ends(tmp_path: Path) -> None:
    await _run(tmp_path, Watcher(), "true")
    before = _open_files()
    await _run(tmp_path, Watcher(), "sh", "-c", "sleep 1000 & exit 3")
    await _run(tmp_path, Watcher(), "sleep", "1000", timeout_s=0.01)
    for argv in (("no-such-program",), ("printf", "a\0b"), ("printf", "x" * 3_000_000)):
        with pytest.raises(ToolError):
            await _run(tmp_path, Watcher(), *argv)
    with pytest.raises(ToolError):
        await _run(tmp_path / "gone", Watcher(), "true")
    watcher = Watcher()
    call = asyncio.create_task(_run(tmp_path, watcher, "sh", "-c", "echo $$; exec sleep 1000"))
    await watcher.pids(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert _open_files() == before


async def test_many_at_once_do_not_meddle(tmp_path: Path) -> None:
    async def one(number: int) -> str:
        return (await _run(tmp_path, Watcher(), "sh", "-c", f"echo {number}; exit 0")).output

    found = await asyncio.gather(*(one(number) for number in range(12)))
    assert list(found) == [f"{number}\n" for number in range(12)]


@pytest.mark.parametrize("after", range(0, 40, 3))
async def test_a_cancel_at_any_moment_leaves_nothing(
    tmp_path: Path, watcher: Watcher, after: int
) -> None:
    call = asyncio.create_task(_run(tmp_path, watcher, "sh", "-c", "echo a; sleep 1000 & wait"))
    await _turns(after, lambda: call.done())
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert watcher.process is None or not _alive(watcher.process.pid)


async def _turns(count: int, done: Callable[[], bool]) -> None:
    """Let the loop go round so often; each round may wait for threads and pipes."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        if done():
            return
        await loop.run_in_executor(None, os.sched_yield)

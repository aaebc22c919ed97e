"""What the system says of processes, and how a whole family of them is ended (A5.19, A5.25)."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from towline_agent.workspaces.launcher import MAKER, MARK
from towline_agent.workspaces.threads import FILES
from towline_protocol import Process

__all__ = [
    "ProcessRow",
    "count_tasks",
    "end_family",
    "end_orphans",
    "find_family",
    "find_marked",
    "kill_left",
    "kill_process",
    "list_processes",
    "mark_of",
    "name_maker",
    "parse_ps",
    "parse_stat",
    "start_time",
]

_GRACE_S: Final = 2.0
"""Between the polite signal and the final one: time to remove a lock file, not to finish work."""
_KILL_S: Final = 5.0
"""How long the final signal is waited for; only a sleep inside the kernel outlasts it."""
_POLL_S: Final = 0.02
"""Processes that are not our children can only be looked at, not waited for."""
_PS_TIMEOUT_S: Final = 5.0
_SANDBOX: Final = "bwrap"


class ProcessRow(msgspec.Struct, frozen=True, kw_only=True):
    """One process, as the system tells it."""

    pid: int
    """Its process id."""
    parent: int
    """Its parent's; 1 or a reaper's when the parent is gone."""
    group: int
    """Its process group."""
    session: int
    """Its session; 0 where the system does not tell."""
    started: str
    """When it started; with `pid` it names one process for ever."""
    zombie: bool
    """Whether it has ended and only waits to be reaped."""
    name: str = ""
    """What its program is called, cut short; empty where the system does not tell."""


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def parse_stat(pid: int, text: str, boot: str) -> ProcessRow:
    """A row out of Linux's `/proc/PID/stat`.

    The name in it may hold anything, spaces and brackets too, so fields are counted from the last
    bracket. The start time counts from the boot, so `boot` goes into it.
    """
    fields = text[text.rindex(")") + 1 :].split()
    return ProcessRow(
        pid=pid,
        name=text[text.index("(") + 1 : text.rindex(")")],
        zombie=fields[0] in "ZX",
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=f"{fields[19]}@{boot}",
    )


def parse_ps(text: str) -> tuple[ProcessRow, ...]:
    """Rows out of `ps -axo pid=,ppid=,pgid=,state=,lstart=`."""
    rows: list[ProcessRow] = []
    for line in text.splitlines():
        pid, parent, group, state, *started = line.split()
        rows.append(
            ProcessRow(
                pid=int(pid),
                parent=int(parent),
                group=int(group),
                session=0,
                started=" ".join(started),
                zombie=state.startswith("Z"),
            )
        )
    return tuple(rows)


def list_processes() -> tuple[ProcessRow, ...]:
    """All processes of the machine that can be seen. Blocks for some milliseconds."""
    if sys.platform != "linux":
        return _list_with_ps()
    boot = _boot()
    rows: list[ProcessRow] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # it ended meanwhile
                text = (folder / "stat").read_text("utf-8", "replace")
                rows.append(parse_stat(int(folder.name), text, boot))
    return tuple(rows)


def _list_with_ps() -> tuple[ProcessRow, ...]:
    done = subprocess.run(
        ["/bin/ps", "-axo", "pid=,ppid=,pgid=,state=,lstart="],
        env={"LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=_PS_TIMEOUT_S,
    )
    return parse_ps(done.stdout.decode("utf-8", "replace"))


def count_tasks() -> int:
    """How many processes and threads the machine has; 0 where it does not say."""
    try:
        return int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def start_time(pid: int) -> str | None:
    """When a process started, as `ProcessRow.started`; `None` when there is none. Blocks."""
    if sys.platform != "linux":
        return next((row.started for row in list_processes() if row.pid == pid), None)
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return parse_stat(pid, text, _boot()).started


def find_family(
    rows: Iterable[ProcessRow], process: Process, known: Iterable[ProcessRow] = ()
) -> tuple[ProcessRow, ...]:
    """The living processes that belong to a program: its group, its session, all their children.

    Args:
        rows: All processes.
        process: The program. A later process with its id has no part in it.
        known: Members seen before; they stay members when their parents are gone.
    """
    rows = [row for row in rows if row.pid > 1 and row.pid != os.getpid()]
    if any(row.pid == process.pid and row.started != process.started for row in rows):
        return ()
    names = {(row.pid, row.started) for row in known}
    members = {
        row.pid: row
        for row in rows
        if process.pid in (row.pid, row.group, row.session) or (row.pid, row.started) in names
    }
    more = True
    while more:
        children = [row for row in rows if row.parent in members and row.pid not in members]
        members.update((row.pid, row) for row in children)
        more = bool(children)
    return tuple(row for row in members.values() if not row.zombie)


async def end_family(process: Process, *, polite: bool = True, own: bool = True) -> int:
    """End a program and all that belongs to it: politely, then for good (A5.19).

    To it belong also those that left its group, its session and their parents, as daemons do, by
    the mark in their environment (Linux).

    Args:
        process: The program. The caller keeps its id from being reused: it has not reaped it, or
            has just compared its start time.
        polite: Whether they get a moment to tidy up.
        own: Whether the id, the group and the session are still the program's; else only those
            with its mark are ended.

    Returns:
        How many processes were there to end, the sandbox's own ones not counted.
    """
    known: dict[tuple[int, str], ProcessRow] = {}
    strangers: set[tuple[int, str]] = set()
    rounds = ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILL_S))

    def look() -> tuple[ProcessRow, ...]:
        rows = list_processes()
        marked = find_marked(rows, process, strangers)
        if own:
            return find_family(rows, process, (*known.values(), *marked))
        return marked

    for number, patience_s in rounds if polite else rounds[1:]:
        told: set[tuple[int, str]] = set()
        deadline_s = asyncio.get_running_loop().time() + patience_s
        while asyncio.get_running_loop().time() < deadline_s:
            family = await FILES.run(look)
            if not family:
                break
            fresh = [row for row in family if (row.pid, row.started) not in told]
            known.update(((row.pid, row.started), row) for row in fresh)
            told.update((row.pid, row.started) for row in fresh)
            _signal(process, fresh, number)
            await asyncio.sleep(_POLL_S)
        else:
            continue  # some are still there: the next signal
        break
    return sum(row.name != _SANDBOX for row in known.values())


def find_marked(
    rows: Iterable[ProcessRow], process: Process, strangers: set[tuple[int, str]]
) -> tuple[ProcessRow, ...]:
    """The living processes that bear a program's mark in their environment. Blocks.

    Args:
        rows: All processes.
        process: The program.
        strangers: Processes that were looked at before and bear none; grows.
    """
    if sys.platform != "linux":
        return ()
    mark = f"{MARK}={mark_of(process)}\0".encode()
    first = _ticks(process.started)
    found: list[ProcessRow] = []
    for row in rows:
        name = (row.pid, row.started)
        if row.zombie or name in strangers or _ticks(row.started) < first or row.pid == os.getpid():
            continue
        if mark in _environ(row.pid):
            found.append(row)
        else:
            strangers.add(name)
    return tuple(found)


def _environ(pid: int) -> bytes:
    """A process's environment, each variable with a NUL behind it; empty when it can't be seen."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
    except OSError:  # it has ended, or is another user's
        return b""


def mark_of(process: Process) -> str:
    """What the environment of a program's processes says."""
    return f"{process.pid}@{process.started}"


def name_maker() -> str:
    """What the environment of programs says of the process that runs them: this one."""
    return f"{os.getpid()}@{start_time(os.getpid())}@{_space()}"


def _space() -> str:
    """What tells this container's process ids from another one's."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""


async def end_orphans() -> int:
    """End programs whose process, a server of ours or another user of this library, has crashed.

    They are known by their environment (Linux), so no list has to be kept; those of a container
    are left to it, and those of other users to them.

    Returns:
        How many programs that was.
    """
    orphans = await FILES.run(_find_orphans)
    for process in orphans:
        await kill_process(process)
    return len(orphans)


def _find_orphans() -> tuple[Process, ...]:
    if sys.platform != "linux":
        return ()
    rows, space = list_processes(), _space()
    living = {f"{row.pid}@{row.started}@{space}" for row in rows if not row.zombie}
    found: dict[str, Process] = {}
    for row in rows:
        mark, maker = _marks(row.pid)
        known = mark in found or mark == os.environ.get(MARK)  # we may be a program of theirs
        if known or not maker.endswith(f"@{space}") or maker in living or not _is_mine(row.pid):
            continue
        pid, _, started = mark.partition("@")
        if pid.isdecimal():
            found[mark] = Process(pid=int(pid), group=int(pid), started=started)
    return tuple(found.values())


def _marks(pid: int) -> tuple[str, str]:
    """Which program a process belongs to, and who runs that; empty when to none."""
    words = (pair.partition(b"=") for pair in _environ(pid).split(b"\0"))
    told = {name: value.decode("utf-8", "replace") for name, _, value in words}
    return told.get(MARK.encode(), ""), told.get(MAKER.encode(), "")


def _is_mine(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}").stat().st_uid == os.geteuid()
    return False


def _ticks(started: str) -> int:
    ticks = started.partition("@")[0]
    return int(ticks) if ticks.isdecimal() else 0


def _signal(process: Process, rows: list[ProcessRow], number: signal.Signals) -> None:
    """The group gets its signal in one stroke, which no fork escapes; who left it gets his own.

    The sandbox's own processes are asked for nothing: all that is in it would die with them.
    """
    polite = number == signal.SIGTERM
    fenced = polite and any(row.name == _SANDBOX for row in rows)
    apart = [row for row in rows if fenced or row.group != process.group]
    if len(apart) < len(rows):
        _send(os.killpg, process.group, number, polite=polite)
    for row in apart:
        if not (polite and row.name == _SANDBOX):
            _send(os.kill, row.pid, number, polite=polite)


def _send(
    send: Callable[[int, int], None], to: int, number: signal.Signals, *, polite: bool
) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone, or under another user now
        send(to, number)
        if polite:
            send(to, signal.SIGCONT)  # or one that is stopped would not hear it


async def kill_left(processes: Iterable[Process]) -> None:
    """End what a crash left of many programs; most of them have ended long ago."""
    named = tuple(processes)
    if named:
        for process in await FILES.run(lambda: _find_left(named)):
            await kill_process(process)


def _find_left(processes: tuple[Process, ...]) -> list[Process]:
    rows = list_processes() if sys.platform == "linux" else ()
    marked = {_marks(row.pid)[0] for row in rows}
    return [found for found in processes if mark_of(found) in marked or _is_same(found)]


async def kill_process(process: Process) -> bool:
    """End a program that a crash left running, with all that belongs to it (A5.25).

    An id that was given to another process meanwhile is left alone. When nobody has it, what is
    left in the program's group or session is still its own: the kernel gives out no id that a group
    or session bears.

    Returns:
        Whether anything of it still ran.
    """
    own = await FILES.run(lambda: _is_same(process))
    return await end_family(process, own=own) > 0


def _is_same(process: Process) -> bool:
    """Whether the id, or the group that bears it, still means the program. Blocks."""
    started = start_time(process.pid)
    return _bears_group(process) if started is None else started == process.started


def _bears_group(process: Process) -> bool:
    """Whether a group with the number of a program that has gone can only be that program's.

    It led its group, in this boot, and in this container: there the first process is older.
    """
    ticks, _, boot = process.started.partition("@")
    if process.group != process.pid or process.pid in (os.getpgid(0), os.getsid(0)):
        return False
    if not ticks.isdecimal() or not boot or boot != _boot():
        return False
    first = start_time(1)
    return first is None or int(first.partition("@")[0]) <= int(ticks)

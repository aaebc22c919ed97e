"""What the system says of processes, and how a whole family of them is ended (A5.19, A5.25)."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from towline_agent.workspaces.threads import FILES
from towline_protocol import Process

__all__ = [
    "ProcessRow",
    "end_family",
    "find_family",
    "kill_process",
    "list_processes",
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


async def end_family(process: Process) -> int:
    """End a program and all that belongs to it: politely, then for good (A5.19).

    The caller keeps the program's id from being reused: it has not reaped it, or has just compared
    its start time.

    Returns:
        How many processes were there to end.
    """
    known: dict[tuple[int, str], ProcessRow] = {}
    for number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILL_S)):
        told: set[tuple[int, str]] = set()
        deadline_s = asyncio.get_running_loop().time() + patience_s
        while asyncio.get_running_loop().time() < deadline_s:
            family = await FILES.run(lambda: find_family(list_processes(), process, known.values()))
            if not family:
                return len(known)
            fresh = [row for row in family if (row.pid, row.started) not in told]
            known.update(((row.pid, row.started), row) for row in fresh)
            told.update((row.pid, row.started) for row in fresh)
            _signal(process, fresh, number)
            await asyncio.sleep(_POLL_S)
    return len(known)


def _signal(process: Process, rows: list[ProcessRow], number: signal.Signals) -> None:
    """The group gets its signal in one stroke, which no fork escapes; who left it gets his own."""
    apart = [row.pid for row in rows if row.group != process.group]
    if len(apart) < len(rows):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.group, number)
    for pid in apart:
        with suppress(ProcessLookupError, PermissionError):  # gone, or under another user now
            os.kill(pid, number)


async def kill_process(process: Process) -> bool:
    """End a program that a crash left running, with all that belongs to it (A5.25).

    An id that was given to another process meanwhile is left alone. When nobody has it, what is
    left in the program's group or session is still its own: the kernel gives out no id that a group
    or session bears.

    Returns:
        Whether anything of it still ran.
    """
    if not await FILES.run(lambda: _is_same(process)):
        return False
    return await end_family(process) > 0


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

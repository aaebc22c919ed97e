"""What the system says of processes, and ending what a crash left."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from towline_agent.workspaces import processes
from towline_agent.workspaces.processes import (
    ProcessRow,
    end_orphans,
    find_family,
    kill_process,
    list_processes,
    name_maker,
    parse_ps,
    parse_stat,
    start_time,
)
from towline_protocol import Process

LIMIT_S = 60


def _row(pid: int, parent: int, group: int, session: int, *, zombie: bool = False) -> ProcessRow:
    return ProcessRow(
        pid=pid, parent=parent, group=group, session=session, started=f"t{pid}", zombie=zombie
    )


def test_a_row_is_read_whatever_the_name_in_it_holds() -> None:
    rest = "S 7 42 43 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200"
    for name in ("sh", "a b", "a) S 1 (b", ")"):
        row = parse_stat(42, f"42 ({name}) {rest}\n", "boot")
        assert row == ProcessRow(
            pid=42, name=name, parent=7, group=42, session=43, started="98765@boot", zombie=False
        )
    assert parse_stat(1, f"1 (x) Z{rest[1:]}", "").zombie


def test_the_rows_of_ps_are_read() -> None:
    rows = parse_ps(
        "    1     0     1 Ss   Mon Jan  5 10:00:00 2026\n"
        "  712     1   700 Z+   Tue Jan  6 11:22:33 2026\n"
    )
    assert [(row.pid, row.parent, row.group, row.zombie) for row in rows] == [
        (1, 0, 1, False),
        (712, 1, 700, True),
    ]
    assert rows[1].started == "Tue Jan 6 11:22:33 2026"


def test_this_process_is_found_as_it_is() -> None:
    (own,) = [row for row in list_processes() if row.pid == os.getpid()]
    assert (own.parent, own.group, own.session) == (os.getppid(), os.getpgid(0), os.getsid(0))
    assert start_time(os.getpid()) == own.started
    assert start_time(2**22 + 1) is None


@pytest.mark.rules("A5.19")
def test_a_family_is_the_group_the_session_and_all_children() -> None:
    rows = [
        _row(1, 0, 1, 1),
        _row(50, 1, 50, 50),
        _row(51, 50, 50, 50),
        _row(52, 51, 52, 50),
        _row(53, 1, 52, 50),
        _row(60, 51, 60, 60),
        _row(61, 60, 60, 60),
        _row(62, 51, 50, 50, zombie=True),
        _row(70, 1, 70, 70),
        _row(os.getpid(), 50, 50, 50),
    ]
    process = Process(pid=50, group=50, started="t50")
    family = find_family(rows, process)
    assert {row.pid for row in family} == {50, 51, 52, 53, 60, 61}
    orphaned = [_row(60, 1, 60, 60), _row(61, 60, 60, 60), _row(70, 1, 70, 70)]
    assert find_family(orphaned, process) == ()
    assert {row.pid for row in find_family(orphaned, process, family)} == {60, 61}


@pytest.mark.rules("A5.25")
def test_a_later_process_with_the_same_id_has_no_family_here() -> None:
    rows = [_row(50, 1, 50, 50), _row(51, 50, 50, 50)]
    assert find_family(rows, Process(pid=50, group=50, started="earlier")) == ()


@pytest.fixture
def orphan() -> Iterator[tuple[Process, int]]:
    """A program with a child, as a crash leaves it."""
    script = "sleep 1000 & echo $!; wait"
    with subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        try:
            started = start_time(program.pid)
            assert started is not None
            yield Process(pid=program.pid, group=program.pid, started=started), child
        finally:
            for pid in (program.pid, child):
                if _alive(pid):
                    os.kill(pid, 9)


def _alive(pid: int) -> bool:
    return any(row.pid == pid and not row.zombie for row in list_processes())


@pytest.mark.rules("A5.25", "C5.6")
async def test_what_a_crash_left_running_is_ended_with_its_children(
    orphan: tuple[Process, int],
) -> None:
    process, child = orphan
    async with asyncio.timeout(LIMIT_S):
        assert await kill_process(process)
        assert not _alive(process.pid)
        assert not _alive(child)
        assert not await kill_process(process), "a second time there is nothing left"


@pytest.mark.rules("A5.25", "C5.6")
async def test_a_process_with_another_start_time_is_left_alone(
    orphan: tuple[Process, int],
) -> None:
    process, child = orphan
    for started in ("", "1@boot", process.started + "0"):
        other = Process(pid=process.pid, group=process.group, started=started)
        assert not await kill_process(other)
    assert not await kill_process(Process(pid=2**22 + 1, group=1, started=process.started))
    assert _alive(process.pid)
    assert _alive(child)


def _end(pid: int) -> None:
    os.kill(pid, 9)
    os.waitpid(pid, 0)


@pytest.mark.rules("A5.25", "C5.6")
async def test_what_a_dead_program_left_in_its_group_is_ended(
    orphan: tuple[Process, int],
) -> None:
    process, child = orphan
    _end(process.pid)
    async with asyncio.timeout(LIMIT_S):
        assert await kill_process(process)
        assert not _alive(child)
        assert not await kill_process(process), "a second time there is nothing left"


@pytest.mark.rules("A5.25")
async def test_a_group_that_may_be_of_others_is_left_alone(orphan: tuple[Process, int]) -> None:
    process, child = orphan
    _end(process.pid)
    ticks, _, boot = process.started.partition("@")
    for started in (f"{ticks}@another", ticks, f"{ticks}@", f"Mon Jan 5@{boot}"):
        other = Process(pid=process.pid, group=process.group, started=started)
        assert not await kill_process(other), "from another boot"
    before_all = Process(pid=process.pid, group=process.group, started=f"-1@{boot}")
    assert not await kill_process(before_all)
    led_by_another = Process(pid=process.pid, group=os.getpgid(0), started=process.started)
    assert not await kill_process(led_by_another)
    assert _alive(child)


@pytest.mark.rules("A5.25")
async def test_a_group_of_a_container_that_is_gone_is_left_alone(
    orphan: tuple[Process, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, child = orphan
    _end(process.pid)
    ticks, _, boot = process.started.partition("@")
    younger = f"{int(ticks) + 1}@{boot}"

    def seen(pid: int) -> str | None:
        return younger if pid == 1 else start_time(pid)

    monkeypatch.setattr(processes, "start_time", seen)
    assert not await kill_process(process)
    assert _alive(child)


SERVER = """
import asyncio, os, signal, sys
from towline_agent.workspaces.program import run_program
async def start(process):
    print(process.pid, flush=True)
def output(text):
    print(text.strip(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
argv = ("sh", "-c", sys.argv[1])
run = run_program(argv, root="/", timeout_s=99, on_start=start, on_output=output)
asyncio.run(run)
"""
"""Runs a program, and crashes when that says something."""


def _crash(script: str) -> tuple[int, int]:
    """Let a server crash whose program runs; gives the program, and what it told of."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, script], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        told = [int(server.stdout.readline()) for _ in range(2)]
        server.wait(LIMIT_S)
    return told[0], told[1]


@pytest.fixture
def stranger(request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that says that another one runs it."""
    env = {"PROGRAM_OF": "77@5@boot", "PROGRAM_BY": request.param}
    with subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True) as program:
        yield program
        program.kill()


@pytest.mark.rules("A5.25", "S12")
@pytest.mark.skipif(sys.platform != "linux", reason="NO MARKS: this system shows no environments")
@pytest.mark.parametrize(
    "script",
    [
        "echo $$; exec sleep 1000",
        "setsid sh -c 'setsid sleep 1000 > /dev/null 2>&1 & echo $!'",
    ],
    ids=["itself", "a daemon of it"],
)
async def test_what_a_crashed_server_left_running_is_found_without_a_list(script: str) -> None:
    held, left = _crash(script)
    try:
        async with asyncio.timeout(LIMIT_S):
            await end_orphans()  # a server that starts beside this test does the same
        assert not _alive(left)
        assert not _alive(held)
    finally:
        for pid in (held, left):
            if _alive(pid):
                os.kill(pid, 9)


@pytest.mark.rules("A5.25")
@pytest.mark.skipif(sys.platform != "linux", reason="NO MARKS: this system shows no environments")
@pytest.mark.parametrize(
    "stranger", [name_maker(), "2@5@boot@pid:[1]", ""], indirect=True, ids=["us", "there", "nobody"]
)
async def test_programs_of_who_lives_of_other_containers_and_strangers_are_no_orphans(
    stranger: "subprocess.Popen[bytes]",
) -> None:
    await end_orphans()
    assert stranger.poll() is None

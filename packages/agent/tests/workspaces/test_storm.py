"""A program that makes processes without end is ended, with all that it made."""

import asyncio
import sys
import time
from pathlib import Path

import pytest

from towline_agent.workspaces import processes, program
from towline_agent.workspaces.processes import ProcessRow, list_processes
from towline_protocol import Process

LIMIT_S = 60
TEN = "1 2 3 4 5 6 7 8 9 10"
INNER = f"for j in {TEN}; do sleep 1000 & done; wait"
STORM = f"trap '' TERM; for i in {TEN}; do ({INNER}) & done; wait"
"""A hundred and eleven processes that a kind word does not end."""


@pytest.mark.rules("A5.19")
@pytest.mark.skipif(sys.platform != "linux", reason="NO COUNT: this system does not tell it")
@pytest.mark.parametrize("late", [False, True])
async def test_a_storm_of_forks_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Also when the server comes to look only after it has broken out."""
    began: list[Process] = []

    def family() -> list[ProcessRow]:
        return [row for row in list_processes() if began and row.group == began[0].group]

    def count_late() -> int:
        until = time.monotonic() + LIMIT_S / 4
        while late and began and len(family()) <= 100 and time.monotonic() < until:
            pass  # each look takes some milliseconds
        return processes.count_tasks()

    async def start(process: Process) -> None:
        began.append(process)

    monkeypatch.setattr(program, "PROCESSES_MAX", 60)
    monkeypatch.setattr(processes, "_GRACE_S", 0.1)
    monkeypatch.setattr(program, "count_tasks", count_late)
    async with asyncio.timeout(2 * LIMIT_S):
        result = await program.run_program(
            ("sh", "-c", STORM),
            root=str(tmp_path),
            timeout_s=LIMIT_S,
            on_start=start,
            on_output=lambda _: None,
        )
    assert result.exit_code is None
    assert result.why == "it had more than 60 processes at once"
    assert [row for row in family() if not row.zombie] == []

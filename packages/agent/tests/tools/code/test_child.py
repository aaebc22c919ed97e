"""Running what only computes."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from towline_agent.tools.code import child
from towline_agent.tools.code.child import run_child


async def test_input_goes_in_and_output_comes_out() -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); print('why', file=sys.stderr)"
    end = await run_child((sys.executable, "-c", code), stdin=b"abc" * 100_000, timeout_s=20)
    assert (end.code, end.output, end.error) == (0, b"ABC" * 100_000, "why\n")


async def test_it_runs_where_it_is_told_and_gets_no_key_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-secret")
    code = "import os; print(os.getcwd(), 'ACME_API_KEY' in os.environ)"
    end = await run_child((sys.executable, "-c", code), cwd=str(tmp_path), timeout_s=20)
    assert end.output.decode().split() == [str(tmp_path), "False"]


@pytest.mark.slow
async def test_its_time_is_bounded_and_what_it_wrote_is_kept() -> None:
    code = "import time; print(1, flush=True); time.sleep(600)"
    end = await run_child((sys.executable, "-c", code), timeout_s=1.0)
    assert (end.code, end.output) == (None, b"1\n")


async def test_its_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "OUTPUT_BYTES", 1000)
    end = await run_child((sys.executable, "-c", "print('x' * 5000)"), timeout_s=20)
    assert (end.code, len(end.output)) == (0, 1000)


async def test_a_cancel_ends_it_with_all_that_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    code = "import subprocess, sys; subprocess.run(['sleep', '600'], stdout=open(sys.argv[1], 'w'))"
    argv = (sys.executable, "-c", code, str(pipe))
    task = asyncio.create_task(run_child(argv, timeout_s=600))
    reader = await asyncio.get_running_loop().run_in_executor(None, lambda: pipe.open("rb"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with reader:  # it ends when nobody is left who could write
        assert await asyncio.get_running_loop().run_in_executor(None, reader.read) == b""


async def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(FileNotFoundError):
        await run_child(("/absent/program",), timeout_s=5)

"""Blocking work beside the loop."""

import asyncio
import subprocess
import sys
import threading

import pytest

from towline_agent.workspaces.threads import ThreadPool, run_to_the_end

LIMIT_S = 20


async def test_work_comes_back_with_its_value_or_its_error() -> None:
    pool = ThreadPool("probe", 2)
    assert await pool.run(lambda: threading.current_thread().name) == "probe-1"
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 // 0)


@pytest.mark.rules("A4.25")
async def test_no_more_than_the_bound_run_at_once_and_all_get_their_turn() -> None:
    pool = ThreadPool("probe", 3)
    lock = threading.Lock()
    running = most = 0
    barrier = threading.Barrier(3)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        barrier.wait(LIMIT_S)
        with lock:
            running -= 1

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        for _ in range(9):
            group.create_task(pool.run(work))
    assert most == 3


async def test_work_that_still_waits_never_begins_after_a_cancel() -> None:
    pool = ThreadPool("probe", 1)
    release = threading.Event()
    began: list[str] = []
    first = asyncio.create_task(pool.run(lambda: release.wait(LIMIT_S)))
    second = asyncio.create_task(pool.run(lambda: began.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()
    async with asyncio.timeout(LIMIT_S):
        assert await first
        await pool.run(lambda: None)
    assert began == []


def test_one_pool_serves_one_loop_after_the_other() -> None:
    pool = ThreadPool("probe", 1)
    for _ in range(2):
        assert asyncio.run(pool.run(lambda: 3)) == 3


_HANG = """
import asyncio, threading
from towline_agent.workspaces.threads import ThreadPool
async def main():
    began = threading.Event()
    def hang():
        began.set()
        threading.Event().wait()
    task = asyncio.create_task(ThreadPool("probe", 1).run(hang))
    await asyncio.get_running_loop().run_in_executor(None, began.wait)
    task.cancel()
asyncio.run(main())
print("left")
"""


@pytest.mark.rules("A4.26")
def test_work_that_never_ends_does_not_keep_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HANG], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr


async def test_a_cancel_waits_until_the_work_is_done_however_often_it_comes() -> None:
    steps: list[str] = []
    go = asyncio.Event()

    async def work() -> None:
        await go.wait()
        steps.append("done")

    task = asyncio.create_task(run_to_the_end(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["done"]


async def test_work_to_the_end_gives_its_value_or_its_error() -> None:
    async def give() -> int:
        return 3

    async def fail() -> None:
        raise ValueError("no")

    assert await run_to_the_end(give()) == 3
    with pytest.raises(ValueError, match="no"):
        await run_to_the_end(fail())

"""Ending tasks so that nothing runs on and no cancel is lost (A4.23, A4.28)."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

__all__ = ["count_cancels", "end_tasks", "heed_cancel", "run_apart", "wait_for"]

_T = TypeVar("_T")


def count_cancels() -> int:
    """How often the running task was cancelled so far; a caller's own may have been before."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def heed_cancel(before: int = 0) -> None:
    """Raise a cancel of the running task that code of others has swallowed (A4.28).

    Args:
        before: The cancels that were none of ours; see `count_cancels`.
    """
    if count_cancels() > before:
        raise asyncio.CancelledError


async def run_apart(work: Coroutine[Any, Any, _T]) -> _T:
    """Await code of others in a task of its own: what it does to its task stays in there.

    A cancel of the running task is raised, whatever that code makes of it.
    """
    before = count_cancels()
    try:
        return await asyncio.create_task(work)
    finally:
        heed_cancel(before)


async def wait_for(tasks: Sequence[asyncio.Future[Any]], *, first: bool = False) -> None:
    """Wait until all of them have ended, or one; raises nothing of theirs.

    `asyncio.wait` does the same at twice the cost, and each step waits for its calls.

    Args:
        tasks: One at least.
        first: Whether one is enough.
    """
    enough = asyncio.get_running_loop().create_future()
    left = 1 if first else len(tasks)

    def count(_: asyncio.Future[Any]) -> None:
        nonlocal left
        left -= 1
        if left <= 0 and not enough.done():
            enough.set_result(None)

    for task in tasks:
        task.add_done_callback(count)
    await enough


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks of ours and wait for them, whatever else is cancelled in the meantime.

    An outer cancel goes on to the caller once they have ended.
    """
    for task in tasks:
        task.cancel()
    cancel: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as error:
            cancel = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at: whoever awaits the result raises it
    if cancel is not None:
        raise cancel

"""Ending tasks so that nothing runs on and no cancel is lost (A4.23, A4.28)."""

import asyncio
from collections.abc import Sequence
from typing import Any

__all__ = ["end_tasks", "heed_cancel", "wait_for"]


def heed_cancel() -> None:
    """Raise a cancel of the running task that code of others has swallowed (A4.28)."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


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

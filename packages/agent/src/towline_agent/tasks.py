"""Ending tasks so that nothing runs on and no cancel is lost (A4.23, A4.28)."""

import asyncio
from typing import Any

__all__ = ["end_tasks", "heed_cancel"]


def heed_cancel() -> None:
    """Raise a cancel of the running task that code of others has swallowed (A4.28)."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


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

"""How a program ends that is told to: what it has started is ended first."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, Final

__all__ = ["heed_end"]

_ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP)
"""Told by who stops a job, and when a terminal is closed. Ctrl+C asyncio heeds itself."""


async def heed_end(work: Coroutine[Any, Any, int]) -> int:
    """Do some work, and cancel it when the process is told to end.

    Returns:
        The exit code: of the work, or 128 and the signal's number.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work)
    told: list[int] = []

    def end(number: int) -> None:
        told.append(number)
        task.cancel()

    heeded = [number for number in _ENDINGS if signal.getsignal(number) != signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not told:
            raise
        return 128 + told[0]
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)

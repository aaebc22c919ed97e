"""The rim around a program's own functions: nothing that they raise goes further as it is."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from towline_client.errors import CallFailed
from towline_protocol import TowlineError

__all__ = ["GRACE_S", "contain"]

GRACE_S: Final = 1.0
"""Seconds for a function that is cancelled to end; one that does not is left behind, so that no
session waits for it."""

_log: Final = logging.getLogger("towline.client")

_T = TypeVar("_T")

_left: Final[set[asyncio.Task[Any]]] = set()  # the loop alone holds no task


async def contain(name: str, work: Awaitable[_T]) -> _T:
    """Await what a function of the program gives; a surprise becomes one line, and goes to the log.

    The function has a task of its own: one that cancels itself fails as any other, and one that
    does not end when it is cancelled is left behind.

    Args:
        name: What it is, at the beginning of that line.
        work: The function at work.

    Raises:
        TowlineError: What it raised itself, or a `CallFailed` for anything else.
    """
    task = asyncio.create_task(_guard(name, work))
    task.add_done_callback(_note_end)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await _see_off(name, task)
        raise
    if task.cancelled():
        raise CallFailed(f"{name} was cancelled by its own code.")
    return task.result()


async def _guard(name: str, work: Awaitable[_T]) -> _T:
    try:
        return await work
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, TowlineError) and isinstance(getattr(error, "message", None), str):
            raise
        _log.error("%s failed", name, exc_info=error)
        raise CallFailed(f"{name} failed with {type(error).__name__}.") from error


async def _see_off(name: str, task: asyncio.Task[Any]) -> None:
    """Wait for a cancelled function's end, though not for long."""
    await asyncio.wait([task], timeout=GRACE_S)
    if not task.done():
        _log.error("%s goes on though it was cancelled; nobody waits for it any more", name)
        _left.add(task)


def _note_end(task: asyncio.Task[Any]) -> None:
    """Take in that a function has ended, also one that nobody waits for."""
    _left.discard(task)
    if not task.cancelled():
        task.exception()

"""Reads that may never end, in a thread that nobody has to wait for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from towline_protocol import TowlineError

__all__ = ["read_in_thread"]

_T = TypeVar("_T")


async def read_in_thread(read: Callable[[], _T]) -> _T:
    """What a blocking read gives, or raises; a cancel leaves it to itself.

    The thread is a daemon, since a read of a terminal or a pipe cannot be called off: Ctrl+C must
    not wait for Enter, nor for a program that never ends.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def hand_over(step: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits for it
            loop.call_soon_threadsafe(lambda: done.done() or step())

    def work() -> None:
        try:
            found = read()
        except (OSError, TowlineError) as error:  # raised where somebody waits for it
            caught = error
            hand_over(lambda: done.set_exception(caught))
        else:
            hand_over(lambda: done.set_result(found))

    threading.Thread(target=work, daemon=True).start()
    return await done

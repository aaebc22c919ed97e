"""The one thread that reads the key and encrypts: the library takes a second to be loaded."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["PushThreads"]

_T = TypeVar("_T")


class PushThreads:
    """Runs one piece of work at a time; the first one starts the thread."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], _T]) -> _T:
        """Do it beside the loop."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="towline-push")
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Let the thread go; work that waits is not begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

"""Plain functions beside the loop: each in a daemon thread, a bounded number at once."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

__all__ = ["Threads"]

_T = TypeVar("_T")


class _Outcome(Generic[_T]):
    """What a function came to."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self._value: _T | None = None
        self._error: BaseException | None = None
        try:
            self._value = work()
        except BaseException as error:  # whatever it is, the one who waits gets it
            self._error = error

    def get(self) -> _T:
        """The value; raises what the function raised."""
        if self._error is not None:
            raise self._error
        return self._value  # pyright: ignore[reportReturnType] - set when there is no error


class Threads:
    """Runs functions that block.

    The threads are daemons: a function that never returns must not keep the process from ending.
    """

    def __init__(self, name: str, limit: int) -> None:
        """Start nothing yet.

        Args:
            name: What the threads are called.
            limit: How many functions run at once; more wait their turn.
        """
        self._name = name
        self._free = asyncio.Semaphore(limit)

    async def run(self, work: Callable[[], _T]) -> _T:
        """Await what a function returns or raises, with the caller's context variables.

        A cancel leaves a function that runs already running, its outcome dropped; its place is free
        when it returns.
        """
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome[_T]] = loop.create_future()
        context = contextvars.copy_context()

        def settle(outcome: _Outcome[_T]) -> None:
            self._free.release()
            if not future.done():
                future.set_result(outcome)

        def job() -> None:
            outcome = _Outcome(lambda: context.run(work))
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, outcome)

        try:
            threading.Thread(target=job, name=self._name, daemon=True).start()
        except RuntimeError:  # the process can have no more threads
            self._free.release()
            raise
        return (await future).get()

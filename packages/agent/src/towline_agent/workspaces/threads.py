"""Blocking work beside the loop, in a bounded number of daemon threads (A4.25, A4.27)."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

__all__ = ["FILES", "ThreadPool", "run_to_the_end"]

_T = TypeVar("_T")

_FILE_THREADS: Final = 8
"""File work is short; more threads than this would only wait for the same disk."""


class _Outcome(Generic[_T]):
    """What a piece of work came to."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self._value: _T | None = None
        self._error: BaseException | None = None
        try:
            self._value = work()
        except BaseException as error:  # whatever it is, the one who waits gets it
            self._error = error

    def get(self) -> _T:
        """The value; raises what the work raised."""
        if self._error is not None:
            raise self._error
        return self._value  # pyright: ignore[reportReturnType] - set when there is no error


class ThreadPool:
    """Runs blocking functions for any loop, each in one of at most `limit` threads.

    The threads are daemons, unlike those of `concurrent.futures`: a function that never returns
    must not keep the process from ending.

    Args:
        name: What its threads are called.
        limit: How many functions run at once; more wait their turn, in order.
    """

    def __init__(self, name: str, limit: int) -> None:
        self.limit = limit
        """How many functions run at once."""
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._threads = 0

    async def run(self, work: Callable[[], _T]) -> _T:
        """Await what `work` returns or raises, with the caller's context variables.

        A cancel leaves work that runs already running, its outcome dropped; work that still waits
        for a thread never begins.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome[_T]] = loop.create_future()
        context = contextvars.copy_context()

        def settle(outcome: _Outcome[_T]) -> None:
            if not future.done():
                future.set_result(outcome)

        def job() -> None:
            if future.cancelled():
                return
            outcome = _Outcome(lambda: context.run(work))
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, outcome)

        self._submit(job)
        outcome = await future
        return outcome.get()

    def _submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            self._open += 1
            grow = self._threads < min(self._open, self.limit)
            self._threads += grow
            number = self._threads
        if grow:
            threading.Thread(target=self._serve, name=f"{self._name}-{number}", daemon=True).start()
        self._jobs.put(job)

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            job()
            del job  # or the last work's objects live until the next
            with self._lock:
                self._open -= 1


FILES: Final = ThreadPool("towline-files", _FILE_THREADS)
"""Where workspaces read files and look at processes; apart from tools, whose threads may hang."""


async def run_to_the_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await `work` to its end even when the caller is cancelled, then let the cancel go on.

    For what must not be left half done: making a process known, ending one.
    """
    task = asyncio.create_task(work)
    cancel: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancel = error
    if cancel is not None:
        raise cancel from task.exception()
    return task.result()

"""Blocking work beside the loop, in a bounded number of daemon threads (A4.25, A4.27)."""

import asyncio
import contextvars
import os
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


class _Crew:
    """The threads of a pool in one process, and the work that waits for them."""

    def __init__(self) -> None:
        import queue  # with the first work, not with the library

        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.open = 0
        self.threads = 0

    def serve(self) -> None:
        while True:
            job = self.jobs.get()
            job()
            del job  # or the last work's objects live until the next
            with self.lock:
                self.open -= 1


class ThreadPool:
    """Runs blocking functions for any loop, each in one of at most `limit` threads.

    The threads are daemons, unlike those of `concurrent.futures`: a function that never returns
    must not keep the process from ending. A forked child has threads of its own.

    Args:
        name: What its threads are called.
        limit: How many functions run at once; more wait their turn, in order.
    """

    def __init__(self, name: str, limit: int) -> None:
        self.limit = limit
        """How many functions run at once."""
        self._name = name
        self._crew: _Crew | None = None
        self._lock = threading.Lock()
        self._heeds_forks = False

    async def run(
        self, work: Callable[[], _T], *, on_withdrawn: Callable[[], None] | None = None
    ) -> _T:
        """Await what `work` returns or raises, with the caller's context variables.

        A cancel leaves work that runs already running, its outcome dropped; work that still waits
        for a thread never begins.

        Args:
            work: The function.
            on_withdrawn: Called when a cancel comes before it began, so that it never will.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome[_T]] = loop.create_future()
        context = contextvars.copy_context()
        turn = threading.Lock()  # taken once: by the thread that begins, or by a cancel before

        def settle(outcome: _Outcome[_T]) -> None:
            if not future.done():
                future.set_result(outcome)

        def job() -> None:
            if not turn.acquire(blocking=False):
                return
            outcome = _Outcome(lambda: context.run(work))
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, outcome)

        self._submit(job)
        try:
            outcome = await future
        except asyncio.CancelledError:
            if turn.acquire(blocking=False) and on_withdrawn is not None:
                on_withdrawn()
            raise
        return outcome.get()

    def _submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            crew = self._crew = self._crew or _Crew()
        with crew.lock:
            crew.open += 1
            grow = crew.threads < min(crew.open, self.limit)
            crew.threads += grow
            number = crew.threads
        if grow:
            self._heed_forks()
            name = f"{self._name}-{number}"
            threading.Thread(target=crew.serve, name=name, daemon=True).start()
        crew.jobs.put(job)

    def _heed_forks(self) -> None:
        if not self._heeds_forks and hasattr(os, "register_at_fork"):
            self._heeds_forks = True
            os.register_at_fork(after_in_child=self._leave_parent)

    def _leave_parent(self) -> None:
        """In a forked child: no thread came along, and what waited is the parent's."""
        self._crew = None
        self._lock = threading.Lock()


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

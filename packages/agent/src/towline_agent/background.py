"""Running a coroutine to its end for code that does not await (A4.51, D13)."""

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Final, TypeVar

from towline_protocol import UsageError

__all__ = ["run_in_background"]

_T = TypeVar("_T")


class _Background:
    """One daemon thread with one loop for the process, made on first use (D13).

    Whatever a tool does to that loop, nobody waits for ever: one that is stopped goes on, and one
    that ends fails who waits and is followed by a new one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[Future[Any]] = set()
        self._parents: list[asyncio.AbstractEventLoop] = []
        self._heeds_forks = False

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Begin work on the loop."""
        with self._lock:
            future = asyncio.run_coroutine_threadsafe(work, self._living_loop())
            self._waiting.add(future)
            future.add_done_callback(self._waiting.discard)
            return future

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on that loop, which would then wait for itself."""
        return threading.current_thread() is self._thread

    def _living_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            if not self._heeds_forks and hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._leave_parent)
                self._heeds_forks = True
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._serve, args=(self._loop,), name="towline-run-sync", daemon=True
            )
            self._thread.start()
        return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while not loop.is_closed():  # a `stop()` by a tool ends nothing of ours
                with suppress(SystemExit, KeyboardInterrupt):  # its task has it, and so who waits
                    loop.run_forever()
        finally:
            self._give_up(loop)

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop is broken: fail what waits for it, and let the next call have a new one."""
        with self._lock:
            self._loop = self._thread = None
            waiting = list(self._waiting)
        cause = sys.exception()
        kind = type(cause).__name__ if cause is not None else "it was closed"
        for future in waiting:
            error = UsageError(
                f"The loop of `run_sync` ended under this run ({kind}); a tool or a provider broke "
                "it. Mend that one; the next `run_sync` gets a new loop."
            )
            with suppress(InvalidStateError):
                future.set_exception(error)
        with suppress(OSError, RuntimeError, ValueError):  # it is broken
            loop.close()

    def _leave_parent(self) -> None:
        """In a forked child: no thread came along, and the parent's loop is not ours to touch."""
        self._lock = threading.Lock()
        if self._loop is not None:
            self._parents.append(self._loop)  # closing it would reach the parent's own
        self._loop = self._thread = None
        self._waiting = set()


_background: Final = _Background()


def run_in_background(work: Coroutine[Any, Any, _T]) -> _T:
    """Run it on the process's one daemon loop and wait for its end.

    Raises:
        UsageError: The caller runs on that loop, which would wait for itself; or the loop was
            broken under the run.
    """
    if _background.is_here:
        work.close()
        raise UsageError("An async tool of a `run_sync` called `run_sync`; `await run(...)` there.")
    future = _background.submit(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # Ctrl+C in the caller's thread stops the run too
        raise

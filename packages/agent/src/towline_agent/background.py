"""Running a coroutine to its end for code that does not await (A4.51, D13)."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from towline_protocol import UsageError

__all__ = ["run_in_background"]

_T = TypeVar("_T")


class _Background:
    """One daemon thread with one loop for the process, made on first use (D13)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="towline-run-sync", daemon=True
                )
                self._thread.start()
            return self._loop

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on that loop, which would then wait for itself."""
        return threading.current_thread() is self._thread


_background: Final = _Background()


def run_in_background(work: Coroutine[Any, Any, _T]) -> _T:
    """Run it on the process's one daemon loop and wait for its end.

    Raises:
        UsageError: The caller runs on that loop, which would wait for itself.
    """
    if _background.is_here:
        work.close()
        raise UsageError("An async tool of a `run_sync` called `run_sync`; `await run(...)` there.")
    future = asyncio.run_coroutine_threadsafe(work, _background.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # Ctrl+C in the caller's thread stops the run too
        raise

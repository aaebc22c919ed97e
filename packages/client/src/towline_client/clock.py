"""Time as an argument, so that tests need none."""

import asyncio
import time
from typing import Protocol

__all__ = ["Clock", "LoopClock"]


class Clock(Protocol):
    """What a client knows of time.

    Contract: `now_ms` never goes back; `wait` never raises but for cancellation.
    """

    def now_ms(self) -> int:
        """Milliseconds since some moment that never moves."""
        ...

    async def wait(self, event: asyncio.Event, until_ms: int | None) -> None:
        """Return when the event is set or the time has come; `None` waits for the event alone."""
        ...


class LoopClock:
    """The real clock."""

    def now_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    async def wait(self, event: asyncio.Event, until_ms: int | None) -> None:
        """Return when the event is set or the time has come."""
        left_s = None if until_ms is None else max(0.0, (until_ms - self.now_ms()) / 1000)
        try:
            async with asyncio.timeout(left_s):
                await event.wait()
        except TimeoutError:
            return

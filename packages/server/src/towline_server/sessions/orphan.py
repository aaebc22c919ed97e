"""A turn that nobody watches: it goes on, or is interrupted after a while (C5.13)."""

import asyncio
from collections.abc import Callable
from typing import Any

from towline_agent import Clock
from towline_server.sessions.deadline import ring_within

__all__ = ["OrphanWatch"]


class OrphanWatch:
    """Knows how long nobody has been attached to a session.

    Args:
        clock: Time.
        after_s: Seconds without a reader that are too many; `None` when none are.
        readers: How many are attached (C5.16).
    """

    def __init__(self, clock: Clock, after_s: float | None, readers: Callable[[], int]) -> None:
        self._clock = clock
        self._after_s = after_s
        self._readers = readers
        self._alone_s: float | None = None
        self._bell = asyncio.Event()

    def note_readers(self) -> None:
        """Readers came or went."""
        if self._readers():
            self._alone_s = None
        elif self._alone_s is None:
            self._alone_s = self._clock.monotonic()
        self._bell.set()

    async def wait_beside(self, other: asyncio.Future[Any]) -> None:
        """Return once nobody has been attached for too long, or `other` is done.

        The time counts from this call at the earliest.
        """
        if self._after_s is None:
            await asyncio.wait({other})
            return
        alone = asyncio.create_task(self._wait(self._after_s))
        try:
            await asyncio.wait({other, alone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alone.cancel()
            await asyncio.wait({alone})

    async def _wait(self, after_s: float) -> None:
        self._alone_s = None
        self.note_readers()
        while True:
            left_s = None
            if self._alone_s is not None:
                left_s = self._alone_s + after_s - self._clock.monotonic()
                if left_s <= 0:
                    return
            self._bell.clear()
            await ring_within(self._clock, self._bell, left_s)

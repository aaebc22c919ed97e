"""A clock for tests."""

import asyncio

__all__ = ["ManualClock"]


class ManualClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._waiters: list[tuple[int, asyncio.Event]] = []

    def now_ms(self) -> int:
        """Where it stands."""
        return self._now_ms

    async def wait(self, event: asyncio.Event, until_ms: int | None) -> None:
        """Return when the event is set or the time was reached."""
        if until_ms is None:
            await event.wait()
            return
        if until_ms <= self._now_ms:
            return
        due = asyncio.Event()
        self._waiters.append((until_ms, due))
        tasks = [asyncio.create_task(each.wait()) for each in (event, due)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def advance(self, ms: int) -> None:
        """Move on, and let everybody go whose time has come."""
        self._now_ms += ms
        for until_ms, due in self._waiters:
            if until_ms <= self._now_ms:
                due.set()
        self._waiters = [waiter for waiter in self._waiters if not waiter[1].is_set()]

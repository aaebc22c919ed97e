"""When a request to people ends by itself, and what moves that moment (C5.8, C5.9)."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import Any, Final

import msgspec

from towline_agent import Clock
from towline_protocol import format_time

__all__ = [
    "BLIP_S",
    "LEAST_LEFT_S",
    "Deadline",
    "OpenRequest",
    "OpenRequests",
    "Patience",
    "ring_within",
]

LEAST_LEFT_S: Final = 10.0
"""A request that is offered again after a restart can be answered for this long at least."""
BLIP_S: Final = 5.0
"""A reader that is back within this time never left: a page that is loaded anew, a phone that
changes networks. So a line that comes and goes writes nothing into the log."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a session waits for people."""

    permission_s: float = 120.0
    """Seconds until a permission that nobody answers is denied."""
    question_s: float = 60.0
    """Seconds after the last reader left until the agent decides a question itself."""
    away_s: float = 1800.0
    """The same for both, once somebody was called from elsewhere."""
    orphan_s: float | None = None
    """Seconds without a reader after which a turn is interrupted; `None` for never (C5.13)."""


class Deadline:
    """The moment at which one request ends by itself.

    It knows no clock: every time is an argument, in seconds that never go back.

    Args:
        now_s: When it begins.
        window_s: How long people usually have.
        away_s: How long they have once they were called from elsewhere.
        readers: How many are attached, for a request that has no deadline while somebody is;
            `None` for one that always has one.
        left_s: What was left when the server went, for a request that is offered again.
    """

    def __init__(
        self,
        now_s: float,
        *,
        window_s: float,
        away_s: float,
        readers: int | None = None,
        left_s: float | None = None,
    ) -> None:
        self.at_s: float | None = None
        """The moment; `None` while there is none."""
        self._waits_for_readers = readers is not None
        self._window_s = window_s
        self._away_s = away_s
        self._called = left_s is not None and left_s > window_s  # nothing else makes it so long
        self._gone_s: float | None = None
        if not readers:
            most_s = self._length()
            left_s = most_s if left_s is None else min(most_s, max(LEAST_LEFT_S, left_s))
            self.at_s = now_s + left_s

    def note_readers(self, count: int, now_s: float) -> None:
        """Readers came or went."""
        if not self._waits_for_readers:
            return
        if count:
            self._gone_s = self.at_s = None
        elif self.at_s is None and self._gone_s is None:
            self._gone_s = now_s

    def note_wake_up(self, now_s: float) -> None:
        """People were called from elsewhere: they have the longer time from now on."""
        self._called = True
        self._put_off(now_s + self._away_s)

    def note_visible(self, now_s: float) -> None:
        """A person looks at a client: they have the usual time from now on, at least."""
        self._put_off(now_s + self._window_s)

    def look(self, now_s: float) -> None:
        """Take in that time has passed."""
        if self._gone_s is not None and now_s >= self._gone_s + BLIP_S:
            self.at_s = self._gone_s + self._length()
            self._gone_s = None

    def wait_s(self, now_s: float) -> float | None:
        """Seconds until something changes by itself; `None` when nothing will."""
        if self._gone_s is not None:
            return self._gone_s + BLIP_S - now_s
        return None if self.at_s is None else self.at_s - now_s

    def _length(self) -> float:
        return self._away_s if self._called else self._window_s

    def _put_off(self, at_s: float) -> None:
        if self.at_s is not None:
            self.at_s = max(self.at_s, at_s)  # nobody loses time that they were shown


class OpenRequest:
    """One request that waits for people.

    Args:
        clock: Time.
        deadline: When it ends by itself.
        show: Emits the request with this `expires_at`; the same id replaces it for readers.
    """

    def __init__(
        self, clock: Clock, deadline: Deadline, show: Callable[[str | None], None]
    ) -> None:
        self.deadline = deadline
        """When it ends by itself."""
        self._clock = clock
        self._show = show
        self._shown_s: float | None = None
        self._answered = False
        self._bell = asyncio.Event()

    def show(self) -> None:
        """Say what is asked, and until when."""
        at_s = self._shown_s = self.deadline.at_s
        if at_s is None:
            self._show(None)
            return
        left_s = at_s - self._clock.monotonic()
        self._show(format_time(self._clock.now_ms() + round(left_s * 1000)))

    def answer(self) -> None:
        """Somebody has answered: whoever waits goes on."""
        self._answered = True
        self._bell.set()

    def move(self, change: Callable[[Deadline, float], None]) -> None:
        """Something happened that may move the deadline; if it does the request is shown again."""
        change(self.deadline, self._clock.monotonic())
        self._bell.set()

    async def wait(self) -> None:
        """Wait for `answer` or for the deadline, wherever it moves."""
        while not self._answered:
            now_s = self._clock.monotonic()
            self.deadline.look(now_s)
            at_s = self.deadline.at_s
            if at_s is not None and at_s <= now_s:
                return
            if at_s != self._shown_s:
                self.show()
            self._bell.clear()
            await ring_within(self._clock, self._bell, self.deadline.wait_s(now_s))


class OpenRequests:
    """All requests of one session that wait for people, by their ids."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, OpenRequest] = {}

    @property
    def waiting(self) -> bool:
        """Whether the turn waits for people right now."""
        return bool(self._open)

    @contextlib.contextmanager
    def hold(
        self, id_: str, deadline: Deadline, show: Callable[[str | None], None]
    ) -> Generator[OpenRequest]:
        """Show a request; it is one of those that wait until the context ends."""
        request = self._open[id_] = OpenRequest(self._clock, deadline, show)
        try:
            request.show()
            yield request
        finally:
            del self._open[id_]

    def answer(self, id_: str) -> None:
        """A request was answered; whoever waits for it goes on."""
        if id_ in self._open:
            self._open[id_].answer()

    def note_readers(self, count: int) -> None:
        """Readers came or went; so many are attached now."""
        self._move(lambda deadline, now_s: deadline.note_readers(count, now_s))

    def note_wake_up(self) -> None:
        """People were called from elsewhere."""
        self._move(Deadline.note_wake_up)

    def note_visible(self) -> None:
        """A person looks at a client."""
        self._move(Deadline.note_visible)

    def _move(self, change: Callable[[Deadline, float], None]) -> None:
        for request in self._open.values():
            request.move(change)


async def ring_within(clock: Clock, bell: asyncio.Event, delay_s: float | None) -> None:
    """Wait for a bell, for so many seconds at most; `None` for as long as it takes."""
    tasks: set[asyncio.Task[Any]] = {asyncio.create_task(bell.wait())}
    if delay_s is not None:
        tasks.add(asyncio.create_task(clock.sleep(delay_s)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

"""How the built-in model stands, as people are told: fetched, loaded, at work, or why not."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from towline.local import Speed, Work
from towline_protocol import LocalModelState

__all__ = ["Stand", "Worker"]

_MIN_S: Final = 0.2
"""Two looks that follow each other faster measure nothing."""


class Worker(Protocol):
    """A model that runs."""

    @property
    def alive(self) -> bool:
        """Whether it runs still."""
        ...

    async def look(self) -> Work | None:
        """What it does now; `None` when it does not say."""
        ...


class Stand:
    """Told of each step by whoever starts the model; asked by whoever looks on.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._state = LocalModelState(state="off")
        self._note: str | None = None
        self._served: Worker | None = None
        self._speed: Speed | None = None
        self._seen: tuple[float, int] | None = None

    def begin(self) -> None:
        """It is being started."""
        self._note = None
        self.loading()

    def fetching(self, done: int, total: int, source: str) -> None:
        """So many bytes of it are there."""
        self._state = LocalModelState(
            state="fetching",
            done_bytes=done,
            total_bytes=total,
            source=source,
            message=self._note,
        )

    def note(self, note: str) -> None:
        """The fetch has something to say."""
        self._note = note
        self._state = LocalModelState(
            state=self._state.state,
            done_bytes=self._state.done_bytes,
            total_bytes=self._state.total_bytes,
            source=self._state.source,
            message=note,
        )

    def loading(self) -> None:
        """Its file is there."""
        self._state = LocalModelState(state="loading")

    def ready(self, served: Worker, speed: Speed | None) -> None:
        """It runs."""
        self._state = LocalModelState(state="ready")
        self._served, self._speed, self._seen = served, speed, None

    def failed(self, why: str) -> None:
        """It could not be had; the next use tries again."""
        self._state = LocalModelState(state="failed", message=why)

    def stopped(self) -> None:
        """It runs no more."""
        self._served = None
        if self._state.state == "ready":
            self._state = LocalModelState(state="off")

    async def tell(self) -> LocalModelState:
        """How it stands now; asks the model what it does, for two seconds at most."""
        served = self._served
        if served is None:
            return self._state
        if not served.alive:
            return LocalModelState(state="off")
        work = await served.look()
        if work is None or not work.busy:
            self._seen = None
            return self._state
        if work.written_tokens == 0:
            self._seen = None
            percent = None
            if 0 < work.read_tokens <= work.prompt_tokens:
                percent = work.read_tokens * 100 // work.prompt_tokens
            return LocalModelState(state="reading", percent=percent)
        return LocalModelState(state="writing", tokens_s=self._rate(work.written_tokens))

    def _rate(self, written: int) -> float | None:
        """Tokens a second since the last look; what warming measured, at the first one."""
        now, before = self._clock(), self._seen
        self._seen = (now, written)
        if before is not None and written > before[1] and now - before[0] >= _MIN_S:
            return round((written - before[1]) / (now - before[0]), 1)
        return None if self._speed is None else round(self._speed.write_per_s, 1)

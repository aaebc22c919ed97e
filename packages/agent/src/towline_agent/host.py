"""What a turn needs from whoever runs it: a server's session, or the library itself."""

import asyncio
import os
import time
from collections.abc import Awaitable
from typing import Protocol

import msgspec

from towline_protocol import (
    Event,
    PermissionRequested,
    PermissionResolved,
    Private,
    PromptId,
    Transcript,
    mint_id,
)

__all__ = ["Clock", "Host", "Mint", "Stop", "SystemClock", "mint_now"]


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody stops the turn."""

    by: str
    """Who."""
    reason: str
    """Why."""


class Host(Protocol):
    """The other end of the loop: keeps what it emits and asks people.

    `emit` keeps order, never waits and never raises: it takes the event into `transcript` and hands
    it on to be committed. `settle` returns when all that was emitted is committed, and is where the
    loop waits for room; it raises what the store raised. The loop settles before every side effect
    and at the end; what is not committed is not shown (D9). `ask` emits the request and its one
    resolution, a cancel being one too, and returns it; it raises what the store raised. `steers`
    hands out, once, the prompts that people want said into the running turn. `stopped` returns when
    somebody stops the turn; where it is `None` a cancel alone does. None of them closes anything.
    """

    @property
    def transcript(self) -> Transcript:
        """The conversation so far; `emit` adds to it."""
        ...

    def emit(self, event: Event, private: tuple[Private, ...] = ()) -> None:
        """Take in an event, in order."""
        ...

    async def settle(self) -> None:
        """Wait until all that was emitted is durable."""
        ...

    async def ask(self, request: PermissionRequested) -> PermissionResolved:
        """Let a person decide; a request nobody answers is denied (C5.9)."""
        ...

    def steers(self) -> tuple[PromptId, ...]:
        """Prompts to deliver before the next step."""
        ...

    def stopped(self) -> Awaitable[Stop] | None:
        """Wait for somebody to stop the turn; an `async def` will do. `None`: nobody will."""
        ...


class Clock(Protocol):
    """Time as an argument, so that no test waits."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Wait, cancellably."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Wait, cancellably."""
        await asyncio.sleep(delay_s)


class Mint(Protocol):
    """Makes ids; an argument, so that tests have known ones."""

    def __call__(self, prefix: str) -> str:
        """A new id with this prefix."""
        ...


def mint_now(prefix: str) -> str:
    """A new id of this moment with real randomness."""
    return mint_id(prefix, time.time_ns() // 1_000_000, os.urandom(16))

"""Waiting for a line to be up, whatever the server and the network do."""

import asyncio
from typing import Final

from towline_client.bridge.bridge import Bridge
from towline_client.clock import Clock
from towline_client.errors import ConnectionLost
from towline_client.outbox import LIFE_MS
from towline_client.session import Session
from towline_protocol import TowlineError

__all__ = ["SETTLE_MS", "come_up"]

SETTLE_MS: Final = LIFE_MS + 30_000
"""Milliseconds for a line that is up to catch up and for the server to know this program's tools:
as long as a command is tried, and as long as a request may take before."""


async def come_up(opened: Session, bridge: Bridge, clock: Clock) -> None:
    """Return when a line is up and the server knows the tools.

    Args:
        opened: The session, whose line has begun.
        bridge: Declares the tools.
        clock: Times the wait.

    Raises:
        TowlineError: Why it is not; the line may still try.
    """
    async for connection in opened.connection:
        if connection.phase in ("live", "failed") or connection.failures > 1:
            break  # one failure may be a blip: the second try came at once
    connection = opened.connection.value
    if connection.phase not in ("live", "closed"):
        raise connection.error or ConnectionLost("The line ended before it was up; try again.")
    settling = asyncio.create_task(bridge.settle())
    failing = asyncio.create_task(_failure(opened))
    waiting = asyncio.create_task(clock.wait(asyncio.Event(), clock.now_ms() + SETTLE_MS))
    tasks = (settling, failing, waiting)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if settling.done():
            settling.result()
        elif failing.done():
            raise failing.result()
        else:
            raise ConnectionLost(
                f"The line was up, but in {SETTLE_MS // 1000} s the server neither sent all that "
                "there is nor took this program's tools; try again."
            )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _failure(opened: Session) -> TowlineError:
    """Why a line was given up; never of one that is closed: what waits for that is told so."""
    async for connection in opened.connection:
        if connection.phase == "failed":
            return connection.error or ConnectionLost("The line was given up; try again.")
    while True:
        await asyncio.Event().wait()

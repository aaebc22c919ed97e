"""Saying something until the server has answered, with nobody there to press a button again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from towline_client.clock import Clock
from towline_client.errors import ClientError, CommandRejected

__all__ = ["FIRST_AGAIN_MS", "MOST_AGAIN_MS", "insist"]

FIRST_AGAIN_MS: Final = 2_000
"""Milliseconds before something is said again that came to nothing; each further wait doubles."""
MOST_AGAIN_MS: Final = 60_000
"""Where the doubling stops: half of the shortest time that people and tools are usually given."""

_log: Final = logging.getLogger("towline.client")

_T = TypeVar("_T")


async def insist(say: Callable[[], Awaitable[_T]], what: str, *, clock: Clock) -> _T:
    """Say something until the server takes it or says no; cancel it when it means nothing more.

    A sign-in page, a refused credential, minutes without an answer: all that may pass, while the
    session waits for this and so gives no other reason to try again.

    Args:
        say: Says it, under a key.
        what: What it is, for the log.
        clock: Times the waits.

    Raises:
        CommandRejected: The server said no.
        TowlineError: It cannot be said at all.
    """
    wait_ms = FIRST_AGAIN_MS
    while True:
        try:
            return await say()
        except ClientError as error:
            if isinstance(error, CommandRejected) and error.retry != "same_request":
                raise
            _log.warning("%s has not arrived so far: %s", what, error.message)
        await clock.wait(asyncio.Event(), clock.now_ms() + wait_ms)
        wait_ms = min(2 * wait_ms, MOST_AGAIN_MS)

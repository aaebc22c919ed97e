"""The seam between sessions and what keeps their logs."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from towline_protocol import SessionId
from towline_server.errors import StoreError
from towline_server.store.records import (
    EVERY,
    NEWEST,
    Append,
    SessionCursor,
    SessionFilter,
    SessionRow,
    StoredRow,
)

__all__ = ["PAGE_ROWS", "Done", "EventStore", "append_and_wait"]

PAGE_ROWS: Final = 256
"""Events a page holds at most: a replay is read in pieces that never fill the memory."""

Done = Callable[[StoreError | None], None]
"""Told on the loop how an append ended: `None` once it is durable."""


class EventStore(Protocol):
    """Keeps the log of every session.

    `append` hands a piece of a session's log over and returns at once; it never raises and cannot
    be cancelled. `done` is called on the event loop, in the order of commits, after the piece is
    durable (C1.4), or with the error that kept it out; then nothing of it is stored, and later
    pieces of that session are refused as stale until the session is loaded again (C1.3). `read`,
    `session` and `sessions` see what is committed, which can be more than what `done` has told of:
    bound them by the number you have published. They raise `StoreError`. `close` returns when all
    that was handed over is committed and told; it may be called twice.
    """

    @property
    def log(self) -> str:
        """The lineage of this store: another one means that cursors of it count for nothing."""
        ...

    def append(self, batch: Append, done: Done) -> None:
        """Add to a session's log."""
        ...

    async def read(
        self, session: SessionId, *, after: int, upto: int, limit: int = PAGE_ROWS
    ) -> list[StoredRow]:
        """Events with `after < seq <= upto`, oldest first; empty only when there are none left."""
        ...

    async def session(self, session: SessionId) -> SessionRow | None:
        """One session's row."""
        ...

    async def sessions(
        self,
        *,
        user: str | None,
        after: SessionCursor = NEWEST,
        limit: int = PAGE_ROWS,
        only: SessionFilter = EVERY,
    ) -> list[SessionRow]:
        """A user's sessions, newest first; with `user=None` all that have something open."""
        ...

    async def close(self) -> None:
        """Commit what waits and let go of everything."""
        ...


async def append_and_wait(store: EventStore, batch: Append) -> None:
    """Append and wait until it is durable.

    A cancel ends the wait alone: the append is committed all the same (C5.15).

    Raises:
        StoreError: It was not stored.
    """
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: StoreError | None) -> None:
        if ended.done():
            return  # nobody waits any more
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    store.append(batch, done)
    await ended

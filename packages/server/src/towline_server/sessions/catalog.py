"""All sessions of a store, in memory or not: looked up, listed, marked as read."""

from collections.abc import Callable
from functools import partial
from typing import Final

from towline_protocol import SessionId, SessionInfo, SessionList, TurnId, UsageError, format_time
from towline_server.errors import SessionGone, SessionNotFound
from towline_server.store import marks, tombstones
from towline_server.store.records import (
    NEWEST,
    SessionFilter,
    SessionRow,
    format_cursor,
    parse_cursor,
)
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["Catalog", "Shown", "describe", "gone", "list_stored_sessions", "not_found"]

_LARGEST: Final = 2**63 - 1  # what the store can hold

Shown = Callable[[SessionRow], SessionInfo]
"""How a stored row is shown: of a session in memory, as it is there."""


class Catalog:
    """The rows of all sessions."""

    def __init__(self, store: SqliteStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms

    async def find(self, user: str, session: SessionId) -> SessionRow:
        """A user's session.

        Raises:
            SessionNotFound: There is none of that id for this user (C2.9).
            SessionGone: The user deleted it within the last day (C2.10).
            StoreError: The store cannot be read.
        """
        row = await self._store.session(session)
        if row is not None and row.user == user:
            return row
        now_ms = self._now_ms()
        buried = partial(tombstones.is_buried, session=session, user=user, now_ms=now_ms)
        if row is None and await self._store.query(buried):
            raise gone(session)
        raise not_found(session)

    async def page(
        self, user: str, only: SessionFilter, limit: int, after: str | None, shown: Shown
    ) -> SessionList:
        """Sessions of a user, newest first.

        Raises:
            CursorExpired: `after` is no cursor of this list.
            StoreError: The store cannot be read.
        """
        cursor = NEWEST if after is None else parse_cursor(after)
        rows = await self._store.sessions(user=user, after=cursor, limit=limit + 1, only=only)
        page = rows[:limit]
        return SessionList(
            sessions=tuple(map(shown, page)),
            next=format_cursor(page[-1]) if len(rows) > limit else None,
        )

    async def mark_read(self, user: str, session: SessionId, seq: int) -> int:
        """Note how far a user has read.

        Returns:
            Where the mark stands: it goes neither back nor beyond the last event.

        Raises:
            UsageError: There can be no such event.
            SessionNotFound: There is none of that id for this user.
            SessionGone: It is deleted.
            StoreError: It could not be kept.
        """
        if not 0 <= seq <= _LARGEST:
            raise UsageError(f"There is no event {seq!r}; send the number of the last one seen.")
        advance = partial(marks.advance, session=session, user=user, seq=seq)
        stands = await self._store.write(advance)
        if stands is None:
            await self.find(user, session)  # says why
            raise not_found(session)
        return stands


async def list_stored_sessions(
    store: SqliteStore,
    user: str,
    *,
    limit: int,
    after: str | None = None,
    archived: bool = False,
    needs: bool = False,
) -> SessionList:
    """A page of a user's sessions in a store at rest: none of them runs.

    Args:
        store: The store.
        user: Whose.
        limit: The most rows.
        after: The `next` of the page before.
        archived: Those that are put away, instead of the others.
        needs: Only those in which something waits for a person.

    Raises:
        CursorExpired: `after` is no cursor of this list.
        StoreError: The store cannot be read.
    """
    only = SessionFilter(archived=archived, needs=needs)
    catalog = Catalog(store, lambda: 0)
    return await catalog.page(user, only, limit, after, partial(describe, live=False))


def describe(row: SessionRow, *, live: bool) -> SessionInfo:
    """A row as clients see it.

    Args:
        row: The row.
        live: Whether a turn runs, something is pending or a reader is attached (C6).
    """
    return SessionInfo(
        id=row.id,
        agent=row.agent,
        model=row.model,
        mode=row.mode,
        live=live,
        last_seq=row.last_seq,
        turn=None if row.turn is None else TurnId(row.turn),
        pending=row.pending,
        queued=row.queued,
        title=row.title,
        last_line=row.last_line,
        cwd=row.cwd,
        created=format_time(row.created_ms),
        updated=format_time(row.updated_ms),
        closed=row.closed,
        archived=row.archived,
        labels=row.labels,
        unread=row.said_seq > row.read_seq,
        read_seq=row.read_seq,
    )


def not_found(session: SessionId) -> SessionNotFound:
    """The refusal for a session that is not there, or not the caller's."""
    return SessionNotFound(
        f"There is no session {session!r}; `towline sessions`, or `GET /api/sessions`, lists them."
    )


def gone(session: SessionId) -> SessionGone:
    """The refusal for a session that was deleted."""
    return SessionGone(f"The session {session!r} is deleted; start a new one.", reason="deleted")

"""What stays of a deleted session for a day, and how the rest of it is removed (C2.10).

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Final

from towline_protocol import SessionId
from towline_server.store import attachments, idempotency
from towline_server.store.records import IdempotencyRecord
from towline_server.store.statements import load_statements

__all__ = ["KEPT_MS", "REMOVED_ROWS", "bury", "is_buried", "prune", "remove_some", "unfinished"]

KEPT_MS: Final = 24 * 3600 * 1000
"""Milliseconds for which a deleted session is told from one that never was (C2.10)."""
REMOVED_ROWS: Final = 500
"""Events that are removed in one piece, so that the writes of others do not wait for a long log."""

_SQL: Final = load_statements("tombstones")


def bury(
    connection: sqlite3.Connection,
    session: SessionId,
    user: str,
    *,
    now_ms: int,
    answer: IdempotencyRecord | None = None,
) -> bool:
    """Take a session out of the list for good; its events are removed by `remove_some` after that.

    Args:
        connection: The store.
        session: The session.
        user: Whose it is.
        now_ms: The time.
        answer: An answer that becomes true with this.

    Returns:
        Whether the user had such a session.
    """
    if connection.execute(_SQL["remove_session"], (session, user)).rowcount != 1:
        return False
    connection.execute(_SQL["remove_words"], (session,))
    connection.execute(_SQL["remove_marks"], (session,))
    connection.execute(_SQL["remove_quarantine"], (session,))
    connection.execute(_SQL["remove_outcomes"], (session,))
    attachments.forget_session(connection, session, now_ms=now_ms)
    connection.execute(_SQL["insert_tombstone"], (session, user, now_ms))
    if answer is not None:
        idempotency.keep(connection, answer)
    return True


def remove_some(connection: sqlite3.Connection, session: SessionId) -> bool:
    """Remove a piece of a buried session's log; `False` when nothing is left of it."""
    gone = connection.execute(_SQL["remove_events"], (session, REMOVED_ROWS)).rowcount
    if gone == REMOVED_ROWS:
        return True
    connection.execute(_SQL["note_emptied"], (session,))
    return False


def unfinished(connection: sqlite3.Connection) -> list[SessionId]:
    """The buried sessions whose logs are not removed yet: a crash came between."""
    return [SessionId(row[0]) for row in connection.execute(_SQL["list_unfinished"])]


def is_buried(
    connection: sqlite3.Connection, session: SessionId, user: str, *, now_ms: int
) -> bool:
    """Whether the user deleted this session within the last day."""
    row = (session, user, now_ms - KEPT_MS)
    return connection.execute(_SQL["find_tombstone"], row).fetchone() is not None


def prune(connection: sqlite3.Connection, *, now_ms: int) -> int:
    """Forget the sessions that were deleted more than a day ago; gives how many they were."""
    return connection.execute(_SQL["prune_tombstones"], (now_ms - KEPT_MS,)).rowcount

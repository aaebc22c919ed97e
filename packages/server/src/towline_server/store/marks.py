"""How far people have read. Beside the log: a mark is no event (C2.6).

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Final

from towline_protocol import SessionId
from towline_server.store.statements import load_statements

__all__ = ["advance"]

_SQL: Final = load_statements("marks")


def advance(
    connection: sqlite3.Connection, session: SessionId, user: str, *, seq: int
) -> int | None:
    """Move a user's mark on to an event, never back and never beyond the log's end.

    Returns:
        The number that it stands at now; `None` when the user has no such session.
    """
    found = connection.execute(_SQL["advance_mark"], (seq, session, user)).fetchone()
    return None if found is None else found[0]

"""The statements of the log, as plain functions over one connection."""

import sqlite3
from typing import Any, Final

from towline_protocol import SessionId
from towline_server.errors import StoreCorrupt, StoreError
from towline_server.store import idempotency
from towline_server.store.records import Append, SessionCursor, SessionRow, StoredRow
from towline_server.store.statements import load_statements

__all__ = ["PAGE_BYTES", "apply_append", "get_session", "list_sessions", "read_rows"]

PAGE_BYTES: Final = 1024 * 1024
"""A page of events ends with the event that reaches this size, so that 256 events of 1 MiB are not
in memory together."""

_EVENTS: Final = load_statements("events")
_SESSIONS: Final = load_statements("sessions")


def apply_append(connection: sqlite3.Connection, batch: Append) -> None:
    """Write one append; the caller owns the transaction.

    Raises:
        StoreError: The session's log does not end right before `first_seq` (`reason="stale"`), or
            the rows are not numbered on from there.
        sqlite3.Error: The database refused.
    """
    last = batch.first_seq - 1
    for row in batch.rows:
        last += 1
        if row.seq != last:
            raise StoreError(
                f"Event {row.seq!r} of session {batch.session!r} stands where {last!r} belongs: "
                "number the rows without a hole."
            )
    if _move_end(connection, batch, last) != 1:
        raise StoreError(
            f"The log of session {batch.session!r} does not end at {batch.first_seq - 1!r}: load "
            "the session again.",
            reason="stale",
        )
    connection.executemany(
        _EVENTS["insert_event"],
        [
            (batch.session, row.seq, row.turn, row.time_ms, row.data, row.private)
            for row in batch.rows
        ],
    )
    if batch.answer is not None:
        idempotency.keep(connection, batch.answer)


def _move_end(connection: sqlite3.Connection, batch: Append, last: int) -> int:
    """Move the end of the log from exactly where the append begins; 0 when it is not there."""
    before = batch.first_seq - 1
    if batch.summary is None:
        time_ms = batch.rows[-1].time_ms if batch.rows else 0
        values: tuple[Any, ...] = (time_ms, last, batch.session, before)
        return connection.execute(_SESSIONS["advance_session"], values).rowcount
    values = (*_columns(batch.summary), last, batch.session)
    if before == 0 and last > 0:
        return connection.execute(_SESSIONS["insert_session"], values).rowcount
    return connection.execute(_SESSIONS["update_session"], (*values, before)).rowcount


def read_rows(
    connection: sqlite3.Connection, session: SessionId, after: int, upto: int, limit: int
) -> list[StoredRow]:
    """A page of events with `after < seq <= upto`, oldest first.

    It ends early once it holds `PAGE_BYTES`; it is empty only when there is nothing left.

    Raises:
        StoreCorrupt: A number is missing.
    """
    rows: list[StoredRow] = []
    size = 0
    expected = after
    for seq, turn, time_ms, data, private in connection.execute(
        _EVENTS["read_events"], (session, after, upto, limit)
    ):
        expected += 1
        if seq != expected:
            raise StoreCorrupt(
                f"Event {expected!r} of session {session!r} is missing from the store: put a "
                "backup in its place."
            )
        rows.append(StoredRow(seq, turn, time_ms, data, private))
        size += len(data)
        if size >= PAGE_BYTES:
            break
    return rows


def get_session(connection: sqlite3.Connection, session: SessionId) -> SessionRow | None:
    """The session's row; `None` when there is none."""
    found = connection.execute(_SESSIONS["get_session"], (session,)).fetchone()
    return None if found is None else _row(found)


def list_sessions(
    connection: sqlite3.Connection, user: str | None, after: SessionCursor, limit: int
) -> list[SessionRow]:
    """A page of a user's sessions; without a user, of those that have something open."""
    place = (after.updated_ms, after.id, limit)
    if user is None:
        found = connection.execute(_SESSIONS["list_open_sessions"], place)
    else:
        found = connection.execute(_SESSIONS["list_sessions"], (user, *place))
    return [_row(columns) for columns in found]


def _columns(row: SessionRow) -> tuple[Any, ...]:
    """The columns before `last_seq` and `id`, as `sessions.sql` writes them."""
    return (
        row.user,
        row.agent,
        row.model,
        row.mode,
        row.title,
        row.cwd,
        row.created_ms,
        row.updated_ms,
        row.turn,
        row.pending,
        row.queued,
        row.closed,
    )


def _row(columns: tuple[Any, ...]) -> SessionRow:
    """A row as `sessions.sql` reads it."""
    return SessionRow(
        id=columns[0],
        user=columns[1],
        agent=columns[2],
        model=columns[3],
        mode=columns[4],
        title=columns[5],
        cwd=columns[6],
        created_ms=columns[7],
        updated_ms=columns[8],
        turn=columns[9],
        pending=columns[10],
        queued=columns[11],
        closed=bool(columns[12]),
        last_seq=columns[13],
    )

"""The statements of the log, as plain functions over one connection."""

import sqlite3
from typing import Any, Final

import msgspec

from towline_protocol import SessionId
from towline_server.errors import StoreCorrupt, StoreError
from towline_server.store import attachments, idempotency, usage
from towline_server.store.failures import MEND
from towline_server.store.records import (
    EVERY,
    Append,
    SessionCursor,
    SessionFilter,
    SessionRow,
    StoredRow,
)
from towline_server.store.statements import load_statements

__all__ = [
    "PAGE_BYTES",
    "apply_append",
    "get_session",
    "list_children",
    "list_sessions",
    "read_rows",
    "replace_row",
]

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
    if batch.files or batch.uses:
        attachments.apply_files(connection, batch)
    if batch.words is not None:
        connection.execute(_SESSIONS["set_words"], (batch.session, batch.words))
    if batch.usage:
        usage.add(connection, batch.session, batch.usage)
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


def replace_row(connection: sqlite3.Connection, row: SessionRow) -> None:
    """Put a session's row in place of whatever stands there: for repairs, which own the store."""
    values = (*_columns(row), row.last_seq, row.id)
    if connection.execute(_SESSIONS["insert_session"], values).rowcount == 1:
        return
    stands = connection.execute(_SESSIONS["get_last_seq"], (row.id,)).fetchone()[0]
    connection.execute(_SESSIONS["update_session"], (*values, stands))


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
                f"Event {expected!r} of session {session!r} is missing from the store; {MEND}"
            )
        rows.append(StoredRow(seq, turn, time_ms, data, private))
        size += len(data) + len(private or b"")
        if size >= PAGE_BYTES:
            break
    return rows


def get_session(connection: sqlite3.Connection, session: SessionId) -> SessionRow | None:
    """The session's row; `None` when there is none.

    Raises:
        StoreCorrupt: A column of it is not what was written.
    """
    found = connection.execute(_SESSIONS["get_session"], (session,)).fetchone()
    if found is None:
        return None
    row = _row(found)
    if row is None:
        raise StoreCorrupt(f"The row of session {session!r} in the list cannot be read; {MEND}")
    return row


def list_children(connection: sqlite3.Connection, session: SessionId) -> list[SessionId]:
    """The sessions of the sub-agents that work, or worked, for a session."""
    found = connection.execute(_SESSIONS["list_children"], (session,)).fetchall()
    return [SessionId(columns[0]) for columns in found]


def list_sessions(
    connection: sqlite3.Connection,
    user: str | None,
    after: SessionCursor,
    limit: int,
    only: SessionFilter = EVERY,
) -> list[SessionRow]:
    """A page of a user's sessions; without a user, of those that have something open.

    A row that cannot be read is passed over, so that it hides no other one; `towline doctor` tells
    of it.
    """
    rows: list[SessionRow] = []
    place: tuple[Any, ...] = (after.updated_ms, after.id)
    while True:
        found = _page(connection, user, place, limit, only).fetchall()
        rows += [row for row in map(_row, found) if row is not None]
        if len(found) < limit or len(rows) >= limit:
            return rows[:limit]
        place = (found[-1][_UPDATED], found[-1][0])


def _page(
    connection: sqlite3.Connection,
    user: str | None,
    place: tuple[Any, ...],
    limit: int,
    only: SessionFilter,
) -> sqlite3.Cursor:
    if user is None:
        return connection.execute(_SESSIONS["list_open_sessions"], (*place, limit))
    if only == SessionFilter(archived=only.archived):
        values = (user, only.archived, *place, limit)
        return connection.execute(_SESSIONS["list_sessions"], values)
    name = "search_needing_sessions" if only.needs else "search_sessions"
    words = msgspec.json.encode(only.words).decode()
    values = (user, only.archived, *place, only.label, only.label, words, limit)
    return connection.execute(_SESSIONS[name], values)


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
        row.archived,
        "\n".join(row.labels),
        row.said_seq,
        row.parent,
        row.last_line,
    )


def _row(columns: tuple[Any, ...]) -> SessionRow | None:
    """A row as `sessions.sql` reads it; `None` when a column is not what was written."""
    if not all(type(value) in kinds for value, kinds in zip(columns, _KINDS, strict=True)):
        return None
    if not (0 <= columns[_CREATED] <= _LAST_MS and 0 <= columns[_UPDATED] <= _LAST_MS):
        return None
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
        archived=bool(columns[13]),
        labels=tuple(columns[14].split("\n")) if columns[14] else (),
        said_seq=columns[15],
        last_seq=columns[16],
        read_seq=columns[17],
        parent=columns[18],
        last_line=columns[19],
    )


_TEXT: Final = (str,)
_TEXT_OR_NONE: Final = (str, type(None))
_NUMBER: Final = (int,)
_KINDS: Final = (
    *(_TEXT,) * 5,
    *(_TEXT_OR_NONE,) * 2,
    *(_NUMBER,) * 2,
    _TEXT_OR_NONE,
    *(_NUMBER,) * 4,
    _TEXT,
    *(_NUMBER,) * 3,
    _TEXT_OR_NONE,
    _TEXT,
)
"""What each column holds, in the order of `sessions.sql`: SQLite keeps no promise of its own."""
_CREATED: Final = 7
_UPDATED: Final = 8
_LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999: no later time can be shown

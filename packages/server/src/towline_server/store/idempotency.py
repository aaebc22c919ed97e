"""Answers that are given again to the same request (C2.5).

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Final

from towline_server.store.records import IdempotencyRecord
from towline_server.store.statements import load_statements

__all__ = ["KEPT_MS", "find", "keep", "prune"]

KEPT_MS: Final = 24 * 3600 * 1000
"""Milliseconds for which an answer counts (C2.5)."""

_SQL: Final = load_statements("idempotency")


def find(
    connection: sqlite3.Connection,
    *,
    user: str,
    operation: str,
    path: str,
    key: str,
    now_ms: int,
) -> IdempotencyRecord | None:
    """The answer kept for this request; `None` when there is none that still counts.

    Whether the body is the same is for the caller to compare.
    """
    found = connection.execute(
        _SQL["find_record"], (user, operation, path, key, now_ms - KEPT_MS)
    ).fetchone()
    if found is None:
        return None
    return IdempotencyRecord(
        user=found[0],
        operation=found[1],
        path=found[2],
        key=found[3],
        body_sha256=found[4],
        status=found[5],
        answer=found[6],
        created_ms=found[7],
    )


def keep(connection: sqlite3.Connection, record: IdempotencyRecord) -> None:
    """Keep an answer; inside an `Append` the store does this itself."""
    connection.execute(
        _SQL["keep_record"],
        (
            record.user,
            record.operation,
            record.path,
            record.key,
            record.body_sha256,
            record.status,
            record.answer,
            record.created_ms,
        ),
    )


def prune(connection: sqlite3.Connection, *, now_ms: int) -> int:
    """Forget the answers that count no more; gives how many they were."""
    return connection.execute(_SQL["prune_records"], (now_ms - KEPT_MS,)).rowcount

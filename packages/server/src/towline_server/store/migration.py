"""Brings a store to the newest schema, one numbered step in one transaction each."""

import sqlite3
from collections.abc import Sequence
from typing import Final

from towline_server.errors import StoreCorrupt, StoreError
from towline_server.store.statements import load_migrations, load_statements, split_script

__all__ = ["migrate"]

_SQL: Final = load_statements("schema")


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[tuple[int, str, str]] | None = None
) -> list[int]:
    """Apply the migrations that are missing and say which.

    Each stands in one transaction together with its `schema_version` row: after a crash it is
    there whole or not at all.

    Args:
        connection: In autocommit mode, without an open transaction.
        migrations: Number, name and SQL, oldest first; `None` for those of this package.

    Raises:
        StoreError: A newer towline wrote this store.
        StoreCorrupt: The file is a database of something else.
        sqlite3.Error: A step failed; it left nothing behind.
    """
    steps = load_migrations() if migrations is None else migrations
    current = _current_version(connection)
    newest = steps[-1][0] if steps else 0
    if current > newest:
        raise StoreError(
            f"The store has schema version {current!r}, this towline knows {newest!r}: a newer "
            "towline wrote it. Update towline, or start with another data folder."
        )
    missing = [step for step in steps if step[0] > current]
    for number, name, script in missing:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in split_script(script):
                connection.execute(statement)
            connection.execute(_SQL["note_version"], (number, name))
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return [number for number, _, _ in missing]


def _current_version(connection: sqlite3.Connection) -> int:
    tables: int = connection.execute(_SQL["foreign_tables"]).fetchone()[0]
    known = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'"
    ).fetchone()[0]
    if tables and not known:
        raise StoreCorrupt(
            "The store file is a database of another program. Start with another data folder."
        )
    connection.execute(_SQL["create_versions"])
    version: int = connection.execute(_SQL["newest_version"]).fetchone()[0]
    return version

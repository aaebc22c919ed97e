"""A few facts about the server itself, by name.

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Final

from towline_server.store.statements import load_statements

__all__ = ["claim", "get", "put"]

_SQL: Final = load_statements("meta")


def get(connection: sqlite3.Connection, key: str) -> str | None:
    """The value; `None` when there is none."""
    found = connection.execute(_SQL["get_meta"], (key,)).fetchone()
    return None if found is None else found[0]


def put(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Set the value."""
    connection.execute(_SQL["set_meta"], (key, value))


def claim(connection: sqlite3.Connection, key: str, value: str) -> str:
    """Set the value unless there is one, and give the one that stands: for ids made once."""
    connection.execute(_SQL["claim_meta"], (key, value))
    standing = get(connection, key)
    return value if standing is None else standing

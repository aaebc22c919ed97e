"""Credentials, of which only the SHA-256 is kept.

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Any, Final

import msgspec

from towline_server.store.statements import load_statements

__all__ = ["Token", "add", "find", "prune", "revoke", "tokens_of", "touch"]

_SQL: Final = load_statements("tokens")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one token."""

    sha256: str
    """Hex digest of the token; the token itself is never stored."""
    user: str
    """Whose it is."""
    name: str
    """What the device calls itself."""
    created_ms: int
    """Milliseconds since 1970, UTC."""
    last_used_ms: int
    """When it was last seen, as far as `touch` was told."""
    expires_ms: int | None = None
    """When it stops to count; `None` for never."""


def add(connection: sqlite3.Connection, token: Token) -> None:
    """Keep a new token.

    Raises:
        sqlite3.IntegrityError: There is one with this digest.
    """
    connection.execute(
        _SQL["insert_token"],
        (
            token.sha256,
            token.user,
            token.name,
            token.created_ms,
            token.last_used_ms,
            token.expires_ms,
        ),
    )


def find(connection: sqlite3.Connection, sha256: str, *, now_ms: int) -> Token | None:
    """The token with this digest; `None` when there is none, or it has expired."""
    found = connection.execute(_SQL["find_token"], (sha256, now_ms)).fetchone()
    return None if found is None else _token(found)


def tokens_of(connection: sqlite3.Connection, user: str) -> list[Token]:
    """A user's tokens, oldest first, expired ones that are not pruned yet included."""
    return [_token(columns) for columns in connection.execute(_SQL["list_tokens"], (user,))]


def touch(
    connection: sqlite3.Connection, sha256: str, *, now_ms: int, expires_ms: int | None
) -> bool:
    """Note that it was used and until when it counts now; `False` when it is gone."""
    return connection.execute(_SQL["touch_token"], (now_ms, expires_ms, sha256)).rowcount == 1


def revoke(connection: sqlite3.Connection, sha256: str) -> bool:
    """End it; `False` when there was none."""
    return connection.execute(_SQL["revoke_token"], (sha256,)).rowcount == 1


def prune(connection: sqlite3.Connection, *, now_ms: int) -> int:
    """Forget what has expired; gives how many they were."""
    return connection.execute(_SQL["prune_tokens"], (now_ms,)).rowcount


def _token(columns: tuple[Any, ...]) -> Token:
    return Token(
        sha256=columns[0],
        user=columns[1],
        name=columns[2],
        created_ms=columns[3],
        last_used_ms=columns[4],
        expires_ms=columns[5],
    )

"""Credentials, of which only the SHA-256 is kept.

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Any, Final, NamedTuple

import msgspec

from towline_server.store.statements import load_statements

__all__ = [
    "Known",
    "Token",
    "add",
    "count",
    "find",
    "prune",
    "revoke",
    "revoke_id",
    "revoke_of",
    "revoke_oldest",
    "tokens_of",
    "touch",
]

_SQL: Final = load_statements("tokens")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one token."""

    sha256: str
    """Hex digest of the token; the token itself is never stored."""
    id: str
    """Names it in lists; no secret."""
    user: str
    """Whose it is."""
    kind: str = "device"
    """How it came to be: `device`, `login` or `program`."""
    name: str
    """What the device calls itself."""
    created_ms: int
    """Milliseconds since 1970, UTC."""
    last_used_ms: int
    """When it was last seen, as far as `touch` was told."""
    expires_ms: int | None = None
    """When it stops to count; `None` for never."""
    slide_ms: int | None = None
    """How far each use moves that on; `None` for not."""


class Known(NamedTuple):
    """A token that counts, and what its user may do."""

    token: Token
    """The token."""
    admin: bool
    """Whether its user is an admin."""


def add(connection: sqlite3.Connection, token: Token) -> None:
    """Keep a new token.

    Raises:
        sqlite3.IntegrityError: There is one with this digest or id.
    """
    connection.execute(
        _SQL["insert_token"],
        (
            token.sha256,
            token.id,
            token.user,
            token.kind,
            token.name,
            token.created_ms,
            token.last_used_ms,
            token.expires_ms,
            token.slide_ms,
        ),
    )


def find(connection: sqlite3.Connection, sha256: str, *, now_ms: int) -> Known | None:
    """The token with this digest; `None` when there is none that counts, or its user is gone."""
    found = connection.execute(_SQL["find_token"], (sha256, now_ms)).fetchone()
    return None if found is None else Known(_token(found), bool(found[9]))


def tokens_of(connection: sqlite3.Connection, user: str, *, now_ms: int) -> list[Token]:
    """A user's tokens that count, oldest first."""
    rows = connection.execute(_SQL["list_tokens"], (user, now_ms))
    return [_token(columns) for columns in rows]


def count(connection: sqlite3.Connection, user: str, kind: str) -> int:
    """How many tokens of a kind a user has, expired ones that are not pruned yet included."""
    number: int = connection.execute(_SQL["count_tokens"], (user, kind)).fetchone()[0]
    return number


def touch(connection: sqlite3.Connection, sha256: str, *, now_ms: int) -> bool:
    """Note that it was used, which moves a sliding end on; `False` when it is gone."""
    return connection.execute(_SQL["touch_token"], (now_ms, now_ms, sha256)).rowcount == 1


def revoke(connection: sqlite3.Connection, sha256: str) -> bool:
    """End it; `False` when there was none."""
    return connection.execute(_SQL["revoke_token"], (sha256,)).rowcount == 1


def revoke_id(connection: sqlite3.Connection, id_: str, user: str) -> str | None:
    """End the token of this id, if it is the user's; gives its digest."""
    return _digest(connection.execute(_SQL["revoke_token_by_id"], (id_, user)))


def revoke_oldest(connection: sqlite3.Connection, user: str, kind: str) -> str | None:
    """End the token of a kind that was used longest ago; gives its digest."""
    return _digest(connection.execute(_SQL["revoke_oldest_token"], (user, kind)))


def revoke_of(
    connection: sqlite3.Connection, user: str, *, kind: str | None = None, but: str = ""
) -> list[str]:
    """End a user's tokens; gives their digests.

    Args:
        connection: The store.
        user: Whose.
        kind: Only those of this kind; `None` for all.
        but: The digest of one that stays.
    """
    rows = connection.execute(_SQL["revoke_tokens"], (user, but, kind, kind is None))
    return [str(columns[0]) for columns in rows.fetchall()]


def prune(connection: sqlite3.Connection, *, now_ms: int) -> list[str]:
    """Forget what has expired; gives the digests."""
    rows = connection.execute(_SQL["prune_tokens"], (now_ms,))
    return [str(columns[0]) for columns in rows.fetchall()]


def _digest(rows: sqlite3.Cursor) -> str | None:
    """The one digest of a `RETURNING`, read to its end so that the statement is over."""
    return next((str(columns[0]) for columns in rows.fetchall()), None)


def _token(columns: tuple[Any, ...]) -> Token:
    return Token(
        sha256=columns[0],
        id=columns[1],
        user=columns[2],
        kind=columns[3],
        name=columns[4],
        created_ms=columns[5],
        last_used_ms=columns[6],
        expires_ms=columns[7],
        slide_ms=columns[8],
    )

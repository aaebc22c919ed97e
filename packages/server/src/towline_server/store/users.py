"""Who may come in. A removed user keeps the row, since sessions of that name are still stored.

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Any, Final

import msgspec

from towline_server.store.statements import load_statements

__all__ = ["User", "add", "count_passwords", "find", "remove", "restore", "set_password", "users"]

_SQL: Final = load_statements("users")


class User(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one user. Its `repr` shows no hash."""

    name: str
    """The name."""
    password: str | None = None
    """The argon2id hash; `None` for a user who has none."""
    admin: bool = False
    """Whether they may change what concerns everybody."""
    created_ms: int
    """Milliseconds since 1970, UTC."""
    removed_ms: int | None = None
    """When they were removed; `None` for a user who may come in."""

    def __repr__(self) -> str:
        return f"User({self.name!r})"


def add(connection: sqlite3.Connection, user: User) -> None:
    """Keep a new user.

    Raises:
        sqlite3.IntegrityError: There is one of this name, perhaps a removed one.
    """
    connection.execute(_SQL["insert_user"], (user.name, user.password, user.admin, user.created_ms))


def restore(connection: sqlite3.Connection, name: str, *, password: str, admin: bool) -> bool:
    """Let a removed user come back; `False` when there is none."""
    return connection.execute(_SQL["restore_user"], (password, admin, name)).rowcount == 1


def find(connection: sqlite3.Connection, name: str) -> User | None:
    """The user of that name, a removed one too."""
    found = connection.execute(_SQL["find_user"], (name,)).fetchone()
    return None if found is None else _user(found)


def users(connection: sqlite3.Connection) -> list[User]:
    """Those who may come in, by name."""
    return [_user(columns) for columns in connection.execute(_SQL["list_users"])]


def remove(connection: sqlite3.Connection, name: str, *, now_ms: int) -> bool:
    """Let them in no more and forget the password; `False` when there was none."""
    return connection.execute(_SQL["remove_user"], (now_ms, name)).rowcount == 1


def set_password(connection: sqlite3.Connection, name: str, password: str) -> bool:
    """Keep a new hash; `False` when there is no such user."""
    return connection.execute(_SQL["set_password"], (password, name)).rowcount == 1


def count_passwords(connection: sqlite3.Connection) -> int:
    """How many users can log in."""
    number: int = connection.execute(_SQL["count_passwords"]).fetchone()[0]
    return number


def _user(columns: tuple[Any, ...]) -> User:
    return User(
        name=columns[0],
        password=columns[1],
        admin=bool(columns[2]),
        created_ms=columns[3],
        removed_ms=columns[4],
    )

"""The devices that are called when nobody looks, and what became of the messages to them.

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`.
"""

import sqlite3
from typing import Final, NamedTuple

import msgspec

from towline_server.store.statements import load_statements

__all__ = [
    "MAX_OUTCOMES",
    "MAX_SUBSCRIPTIONS",
    "Device",
    "Outcome",
    "Told",
    "called",
    "devices_of",
    "last_outcome",
    "note",
    "prune",
    "put",
    "remove",
    "told",
]

MAX_SUBSCRIPTIONS: Final = 20
"""Devices of a user that are called; with one more, the oldest is forgotten."""
MAX_OUTCOMES: Final = 500
"""Outcomes of a user that are kept, the newest."""

_SQL: Final = load_statements("push")


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One browser that is called."""

    id: str
    """Names it; no secret."""
    user: str
    """Whose it is."""
    endpoint: str
    """Its address at its push service: whoever knows it may try to send."""
    p256dh: str
    """Its public key, base64url."""
    auth: str
    """Its secret, base64url."""
    subject: str
    """Whom the push service may write to: `https:` or `mailto:`."""
    origin: str
    """The origin of the page that it was made on."""
    language: str
    """The language of titles."""
    name: str
    """What it calls itself."""
    created_ms: int
    """Milliseconds since 1970, UTC."""

    def __repr__(self) -> str:
        return f"Device({self.id!r})"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one message to one device."""

    kind: str
    """What it told of."""
    session: str | None
    """The session; `None` for a test."""
    about: str
    """The request or the turn; empty for a test."""
    outcome: str
    """`delivered`, `failed` or `gone`."""
    status: int | None = None
    """The push service's HTTP status; `None` when there was no answer."""
    message: str = ""
    """Why it failed."""
    time_ms: int
    """Milliseconds since 1970, UTC."""


class Told(NamedTuple):
    """What a user was told of already."""

    session: str
    """The session."""
    kind: str
    """The kind of message."""
    about: str
    """The request or the turn."""


def put(connection: sqlite3.Connection, device: Device, *, token: str | None) -> str | None:
    """Keep a device; the same endpoint again replaces what is kept, also another user's.

    Args:
        connection: The store.
        device: The device.
        token: The digest of the token that it comes with: it is called as long as that counts.
            `None` binds it to nothing.

    Returns:
        Its id: the one that it had for the same user, else the given one. `None` when the token has
        ended, and nothing is kept.
    """
    if token is not None and connection.execute(_SQL["has_token"], (token,)).fetchone() is None:
        return None
    row = connection.execute(
        _SQL["put_subscription"],
        (
            device.id,
            device.user,
            device.endpoint,
            device.p256dh,
            device.auth,
            device.subject,
            device.origin,
            device.language,
            device.name,
            token,
            device.created_ms,
        ),
    ).fetchall()[0]
    connection.execute(_SQL["trim_subscriptions"], (device.user, device.user, MAX_SUBSCRIPTIONS))
    return str(row[0])


def devices_of(connection: sqlite3.Connection, user: str, *, now_ms: int) -> list[Device]:
    """The devices of a user whose tokens count, oldest first."""
    rows = connection.execute(_SQL["list_subscriptions"], (user, now_ms))
    names = Device.__struct_fields__
    return [Device(**dict(zip(names, row, strict=True))) for row in rows]


def called(connection: sqlite3.Connection) -> set[str]:
    """The users who have a device."""
    return {str(row[0]) for row in connection.execute(_SQL["list_called"])}


def remove(connection: sqlite3.Connection, id_: str, user: str) -> bool:
    """Forget a device; `False` when the user has none of that id."""
    return connection.execute(_SQL["remove_subscription"], (id_, user)).rowcount == 1


def prune(connection: sqlite3.Connection) -> None:
    """Forget the devices whose tokens have ended."""
    connection.execute(_SQL["prune_subscriptions"])


def note(connection: sqlite3.Connection, device: Device, outcome: Outcome) -> None:
    """Keep an outcome; one that ends the device takes it away as well."""
    connection.execute(
        _SQL["insert_outcome"],
        (
            device.user,
            device.id,
            outcome.kind,
            outcome.session,
            outcome.about,
            outcome.outcome,
            outcome.status,
            outcome.message,
            outcome.time_ms,
        ),
    )
    connection.execute(_SQL["trim_outcomes"], (device.user, device.user, MAX_OUTCOMES))
    if outcome.outcome == "gone":
        remove(connection, device.id, device.user)


def last_outcome(connection: sqlite3.Connection, subscription: str) -> Outcome | None:
    """What became of the last message to a device; `None` before the first one."""
    row = connection.execute(_SQL["last_outcome"], (subscription,)).fetchone()
    if row is None:
        return None
    kind, session, about, outcome, status, message, time_ms = row
    return Outcome(
        kind=kind,
        session=session,
        about=about,
        outcome=outcome,
        status=status,
        message=message,
        time_ms=time_ms,
    )


def told(connection: sqlite3.Connection) -> set[Told]:
    """All that was delivered to somebody, as far as it is kept."""
    return {Told(*map(str, row)) for row in connection.execute(_SQL["list_told"])}

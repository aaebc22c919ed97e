"""What goes into the store and comes out of it."""

from typing import Final

import msgspec

from towline_protocol import SessionId, TurnId
from towline_server.errors import CursorExpired

__all__ = [
    "NEWEST",
    "Append",
    "IdempotencyRecord",
    "SessionCursor",
    "SessionRow",
    "StoredRow",
    "format_cursor",
    "parse_cursor",
]


class StoredRow(msgspec.Struct, frozen=True):
    """One stored event."""

    seq: int
    """Its number in its session, from 1."""
    turn: TurnId | None
    """The turn it happened in."""
    time_ms: int
    """Milliseconds since 1970, UTC."""
    data: bytes
    """The encoded envelope: the very bytes that every stream gets."""
    private: bytes | None = None
    """What only a provider needs; never leaves the server (C1.9)."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One session as the list needs it, kept in step with its log in the same transaction."""

    id: SessionId
    """Its id."""
    user: str
    """Whose it is."""
    agent: str
    """The name of its agent's spec."""
    model: str
    """`provider/model`."""
    mode: str
    """`ask` or `auto`."""
    title: str | None = None
    """Its title."""
    cwd: str | None = None
    """The folder it works in."""
    created_ms: int
    """Milliseconds since 1970, UTC."""
    updated_ms: int
    """When its last event happened; orders the list."""
    turn: TurnId | None = None
    """The turn that runs, or was running when the server died."""
    pending: int = 0
    """Open permission requests and questions."""
    queued: int = 0
    """Prompts that wait."""
    closed: bool = False
    """Whether it takes no more prompts."""
    last_seq: int = 0
    """Where its log ends. An append takes it from its rows and ignores what stands here."""


class IdempotencyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is given again to the same request (C2.5)."""

    user: str
    """Who asked."""
    operation: str
    """The operation's name."""
    path: str
    """The path with its parameters filled in."""
    key: str
    """The `Idempotency-Key`."""
    body_sha256: str
    """Hex digest of the request's body: another body under one key is a conflict."""
    status: int
    """The status that was answered."""
    answer: bytes
    """The body that was answered."""
    created_ms: int
    """When, in milliseconds since 1970; it counts for 24 h."""


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """What one session adds to its log, all or nothing."""

    session: SessionId
    """The session."""
    first_seq: int
    """The number that follows the last stored one; anything else is refused as stale."""
    rows: tuple[StoredRow, ...]
    """The events, numbered on from `first_seq` without a hole; may be empty."""
    summary: SessionRow | None = None
    """The session's row from now on; `None` changes only where the log ends. A session's first
    append must have one."""
    answer: IdempotencyRecord | None = None
    """An answer that becomes true with these events."""


class SessionCursor(msgspec.Struct, frozen=True):
    """Where a page of the session list ended."""

    updated_ms: int
    """The last row's time."""
    id: str
    """The last row's id."""


_LARGEST: Final = 2**63 - 1

NEWEST: Final = SessionCursor(_LARGEST, "")
"""Before the first row."""


def format_cursor(row: SessionRow) -> str:
    """The cursor of the page after `row`, as it goes over the wire."""
    return f"{row.updated_ms}-{row.id}"


def parse_cursor(text: str) -> SessionCursor:
    """A cursor as `format_cursor` writes it.

    Raises:
        CursorExpired: The text is none.
    """
    number, dash, session = text.partition("-")
    if not (dash and session and number.isascii() and number.isdigit()):
        raise CursorExpired(_no_cursor(text))
    updated_ms = int(number[:20])
    if updated_ms > _LARGEST:
        raise CursorExpired(_no_cursor(text))
    return SessionCursor(updated_ms, session)


def _no_cursor(text: str) -> str:
    return f"{text[:80]!r} is no cursor of the session list: ask for the first page."

"""What goes into the store and comes out of it."""

import unicodedata
from typing import Final

import msgspec

from towline_protocol import SessionId, TurnId, Usage
from towline_server.errors import CursorExpired

__all__ = [
    "EVERY",
    "NEWEST",
    "Append",
    "IdempotencyRecord",
    "NewFile",
    "SessionCursor",
    "SessionFilter",
    "SessionRow",
    "StoredRow",
    "UsageCount",
    "fold_words",
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
    archived: bool = False
    """Whether it is put away."""
    labels: tuple[str, ...] = ()
    """What people sort it by; no label holds a line end."""
    said_seq: int = 0
    """The number of the last entry of its conversation; 0 when nothing was said."""
    last_seq: int = 0
    """Where its log ends. An append takes it from its rows and ignores what stands here."""
    read_seq: int = 0
    """How far its user has read. Stands beside the log; an append ignores it."""
    parent: SessionId | None = None
    """The session that it works for, if it is a sub-agent's; such ones are in no list (D5)."""
    last_line: str = ""
    """The last thing that was said, on one line; empty when nothing was."""


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


class NewFile(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that are too large for an event, or not for one (C1.10)."""

    file: str
    """The hash: SHA-256 of the bytes, in hex."""
    media_type: str
    """What they are."""
    name: str = ""
    """What to call them; may be empty."""
    data: bytes
    """The bytes."""


class UsageCount(msgspec.Struct, frozen=True, kw_only=True):
    """What one request used."""

    user: str
    """Who pays."""
    day: str
    """`YYYY-MM-DD`, UTC."""
    model: str
    """`provider/model` that was asked."""
    usage: Usage
    """Tokens."""
    cost: float | None
    """US dollars; `None` when a price is not known."""


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
    usage: tuple[UsageCount, ...] = ()
    """What these events tell of."""
    files: tuple[NewFile, ...] = ()
    """Files that these events bring along, for the session's user; only with a `summary`."""
    uses: tuple[str, ...] = ()
    """Hashes that these events name; only with a `summary`."""
    words: str | None = None
    """What the session is found by from now on, as `fold_words` makes it; `None` for no change."""


class SessionCursor(msgspec.Struct, frozen=True):
    """Where a page of the session list ended."""

    updated_ms: int
    """The last row's time."""
    id: str
    """The last row's id."""


_LARGEST: Final = 2**63 - 1

NEWEST: Final = SessionCursor(_LARGEST, "")
"""Before the first row."""


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions of a user a list shows."""

    archived: bool = False
    """Those that are put away, instead of those that are not."""
    needs: bool = False
    """Only those in which something waits for a person."""
    label: str = ""
    """Only those with this label; empty for all."""
    words: tuple[str, ...] = ()
    """Only those in which each of these occurs, as `fold_words` makes them."""


EVERY: Final = SessionFilter()
"""All that are not put away."""


def fold_words(text: str) -> str:
    """Text as it is searched for and found: without regard to case, width and composition."""
    return unicodedata.normalize("NFKC", text).casefold()


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

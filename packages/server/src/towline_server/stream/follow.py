"""One reader's stream: replay from its cursor, then live, without a seam (C3.2 to C3.5)."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Final, Protocol

import msgspec

from towline_protocol import (
    Control,
    Gap,
    Hello,
    Partial,
    SessionId,
    encode,
    encode_comment,
    encode_event,
)
from towline_server.errors import StoreCorrupt
from towline_server.store.event_store import PAGE_ROWS, EventStore
from towline_server.store.records import StoredRow
from towline_server.stream.hub import CHUNK_BYTES, Subscriber

__all__ = [
    "HEARTBEAT",
    "MAX_REPLAY",
    "RETRY_MS",
    "Cursor",
    "Source",
    "Stored",
    "after_first",
    "and_then",
    "begin",
    "catch_up",
    "find_start",
]

MAX_REPLAY: Final = 10_000
"""Events a replay holds at most; from there on the view is cheaper (C3.5)."""
RETRY_MS: Final = 3000
"""Milliseconds until a browser tries again by itself (C3.2)."""
HEARTBEAT: Final = encode_comment("alive")
"""The comment that keeps a connection warm."""

_RETRY: Final = b"retry: %d\n\n" % RETRY_MS
_CURSOR_DIGITS: Final = 18  # fewer than 2**63 has, so that every number of them can be looked up
_ECHO_CHARS: Final = 64  # what a gap repeats of a cursor that may be anything


class Source(Protocol):
    """A session as its readers see it: what is published, not what is merely committed.

    All three are read in one go on the loop, so that they belong together. Nothing raises.
    """

    @property
    def last_seq(self) -> int:
        """The number of the last event given to the hub."""
        ...

    @property
    def closed(self) -> bool:
        """Whether it takes no more prompts; then a stream ends after its replay (C3.7)."""
        ...

    def partials(self) -> tuple[Partial, ...]:
        """What is open at `last_seq`, every delta given to the hub included (C1.6)."""
        ...


class Stored(msgspec.Struct, frozen=True):
    """A session that is not in memory, as a `Source`."""

    last_seq: int
    """Where its log ends."""
    closed: bool
    """Whether it takes no more prompts."""

    def partials(self) -> tuple[Partial, ...]:
        """Nothing is open."""
        return ()


class Cursor(msgspec.Struct, frozen=True):
    """Where a reader says it stands."""

    text: str | None = None
    """`Last-Event-ID`, else `?after=`; `None` or empty for the beginning."""
    log: str | None = None
    """The lineage that the cursor is of, if the reader says so."""


def find_start(cursor: Cursor, last: int, log: str) -> tuple[int, Gap | None]:
    """The number after which a replay begins, or why there can be none.

    Args:
        cursor: What the reader says.
        last: The number of the last published event.
        log: The lineage of the store.
    """
    text = cursor.text or "0"
    if cursor.log is not None and cursor.log != log:
        return last, _gap(text, last, "other_log")
    if not (text.isascii() and text.isdigit()) or len(text) > _CURSOR_DIGITS:
        return last, _gap(text, last, "malformed")
    after = int(text)
    if after > last:
        return last, _gap(text, last, "ahead_of_log")
    if last - after > MAX_REPLAY:
        return last, _gap(text, last, "too_long")
    return after, None


async def catch_up(
    session: SessionId,
    source: Source,
    subscriber: Subscriber,
    *,
    store: EventStore,
    cursor: Cursor,
    hello: Hello,
    load: Callable[[], Awaitable[Source | None]] | None = None,
) -> AsyncGenerator[bytes, None]:
    """All that goes out before the live frames, in pieces of up to 64 KiB.

    At its end `subscriber`, which must have joined the session's hub and not have started, holds
    exactly what was published after it; of a closed session it is finished.

    Args:
        session: The session.
        source: How it stands.
        subscriber: The reader's place.
        store: Keeps its log.
        cursor: Where the reader stands.
        hello: What it is told first.
        load: Brings the session into memory and lets `subscriber` join, where `source` is only what
            the store says of it: nobody need wait for that to read what is stored. It gives `None`
            when that cannot be, and lets the subscriber leave.

    Raises:
        StoreError: The log cannot be read.
    """
    after, gap = find_start(cursor, source.last_seq, store.log)
    told = b"" if gap is None else _control("gap", gap)
    yield _RETRY + _control("hello", hello) + told
    # The queue is bounded, so it is only opened for the last page: a long replay cannot fill it.
    while subscriber.cut is None:
        if source.last_seq - after > (PAGE_ROWS if load is None else 0):
            rows = await _read(store, session, after, source.last_seq)
            after = rows[-1].seq
            for chunk in _chunks(rows):
                yield chunk
        elif load is not None:
            loaded, load = await load(), None
            if loaded is None:
                return
            source = loaded
        else:
            break
    # No `await` from here to `start`: what is published is either in the replay or in the queue.
    last = source.last_seq
    partials = b"".join([_control("partial", partial) for partial in source.partials()])
    if source.closed:
        subscriber.finish()
    subscriber.start()
    while after < last and subscriber.cut is None:
        rows = await _read(store, session, after, last)
        after = rows[-1].seq
        for chunk in _chunks(rows):
            yield chunk
    for chunk in _pieces(partials):
        yield chunk


async def begin(hello: Hello) -> AsyncGenerator[bytes, None]:
    """What a stream says first when it has no log to replay."""
    yield _RETRY + _control("hello", hello)


async def after_first(
    replay: AsyncGenerator[bytes, None], more: bytes
) -> AsyncGenerator[bytes, None]:
    """A replay, with more behind the greeting that it begins with."""
    async with contextlib.aclosing(replay):
        async for chunk in replay:
            yield chunk
            for piece in _pieces(more):
                yield piece
            more = b""


async def and_then(
    replay: AsyncGenerator[bytes, None], more: Callable[[], bytes]
) -> AsyncGenerator[bytes, None]:
    """A replay, then what is only known at its end: frames for this reader alone."""
    async with contextlib.aclosing(replay):
        async for chunk in replay:
            yield chunk
    for chunk in _pieces(more()):
        yield chunk


async def _read(store: EventStore, session: SessionId, after: int, upto: int) -> list[StoredRow]:
    rows = await store.read(session, after=after, upto=upto, limit=PAGE_ROWS)
    if not rows:
        raise StoreCorrupt(
            f"Event {after + 1!r} of session {session!r} is missing from the store: put a backup "
            "in its place."
        )
    return rows


def _chunks(rows: list[StoredRow]) -> Iterator[bytes]:
    return _pieces(b"".join([encode_event(row.data, id=row.seq) for row in rows]))


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def _control(name: str, frame: Control) -> bytes:
    return encode_event(encode(frame), event=name)


def _gap(text: str, last: int, reason: str) -> Gap:
    return Gap(requested=text[:_ECHO_CHARS], last=last, reason=reason)

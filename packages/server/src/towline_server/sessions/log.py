"""One session's way into the store: numbers, commits, publishes, in one order for everybody.

An event gets its number when it is emitted, is committed with all that waits, and is shown only
then (C1.3, C1.4). What is emitted after an event that is not committed yet waits for it (C1.7).
"""

import asyncio
import functools
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from towline_protocol import (
    Delta,
    Envelope,
    Event,
    Private,
    SessionId,
    SessionView,
    TurnId,
    encode,
    encode_event,
    format_time,
    parse_time,
)
from towline_server.errors import StoreError
from towline_server.sessions.bulk import MAX_EVENT, cut_event, new_text, slim_event
from towline_server.sessions.partials import Partials
from towline_server.sessions.recovery import Loaded, take
from towline_server.sessions.summary import join_words, summarize
from towline_server.store.event_store import EventStore
from towline_server.store.records import (
    Append,
    IdempotencyRecord,
    NewFile,
    SessionRow,
    StoredRow,
    UsageCount,
    fold_words,
)
from towline_server.stream.hub import Hub

__all__ = ["Log"]

_DELTAS: Final = frozenset(Delta.__args__)


class _Pending:
    """A frame that waits for its commit."""

    __slots__ = ("envelope", "event", "frame", "seq", "view")

    def __init__(
        self,
        frame: bytes,
        event: Event,
        envelope: Envelope | None,
        view: SessionView | None,
    ) -> None:
        self.frame = frame
        self.event = event
        self.envelope = envelope
        self.seq = 0 if envelope is None else envelope.seq or 0
        self.view = view


class Log:
    """Numbers, commits and publishes one session's events. One owner, one loop."""

    def __init__(
        self,
        session: SessionId,
        user: str,
        loaded: Loaded,
        *,
        store: EventStore,
        hub: Hub,
        now_ms: Callable[[], int],
        on_broken: Callable[[StoreError], None],
        on_shown: Callable[[], None] = lambda: None,
        on_usage: Callable[[UsageCount], None] = lambda count: None,
    ) -> None:
        self.session = session
        """The session."""
        self.user = user
        """Whose it is."""
        self.ahead = loaded
        """The state with all that was emitted."""
        self.view = loaded.view
        """The view of what is committed: the only one that is shown."""
        self.partials = Partials()
        """What is open right now."""
        self.hub = hub
        """Who listens."""
        self.turn: TurnId | None = None
        """The turn that events belong to."""
        self.store = store
        """Keeps it."""
        self.on_event: Callable[[Event], None] | None = None
        """Told of each event once it is shown."""
        self._now_ms = now_ms
        self._on_broken = on_broken
        self._on_shown = on_shown
        self._on_usage = on_usage
        self._next = loaded.view.seq + 1
        self._batch: list[StoredRow] = []
        self._files: list[NewFile] = []
        self._uses: list[str] = []
        self._usage: list[UsageCount] = []
        self._answer: IdempotencyRecord | None = None
        self._pending: deque[_Pending] = deque()
        self._last: asyncio.Future[None] | None = None
        self._flush_due = False
        self._words: str | None = None
        self._broken: StoreError | None = None
        self._shut = False

    def emit(
        self,
        event: Event,
        private: tuple[Private, ...] = (),
        *,
        outside: bool = False,
    ) -> None:
        """Take in an event, in order; never waits. After a failed commit or `close` it is dropped.

        Args:
            event: What happened.
            private: What only a provider needs, kept beside it (C1.9).
            outside: It happened while a turn may run, but is no part of it.
        """
        if self._shut or self._broken is not None:
            return  # the log goes on in another `Log`, which knows nothing of this
        now_ms = self._now_ms()
        time = format_time(now_ms)
        if type(event) in _DELTAS:
            envelope, data = _encode(
                Envelope(session=self.session, turn=self.turn, time=time, event=event)
            )
            frame = encode_event(data)
            if self._pending:
                self._pending.append(_Pending(frame, envelope.event, None, None))
            else:
                self.partials.grow(envelope.event)
                self.hub.publish(frame)
            return
        self._count(event, time)
        self._store_event(event, private, now_ms, None if outside else self.turn)

    def copy(self, envelope: Envelope, private: tuple[Private, ...] = ()) -> None:
        """Take in an event of another log, under a number of this one and its own time."""
        self._store_event(envelope.event, private, parse_time(envelope.time), envelope.turn)

    def keep(self, answer: IdempotencyRecord) -> None:
        """Keep an answer in the transaction of what was just emitted (C2.5)."""
        self._answer = answer
        self._flush()  # an append holds one answer

    def keep_row(self) -> None:
        """Write the row of the list without an event: an older server knew less to put in it."""
        append = Append(
            session=self.session, first_seq=self._next, rows=(), summary=self.row(ahead=True)
        )
        self.store.append(append, lambda error: None)  # else the next event brings it

    def keep_text(self, text: str, name: str) -> str | None:
        """Keep a text that is too long for an event with the events that come next (C1.10).

        Returns:
            Its hash, for the event that names it; `None` when it is too long for a file as well.
        """
        new = new_text(text, name)
        if new is None:
            return None
        self._files.append(new)
        return new.file

    @property
    def shut(self) -> bool:
        """Whether it takes nothing more: for the log, what runs now was cut by a crash."""
        return self._shut or self._broken is not None

    @property
    def settled(self) -> bool:
        """Whether all that was emitted is committed and published."""
        return not self._batch and not self._pending

    async def settle(self) -> None:
        """Wait until all that was emitted is committed and published.

        Raises:
            StoreError: It could not be committed, or the log was closed before.
        """
        if self._shut:
            raise StoreError(
                f"The session {self.session!r} has left memory; load it again.", reason="stale"
            )
        self._flush()
        await self._wait()
        if self._broken is not None:
            raise self._broken

    async def close(self) -> None:
        """Take nothing more; when this returns, what was emitted is committed, if it can be."""
        self._flush()
        self._shut = True
        await self._wait()

    async def _wait(self) -> None:
        if self._last is not None and not self._last.done():
            await asyncio.shield(self._last)

    def _store_event(
        self, event: Event, private: tuple[Private, ...], now_ms: int, turn: TurnId | None
    ) -> None:
        seq = self._next
        slim = slim_event(event, private)
        envelope, data = _encode(
            Envelope(
                seq=seq,
                session=self.session,
                turn=turn,
                time=format_time(now_ms),
                event=slim.event,
            )
        )
        if len(data) > MAX_EVENT:
            small = cut_event(envelope.event)
            envelope, data = _encode(msgspec.structs.replace(envelope, event=small))
        kept = _encode_private(slim.private)
        self._next += 1
        take(self.ahead, envelope, slim.private)
        self._files += slim.files
        self._uses += slim.uses
        self._batch.append(
            StoredRow(
                seq=seq,
                turn=turn,
                time_ms=now_ms,
                data=data,
                private=kept,
            )
        )
        frame = encode_event(data, id=seq)
        self._pending.append(_Pending(frame, envelope.event, envelope, self.ahead.view))
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _count(self, event: Event, time: str) -> None:
        """Note what an event of this session's own tells of what was used."""
        found = self.ahead.meter.count(event)
        if found is not None:
            day = time[: len("2026-01-31")]
            count = UsageCount(user=self.user, day=day, **found._asdict())
            self._usage.append(count)
            self._on_usage(count)

    def _flush(self) -> None:
        """Hand all that was emitted to the writer, in one append."""
        self._flush_due = False
        if not self._batch or self._broken is not None:
            return
        append = Append(
            session=self.session,
            first_seq=self._batch[0].seq,
            rows=tuple(self._batch),
            summary=self.row(ahead=True),
            answer=self._answer,
            files=tuple(self._files),
            uses=tuple(self._uses),
            usage=tuple(self._usage),
            words=self._new_words(),
        )
        self._batch, self._files, self._uses, self._usage = [], [], [], []
        self._answer = None
        last = append.rows[-1].seq
        self._last = asyncio.get_running_loop().create_future()
        self.store.append(append, functools.partial(self._committed, last, self._last))

    def _committed(
        self, last: int, waiting: asyncio.Future[None], error: StoreError | None
    ) -> None:
        """Publish what is committed now; a failed commit shows nothing (C1.3)."""
        if error is not None:
            if self._broken is None:
                self._broken = error
                self._pending.clear()
                self._on_broken(error)
        else:
            self._publish_upto(last)
            self._on_shown()
        waiting.set_result(None)

    def _publish_upto(self, last: int) -> None:
        while self._pending:
            item = self._pending[0]
            if item.envelope is not None and item.seq > last:
                return
            self._pending.popleft()
            self._publish(item)

    def _publish(self, item: _Pending) -> None:
        if item.envelope is None:
            self.partials.grow(item.event)
        else:
            assert item.view is not None
            self.view = item.view
            self.partials.take(item.envelope)
        self.hub.publish(item.frame)
        if self.on_event is not None:
            self.on_event(item.event)

    def row(self, *, ahead: bool = False) -> SessionRow:
        """The session as the list needs it.

        Args:
            ahead: With what is not committed yet.
        """
        return summarize(self.session, self.user, self.ahead.view if ahead else self.view)

    def _new_words(self) -> str | None:
        """What the session is found by, if that is another thing than at the last append."""
        words = join_words(self.ahead.view, self.ahead.opening)
        if words == self._words:
            return None
        self._words = words
        return fold_words(words)


def _encode(envelope: Envelope) -> tuple[Envelope, bytes]:
    """The envelope and its bytes; text that no UTF-8 can hold is mended in both.

    Half a surrogate pair comes from file names of other systems and from broken peers. Nothing may
    fail here: whoever emits could not mend it, and its number would be missing.
    """
    try:
        return envelope, encode(envelope)
    except UnicodeEncodeError:
        mended = msgspec.convert(_mend(msgspec.to_builtins(envelope)), Envelope)
        return mended, encode(mended)


def _encode_private(private: tuple[Private, ...]) -> bytes | None:
    if not private:
        return None
    try:
        return encode(private)
    except UnicodeEncodeError:
        return encode(_mend(msgspec.to_builtins(private)))


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {key: _mend(part) for key, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_mend(part) for part in cast("list[Any]", value)]
    return value

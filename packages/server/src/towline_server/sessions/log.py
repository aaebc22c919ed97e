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
from towline_server.sessions.partials import Partials
from towline_server.sessions.recovery import Loaded, take
from towline_server.store.event_store import EventStore
from towline_server.store.records import Append, IdempotencyRecord, SessionRow, StoredRow
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
        self._store = store
        self._now_ms = now_ms
        self._on_broken = on_broken
        self._next = loaded.view.seq + 1
        self._batch: list[StoredRow] = []
        self._answer: IdempotencyRecord | None = None
        self._pending: deque[_Pending] = deque()
        self._last: asyncio.Future[None] | None = None
        self._flush_due = False
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
        self._store_event(event, private, now_ms, None if outside else self.turn)

    def keep(self, answer: IdempotencyRecord) -> None:
        """Keep an answer in the transaction of what was just emitted (C2.5)."""
        self._answer = answer
        self._flush()  # an append holds one answer

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
        envelope, data = _encode(
            Envelope(
                seq=seq,
                session=self.session,
                turn=turn,
                time=format_time(now_ms),
                event=event,
            )
        )
        kept = _encode_private(private)
        self._next += 1
        take(self.ahead, envelope, private)
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

    def _flush(self) -> None:
        """Hand all that was emitted to the writer, in one append."""
        self._flush_due = False
        if not self._batch or self._broken is not None:
            return
        append = Append(
            session=self.session,
            first_seq=self._batch[0].seq,
            rows=tuple(self._batch),
            summary=self._row(),
            answer=self._answer,
        )
        self._batch = []
        self._answer = None
        last = append.rows[-1].seq
        self._last = asyncio.get_running_loop().create_future()
        self._store.append(append, functools.partial(self._committed, last, self._last))

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

    def _row(self) -> SessionRow:
        view = self.ahead.view
        return SessionRow(
            id=self.session,
            user=self.user,
            agent=view.agent,
            model=view.model,
            mode=view.mode,
            title=view.title,
            cwd=view.cwd,
            created_ms=parse_time(view.created),
            updated_ms=parse_time(view.updated),
            turn=None if view.turn is None else view.turn.id,
            pending=len(view.permissions) + len(view.questions),
            queued=len(view.queue),
            closed=view.closed is not None,
        )


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

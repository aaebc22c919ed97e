"""A session's log and its readers, in memory."""

import asyncio
from collections.abc import Callable

from towline_protocol import (
    Delta,
    Envelope,
    Event,
    Gap,
    Hello,
    Partial,
    Reset,
    SessionClosed,
    SessionId,
    SessionInfo,
    TurnId,
    empty_view,
    encode,
    encode_event,
    reduce,
)

__all__ = ["ScriptedSession", "ScriptedStream", "frame_of", "time_at"]


class ScriptedStream:
    """Those who read one event stream, and ways to end it."""

    def __init__(self) -> None:
        self.readers: list[asyncio.Queue[bytes | None]] = []
        """One queue for each open stream; `None` ends it."""

    @property
    def over(self) -> bool:
        """Whether nothing more comes after the replay."""
        return False

    def send(self, frame: bytes) -> None:
        """Send bytes to every reader, whatever they are."""
        for reader in self.readers:
            reader.put_nowait(frame)

    def hang_up(self) -> None:
        """End every stream."""
        for reader in self.readers:
            reader.put_nowait(None)

    def reset(self, retry_ms: int) -> None:
        """Announce a planned close, then end every stream (C3.6)."""
        self.send(encode_event(encode(Reset(retry_ms=retry_ms)), event="reset"))
        self.hang_up()


class ScriptedSession(ScriptedStream):
    """One session's log and its readers."""

    def __init__(
        self,
        id: SessionId,  # noqa: A002 - its name
        log: str,
        *,
        changed: Callable[["ScriptedSession"], None] | None = None,
    ) -> None:
        """Begin an empty log.

        Args:
            id: The session's id.
            log: The log's lineage.
            changed: Told after each stored event.
        """
        super().__init__()
        self.id = id
        """Its id."""
        self.log = log
        """Its log's lineage."""
        self.events: list[Envelope] = []
        """All stored events."""
        self.view = empty_view()
        """The view they make, with what is being written."""
        self.read_seq = 0
        """The number of the last event that its user has read."""
        self._changed = changed

    def emit(self, event: Event, turn: TurnId | None = None) -> Envelope:
        """Store an event, or pass a delta on, and send it to every reader."""
        stored = not isinstance(event, Delta)
        seq = len(self.events) + 1 if stored else None
        envelope = Envelope(
            seq=seq, session=self.id, turn=turn, time=time_at(len(self.events)), event=event
        )
        if stored:
            self.events.append(envelope)
        self.view = reduce(self.view, envelope)
        self.send(frame_of(envelope))
        if stored and self._changed is not None:
            self._changed(self)
        if isinstance(event, SessionClosed):
            self.hang_up()
        return envelope

    @property
    def over(self) -> bool:
        """Whether the session is closed."""
        return self.view.closed is not None

    @property
    def info(self) -> SessionInfo:
        """Its row in the list."""
        view = self.view
        said = view.messages[-1].seq if view.messages else 0
        return SessionInfo(
            id=self.id,
            agent=view.agent,
            model=view.model,
            mode=view.mode,
            live=view.turn is not None,
            last_seq=view.seq,
            turn=None if view.turn is None else view.turn.id,
            pending=len(view.permissions) + len(view.questions),
            queued=len(view.queue),
            title=view.title,
            cwd=view.cwd,
            created=view.created,
            updated=view.updated,
            closed=view.closed is not None,
            archived=view.archived,
            labels=view.labels,
            unread=said > self.read_seq,
            read_seq=self.read_seq,
        )

    def head(self, cursor: str | None) -> list[bytes]:
        """The frames that a reader with this cursor gets before the live ones (C3.2, C3.3)."""
        hello = Hello(
            log=self.log, last_seq=len(self.events), now=time_at(0), server_version="scripted"
        )
        frames = [b"retry: 1\n\n", encode_event(encode(hello), event="hello")]
        after = int(cursor) if cursor is not None and cursor.isdigit() else 0
        if after > len(self.events):
            gap = Gap(requested=str(cursor), last=len(self.events), reason="ahead_of_log")
            return [*frames, encode_event(encode(gap), event="gap")]
        frames += [frame_of(envelope) for envelope in self.events[after:]]
        for message in self.view.open_messages:
            partial = Partial(message=message.id, content=message.content)
            frames.append(encode_event(encode(partial), event="partial"))
        for call in self.view.open_calls:
            partial = Partial(
                call=call.call,
                at=call.output_at,
                output=call.output,
                progress=call.progress,
                fraction=call.fraction,
            )
            frames.append(encode_event(encode(partial), event="partial"))
        return frames


def frame_of(envelope: Envelope) -> bytes:
    """An envelope as the stream carries it."""
    return encode_event(encode(envelope), id=envelope.seq)


def time_at(second: int) -> str:
    """The time on the wire so many seconds after the script's beginning."""
    return f"2026-01-31T{9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"

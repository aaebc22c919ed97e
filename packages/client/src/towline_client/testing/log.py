"""A session's log and its readers, in memory."""

import asyncio

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
    TurnId,
    empty_view,
    encode,
    encode_event,
    reduce,
)

__all__ = ["ScriptedSession", "frame_of", "time_at"]


class ScriptedSession:
    """One session's log and its readers."""

    def __init__(self, id: SessionId, log: str) -> None:  # noqa: A002 - its name
        self.id = id
        """Its id."""
        self.log = log
        """Its log's lineage."""
        self.events: list[Envelope] = []
        """All stored events."""
        self.view = empty_view()
        """The view they make, with what is being written."""
        self.readers: list[asyncio.Queue[bytes | None]] = []
        """One queue for each open stream; `None` ends it."""

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
        if isinstance(event, SessionClosed):
            self.hang_up()
        return envelope

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
            partial = Partial(call=call.call, at=call.output_at, output=call.output)
            frames.append(encode_event(encode(partial), event="partial"))
        return frames


def frame_of(envelope: Envelope) -> bytes:
    """An envelope as the stream carries it."""
    return encode_event(encode(envelope), id=envelope.seq)


def time_at(second: int) -> str:
    """The time on the wire so many seconds after the script's beginning."""
    return f"2026-01-31T{9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"

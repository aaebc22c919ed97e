"""The feed of a user: the rows of the session list, as they change (C2.12).

It carries titles and states, never what was said. It has no cursor: whoever comes back starts with
a snapshot again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from towline_protocol import (
    SessionChanged,
    SessionId,
    SessionInfo,
    SessionRemoved,
    SessionRows,
    encode,
    encode_event,
)
from towline_server.sessions.catalog import describe
from towline_server.store.records import SessionRow
from towline_server.stream.hub import Hub, Subscriber

__all__ = ["FEED_ROWS", "Feeds"]

FEED_ROWS: Final = 50
"""Sessions that a snapshot holds, beside those that need somebody (C2.12)."""

_QUIET: Final = {"last_seq": 0, "updated": ""}
"""What changes with each event of a turn; it is told with the next change of something else."""


@dataclass(kw_only=True)
class _Feed:
    """One user's readers, and what they were told last."""

    hub: Hub = field(default_factory=Hub)
    taps: tuple[Subscriber, ...] = ()
    read: dict[SessionId, int] = field(default_factory=dict[SessionId, int])
    told: dict[SessionId, SessionInfo] = field(default_factory=dict[SessionId, SessionInfo])

    def publish(self, frame: bytes) -> None:
        self.hub.publish(frame)
        for tap in self.taps:
            tap.push(frame)


class Feeds:
    """The feeds of all users who listen right now; nothing is kept of the others."""

    def __init__(self) -> None:
        self._feeds: dict[str, _Feed] = {}

    def join(self, user: str, reader: str | None) -> Subscriber:
        """A place for a reader of the feed alone; to be given up with `leave`.

        Raises:
            TooManyReaders: All places are taken.
        """
        subscriber = self._feeds.setdefault(user, _Feed()).hub.join(reader)
        subscriber.start()
        return subscriber

    def tap(self, user: str, subscriber: Subscriber) -> None:
        """Let a reader of a session have the feed as well, until `leave`."""
        feed = self._feeds.setdefault(user, _Feed())
        feed.taps = (*feed.taps, subscriber)

    def leave(self, user: str, subscriber: Subscriber) -> None:
        """Forget a reader whose stream has ended; may be called twice."""
        subscriber.leave()
        feed = self._feeds.get(user)
        if feed is None:
            return
        feed.taps = tuple(tap for tap in feed.taps if tap is not subscriber)
        if not feed.taps and not feed.hub.readers:
            del self._feeds[user]

    def watches(self, user: str) -> bool:
        """Whether anybody listens: nobody need make a row that nobody is told."""
        return user in self._feeds

    def snapshot(self, user: str, rows: Iterable[tuple[SessionRow, bool]]) -> bytes:
        """The frame that a reader begins with.

        Args:
            user: Whose feed it is.
            rows: Each session's row, and whether it is live.
        """
        shown: list[SessionInfo] = []
        feed = self._feeds.get(user)
        for row, live in rows:
            shown.append(_tellable(describe(row, live=live)))
            if feed is not None:
                feed.read[row.id] = max(row.read_seq, feed.read.get(row.id, 0))
        return encode_event(encode(SessionRows(sessions=tuple(shown))), event="sessions")

    def tell(self, row: SessionRow, *, live: bool) -> None:
        """Tell a row, if anything changed that a list shows."""
        feed = self._feeds.get(row.user)
        if feed is None:
            return
        read_seq = max(row.read_seq, feed.read.get(row.id, 0))
        info = _tellable(describe(msgspec.structs.replace(row, read_seq=read_seq), live=live))
        quiet = msgspec.structs.replace(info, **_QUIET)
        if feed.told.get(row.id) == quiet:
            return
        feed.told[row.id] = quiet
        feed.publish(encode_event(encode(SessionChanged(session=info)), event="session"))

    def note_read(self, user: str, session: SessionId, seq: int) -> None:
        """Remember how far a session was read, for the rows to come."""
        feed = self._feeds.get(user)
        if feed is not None:
            feed.read[session] = max(seq, feed.read.get(session, 0))

    def drop(self, user: str, session: SessionId) -> None:
        """Tell that a session is no longer there."""
        feed = self._feeds.get(user)
        if feed is None:
            return
        feed.told.pop(session, None)
        feed.read.pop(session, None)
        frame = encode(SessionRemoved(session=session))
        feed.publish(encode_event(frame, event="session_removed"))

    def drain(self, retry_ms: Callable[[], int]) -> None:
        """Tell every reader of a feed that the server is going away, then end its stream.

        Args:
            retry_ms: Milliseconds until it shall come back, drawn anew for each.
        """
        for feed in list(self._feeds.values()):
            feed.hub.drain(retry_ms)


def _tellable(info: SessionInfo) -> SessionInfo:
    """A row without what was said: a feed carries titles and states alone."""
    return msgspec.structs.replace(info, last_line="")

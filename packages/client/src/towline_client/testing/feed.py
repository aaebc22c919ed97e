"""The feed of a scripted server's session list (C2.12)."""

from collections.abc import Iterable

import msgspec

from towline_client.testing.log import ScriptedStream, time_at
from towline_protocol import (
    Hello,
    SessionChanged,
    SessionId,
    SessionInfo,
    SessionRemoved,
    SessionRows,
    encode,
    encode_event,
)

__all__ = ["ScriptedFeed"]


class ScriptedFeed(ScriptedStream):
    """The readers of the list, and what they were told last."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[SessionId, SessionInfo] = {}

    def tell(self, info: SessionInfo) -> None:
        """Send a row, if anything changed that a list shows."""
        quiet = msgspec.structs.replace(info, last_seq=0, updated="")
        if self._told.get(info.id) != quiet:
            self._told[info.id] = quiet
            self.send(encode_event(encode(SessionChanged(session=info)), event="session"))

    def drop(self, session: SessionId) -> None:
        """Tell that a session is gone."""
        self._told.pop(session, None)
        frame = encode(SessionRemoved(session=session))
        self.send(encode_event(frame, event="session_removed"))

    def head(self, rows: Iterable[SessionInfo], log: str) -> list[bytes]:
        """The frames that a reader begins with."""
        hello = Hello(log=log, last_seq=0, now=time_at(0), server_version="scripted")
        snapshot = SessionRows(sessions=tuple(rows))
        return [
            b"retry: 1\n\n",
            encode_event(encode(hello), event="hello"),
            encode_event(encode(snapshot), event="sessions"),
        ]

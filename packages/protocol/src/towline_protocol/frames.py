"""What one connection carries beside events: the control frames (C3.2 to C3.6, C1.6, C2.12)."""

import msgspec

from towline_protocol.commands.session import SessionInfo
from towline_protocol.content import Block
from towline_protocol.events import Envelope
from towline_protocol.ids import CallId, MessageId, SessionId

__all__ = [
    "CONTROL_FRAMES",
    "Broken",
    "Control",
    "Frame",
    "Gap",
    "Hello",
    "Partial",
    "Reset",
    "SessionChanged",
    "SessionRemoved",
    "SessionRows",
]


class Hello(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first frame of every stream (C3.2)."""

    log: str
    """The lineage of this log; another one than before means: rebuild."""
    last_seq: int
    """The number of the last stored event."""
    now: str
    """The server's clock, RFC 3339, so that countdowns run in server time."""
    server_version: str
    """The version that serves."""
    web_build: str | None = None
    """The stamp of the web app that this server holds."""


class Partial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is there so far of one open message or of one running call (C1.6).

    Either `message` and `content`, or `call` and the rest.
    """

    message: MessageId | None = None
    """The open message."""
    content: tuple[Block, ...] = ()
    """Its blocks so far; a call's arguments may end anywhere."""
    call: CallId | None = None
    """The running call."""
    at: int = 0
    """Code points of the call's output before `output`."""
    output: str = ""
    """The tail of the call's output."""
    progress: str | None = None
    """The call's last progress line."""
    fraction: float | None = None
    """How far the call is, from 0 to 1; `None` when unknown."""


class Gap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cursor cannot be served: rebuild from the view (C3.5)."""

    requested: str
    """The cursor as it came."""
    last: int
    """The number of the last stored event."""
    reason: str
    """`ahead_of_log`, `malformed`, `too_long` or `other_log`."""


class Reset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The server is about to close this stream on purpose (C3.6)."""

    retry_ms: int
    """Milliseconds to wait before the next connection; jitter is in it."""


class SessionRows(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a user's feed begins: the newest sessions, and all that need somebody (C2.12)."""

    sessions: tuple[SessionInfo, ...]
    """Their rows, newest first."""


class SessionChanged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of the list, new or changed (C2.12)."""

    session: SessionInfo
    """The row as it is now."""


class SessionRemoved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session was deleted (C2.12)."""

    session: SessionId
    """Its id."""


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A frame that could not be read; counted and skipped (C1.11)."""

    reason: str
    """What was wrong, without the frame's content."""


Control = Hello | Partial | Gap | Reset | SessionRows | SessionChanged | SessionRemoved
"""A frame without a number that never moves the cursor (C3.4)."""

Frame = Envelope | Control
"""What a reader folds into its view."""

CONTROL_FRAMES: dict[str, type[Control]] = {
    "gap": Gap,
    "hello": Hello,
    "partial": Partial,
    "reset": Reset,
    "session": SessionChanged,
    "session_removed": SessionRemoved,
    "sessions": SessionRows,
}
"""SSE event name to control frame."""

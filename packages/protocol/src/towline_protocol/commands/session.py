"""Sessions: made, listed, changed, closed."""

from towline_protocol.commands.body import Body
from towline_protocol.content import PromptBlock
from towline_protocol.events import ClientTool
from towline_protocol.ids import SessionId, TurnId
from towline_protocol.messages import Limits

__all__ = [
    "CloseSession",
    "CreateSession",
    "MarkRead",
    "ReadMark",
    "SessionDeleted",
    "SessionInfo",
    "SessionList",
    "UpdateSession",
]


class CreateSession(Body, frozen=True, kw_only=True):
    """What a new session is made of; all is optional."""

    agent: str | None = None
    """The name of an agent's spec."""
    model: str | None = None
    """`provider/model`."""
    title: str | None = None
    """A title."""
    cwd: str | None = None
    """The folder to work in; must lie in one of the server's roots (D2)."""
    mode: str | None = None
    """`ask`, `accept_edits`, `auto` or `plan`; `None` for the one that was last chosen for the
    folder, else the server's (A5.46)."""
    prompt: tuple[PromptBlock, ...] | None = None
    """A first prompt, admitted with the session."""
    key: str | None = None
    """The client's own key of that prompt."""
    tools: tuple[ClientTool, ...] = ()
    """Tools that any client of the session may run (C5.12)."""
    labels: tuple[str, ...] = ()
    """What to sort it by: at most 16, of at most 64 characters each."""
    limits: Limits | None = None
    """Bounds of its turns that name none of their own; `None` for the agent's."""


class SessionInfo(Body, frozen=True, kw_only=True):
    """One row of the session list (C2.10)."""

    id: SessionId
    """Its id."""
    agent: str
    """The name of its agent's spec."""
    model: str
    """`provider/model`."""
    mode: str
    """`ask`, `accept_edits`, `auto` or `plan`."""
    live: bool
    """Whether a turn runs, something is pending or a reader is attached."""
    last_seq: int
    """The number of its last stored event."""
    turn: TurnId | None = None
    """The running turn."""
    pending: int = 0
    """Open permission requests and questions."""
    queued: int = 0
    """Prompts that wait."""
    title: str | None = None
    """Its title, or the start of its first prompt."""
    last_line: str = ""
    """How the last thing begins that the user or the agent said: one line of at most 120 characters
    without controls. Empty when nothing was said, and in a feed, which never carries it (C2.12)."""
    cwd: str | None = None
    """The folder it works in."""
    created: str
    """RFC 3339 time."""
    updated: str
    """RFC 3339 time of the last stored event."""
    closed: bool = False
    """Whether it takes no more prompts."""
    archived: bool = False
    """Whether it is put away."""
    labels: tuple[str, ...] = ()
    """What people sort it by."""
    unread: bool = False
    """Whether its conversation goes on behind `read_seq`."""
    read_seq: int = 0
    """The number of the last event that its user has read, as `mark_read` was told."""


class SessionList(Body, frozen=True, kw_only=True):
    """Sessions, newest first."""

    sessions: tuple[SessionInfo, ...]
    """One page."""
    next: str | None = None
    """The cursor of the next page; `None` on the last one."""


class UpdateSession(Body, frozen=True, kw_only=True):
    """What changes in a session; what is left out stays."""

    title: str | None = None
    """The new title."""
    model: str | None = None
    """The new `provider/model`, from the next turn on."""
    mode: str | None = None
    """The new mode, from the next turn on: `ask`, `accept_edits`, `auto` or `plan`. The folder's
    next session begins with it."""
    labels: tuple[str, ...] | None = None
    """The new labels, all of them: at most 16, of at most 64 characters each."""
    archived: bool | None = None
    """Whether it is put away: the usual list does not show it."""


class MarkRead(Body, frozen=True, kw_only=True):
    """How far a person has read."""

    seq: int
    """The number of the last event they have seen."""


class ReadMark(Body, frozen=True, kw_only=True):
    """Where the mark stands; it never goes back."""

    seq: int
    """The number of an event; 0 when nothing is read."""


class CloseSession(Body, frozen=True, kw_only=True):
    """End a session for good; it stays readable."""

    reason: str = "closed by the user"
    """Why, for the log."""


class SessionDeleted(Body, frozen=True, kw_only=True):
    """The session is gone, its log as well."""

    session: SessionId
    """Its id."""
    until: str
    """RFC 3339 time: until then its id is told to be gone, after that to be unknown."""

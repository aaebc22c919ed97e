"""Sessions: made and listed."""

from towline_protocol.commands.body import Body, PromptBlock
from towline_protocol.ids import SessionId, TurnId

__all__ = ["CreateSession", "SessionInfo", "SessionList"]


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
    """`ask` or `auto`."""
    prompt: tuple[PromptBlock, ...] | None = None
    """A first prompt, admitted with the session."""
    key: str | None = None
    """The client's own key of that prompt."""


class SessionInfo(Body, frozen=True, kw_only=True):
    """One row of the session list (C2.10)."""

    id: SessionId
    """Its id."""
    agent: str
    """The name of its agent's spec."""
    model: str
    """`provider/model`."""
    mode: str
    """`ask` or `auto`."""
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
    cwd: str | None = None
    """The folder it works in."""
    created: str
    """RFC 3339 time."""
    updated: str
    """RFC 3339 time of the last stored event."""
    closed: bool = False
    """Whether it takes no more prompts."""


class SessionList(Body, frozen=True, kw_only=True):
    """Sessions, newest first."""

    sessions: tuple[SessionInfo, ...]
    """One page."""
    next: str | None = None
    """The cursor of the next page; `None` on the last one."""

"""What a client may ask and what it is answered: the bodies of the operations."""

from typing import Any

import msgspec

from towline_protocol.content import File, Image, Text
from towline_protocol.ids import PromptId, SessionId, TurnId
from towline_protocol.messages import Limits
from towline_protocol.view import SessionView

__all__ = [
    "AnswerPermission",
    "Claim",
    "Claimed",
    "CreateSession",
    "Health",
    "Identity",
    "Interrupt",
    "Interrupted",
    "Pairing",
    "PermissionAnswered",
    "Problem",
    "PromptAccepted",
    "PromptBlock",
    "SendPrompt",
    "SessionInfo",
    "SessionList",
    "ViewAnswer",
]


class _Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


PromptBlock = Text | Image | File
"""What a person may put into a prompt."""


class Problem(_Body, frozen=True, kw_only=True):
    """An error answer: RFC 9457 with our members (C2.2)."""

    type: str = "about:blank"
    """Always `about:blank`: `code` says more."""
    title: str
    """The code in words."""
    status: int
    """The HTTP status."""
    detail: str
    """What was wrong, then what to do next."""
    code: str
    """One of `FAULT_CODES`."""
    retry: str
    """`none`, `same_request` or `refresh`."""
    retry_after_s: float | None = None
    """Seconds until a retry can help."""
    scope: str | None = None
    """Whose limit or part it was."""
    reason: str | None = None
    """A finer word, for display."""
    request_id: str | None = None
    """How the server's log names this request."""
    details: dict[str, Any] | None = None
    """Extra facts."""


class Health(_Body, frozen=True, kw_only=True):
    """The server lives."""

    status: str
    """`ok`."""
    server_version: str
    """Its version."""
    pid: int
    """Its process id."""


class Claim(_Body, frozen=True, kw_only=True):
    """A one-time code, to be turned into a token."""

    code: str
    """The code as it was shown; case and dashes do not matter."""
    cookie: bool = False
    """Whether the token is also set as a cookie, for browsers."""
    name: str = ""
    """What the device calls itself."""


class Claimed(_Body, frozen=True, kw_only=True):
    """A code that was accepted."""

    token: str | None = None
    """The device's token; `None` when it was set as a cookie."""
    user: str
    """Who one is now."""


class Pairing(_Body, frozen=True, kw_only=True):
    """A new one-time code."""

    code: str
    """8 characters; works once."""
    url: str
    """The page with the code in its fragment."""
    expires_at: str
    """RFC 3339 time."""


class Identity(_Body, frozen=True, kw_only=True):
    """Who the caller is."""

    user: str
    """The user's name."""
    server_name: str
    """What the server calls itself."""


class CreateSession(_Body, frozen=True, kw_only=True):
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


class SessionInfo(_Body, frozen=True, kw_only=True):
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


class SessionList(_Body, frozen=True, kw_only=True):
    """Sessions, newest first."""

    sessions: tuple[SessionInfo, ...]
    """One page."""
    next: str | None = None
    """The cursor of the next page; `None` on the last one."""


class SendPrompt(_Body, frozen=True, kw_only=True):
    """Something a person says to a session."""

    content: tuple[PromptBlock, ...]
    """1 to 64 blocks."""
    when: str = "auto"
    """`auto`: start when idle, else queue. `queue`, `steer`, `reject` (C2.11)."""
    limits: Limits | None = None
    """Bounds of the turn; `None` for the agent's own."""
    speak: bool = False
    """Whether the turn's end should say what to read aloud (A4.30)."""


class PromptAccepted(_Body, frozen=True, kw_only=True):
    """The prompt is durable."""

    prompt: PromptId
    """Its id."""
    turn: TurnId | None = None
    """The turn it starts or steers, when that is known already."""
    position: int = 0
    """Prompts ahead of it."""
    session: SessionId
    """Where it went."""


class Interrupt(_Body, frozen=True, kw_only=True):
    """Stop the running turn."""

    turn: TurnId | None = None
    """Only this turn; `None` for whichever runs."""
    reason: str = "stopped by the user"
    """Why, for the log."""


class Interrupted(_Body, frozen=True, kw_only=True):
    """What was stopped."""

    turn: TurnId | None = None
    """The turn that is stopping; `None` when none was running."""


class AnswerPermission(_Body, frozen=True, kw_only=True):
    """A person's decision."""

    option: str
    """The id of one offered option."""
    digest: str
    """The request's digest, recited."""
    note: str | None = None
    """Words for the model."""


class PermissionAnswered(_Body, frozen=True, kw_only=True):
    """The decision stands."""

    option: str
    """The option that was taken."""


class ViewAnswer(_Body, frozen=True, kw_only=True):
    """A view and the number it stands at (C4.3)."""

    log: str
    """The lineage of the log."""
    seq: int
    """The last event the view holds: subscribe from here."""
    view: SessionView
    """The view."""

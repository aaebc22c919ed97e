"""What a session looks like."""

from towline_protocol.commands.body import Body
from towline_protocol.events import PermissionRequested, QuestionAsked
from towline_protocol.ids import SessionId
from towline_protocol.view import CallView, MessageView, SessionView

__all__ = ["History", "RequestList", "RequestRow", "ViewAnswer"]


class History(Body, frozen=True, kw_only=True):
    """A page of older messages, oldest first (C4.3)."""

    messages: tuple[MessageView, ...] = ()
    """The messages, and the marks between them."""
    calls: tuple[CallView, ...] = ()
    """Their calls."""
    next: int | None = None
    """What to ask for as `before` to get the page before this one; `None` for none."""


class RequestRow(Body, frozen=True, kw_only=True):
    """One thing that waits for a person or a client of theirs, in one of their sessions."""

    session: SessionId
    """Where it waits."""
    title: str | None = None
    """That session's title."""
    kind: str
    """`permission`, `question` or `call`: which of the following is there."""
    permission: PermissionRequested | None = None
    """What shall be allowed."""
    question: QuestionAsked | None = None
    """What is asked."""
    call: CallView | None = None
    """What a client shall run, or runs."""


class RequestList(Body, frozen=True, kw_only=True):
    """What waits for a person, what ends first before the rest."""

    requests: tuple[RequestRow, ...]
    """The open requests, 200 at most; those without a deadline come last."""


class ViewAnswer(Body, frozen=True, kw_only=True):
    """A view and the number it stands at (C4.3)."""

    log: str
    """The lineage of the log."""
    seq: int
    """The last event the view holds: subscribe from here."""
    view: SessionView
    """The view."""

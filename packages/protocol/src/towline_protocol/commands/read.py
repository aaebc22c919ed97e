"""What a session looks like."""

from towline_protocol.commands.body import Body
from towline_protocol.view import SessionView

__all__ = ["ViewAnswer"]


class ViewAnswer(Body, frozen=True, kw_only=True):
    """A view and the number it stands at (C4.3)."""

    log: str
    """The lineage of the log."""
    seq: int
    """The last event the view holds: subscribe from here."""
    view: SessionView
    """The view."""

"""What a line knows for sure: the log's view, while it is as the server has it."""

import msgspec

from towline_protocol import SessionView, parse_time

__all__ = ["Current"]


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """The newest view of a line that is up and has caught up.

    A program acts on this alone: while a replay runs, requests show that ended long ago.
    """

    view: SessionView
    """The log's own view."""
    line: int
    """The number of the connection; another one after each reconnection."""
    ahead_ms: int
    """Milliseconds since 1970 by the server's clock, less those of the client's clock."""

    def is_over(self, until: str | None, now_ms: int) -> bool:
        """Whether a moment of the server's has passed.

        Args:
            until: The moment, RFC 3339; `None` and what is no time never pass.
            now_ms: The client's clock.
        """
        try:
            return until is not None and parse_time(until) <= now_ms + self.ahead_ms
        except ValueError:
            return False

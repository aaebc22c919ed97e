"""What all bodies share, and the body of an error."""

from typing import Any

import msgspec

__all__ = ["Body", "Problem"]


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request or of an answer."""


class Problem(Body, frozen=True, kw_only=True):
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

"""Errors as data: what travels in events and in problem answers."""

from typing import Any, Final

import msgspec

__all__ = ["FAULT_CODES", "Fault", "FaultCode"]


class FaultCode(msgspec.Struct, frozen=True):
    """One row of the closed set of fault codes (C2.3)."""

    code: str
    """The code on the wire."""
    status: int
    """The HTTP status an answer with this code carries."""
    retry: str
    """`none`, `same_request` (send the same bytes again later) or `refresh` (read anew first)."""


_NONE: Final = "none"

FAULT_CODES: Final[dict[str, FaultCode]] = {
    row.code: row
    for row in (
        FaultCode("invalid_request", 400, _NONE),
        FaultCode("version_mismatch", 400, _NONE),
        FaultCode("unauthorized", 401, _NONE),
        FaultCode("forbidden", 403, _NONE),
        FaultCode("not_found", 404, _NONE),
        FaultCode("capability_unavailable", 404, _NONE),
        FaultCode("method_not_allowed", 405, _NONE),
        FaultCode("conflict", 409, _NONE),
        FaultCode("idempotency_conflict", 409, _NONE),
        FaultCode("gone", 410, _NONE),
        FaultCode("precondition_failed", 412, "refresh"),
        FaultCode("payload_too_large", 413, _NONE),
        FaultCode("unsupported_media", 415, _NONE),
        FaultCode("rejected", 422, _NONE),
        FaultCode("capacity_exceeded", 429, "same_request"),
        FaultCode("rate_limited", 429, "same_request"),
        FaultCode("internal_error", 500, _NONE),
        FaultCode("upstream_unavailable", 503, "same_request"),
        FaultCode("draining", 503, "same_request"),
        FaultCode("store_full", 503, "same_request"),
        FaultCode("deadline_exceeded", 504, _NONE),
    )
}
"""Code to row: the codes of C2.3, and `store_full` of C1.21. Events also carry
`provider_<kind>`, one for each kind of provider error."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as data. The same shape stands in events, views and problem answers (C2.2)."""

    code: str
    """One of `FAULT_CODES`, or `provider_<kind>`; an open string for readers."""
    message: str
    """English sentences: what was wrong, then what to do next. Never holds a secret."""
    retry: str = _NONE
    """`none`, `same_request` or `refresh`."""
    retry_after_s: float | None = None
    """Seconds until a retry can help; `None` when unknown."""
    scope: str | None = None
    """Whose limit or part it was: `turn`, `plan`, `limit`, `store`, `client.auth` or
    `client.outbox`."""
    reason: str | None = None
    """A finer word out of an open list, for display (C2.2)."""
    details: dict[str, Any] | None = None
    """Extra facts a program can act on, such as `suggested_model`."""

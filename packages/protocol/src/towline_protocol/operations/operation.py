"""What a row of the contract table says."""

import msgspec

from towline_protocol.faults import FAULT_CODES

__all__ = ["Operation", "fault_codes", "takes_match"]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    """What the client's call is named."""
    method: str
    """The HTTP method."""
    path: str
    """The path, parameters in braces."""
    summary: str
    """One sentence for the reference."""
    request: type[msgspec.Struct] | None = None
    """The body; `None` for none."""
    answer: type[msgspec.Struct] | None = None
    """The answer's body; `None` for none or for a stream."""
    status: int = 200
    """The status of success."""
    query: tuple[str, ...] = ()
    """Query parameters that it reads; each is a row of `QUERIES`."""
    faults: tuple[str, ...] = ()
    """Codes it may answer beside those that any operation may."""
    idempotent: bool = False
    """Whether it takes an `Idempotency-Key` (C2.5)."""
    stream: bool = False
    """Whether the answer is an event stream (C3)."""
    open: bool = False
    """Whether it answers without a credential."""
    admin: bool = False
    """Whether only an admin may call it."""
    large: bool = False
    """Whether its body may be as large as what a person sends (C6)."""
    raw: bool = False
    """Whether its body is bytes as they are, of any content type."""
    media: str | None = None
    """The content type of an answer that no struct describes, such as `text/html`."""


def fault_codes(operation: Operation) -> tuple[str, ...]:
    """Every code that an operation may answer: its own, and those that any such one may."""
    changes = operation.method != "GET"
    common = {
        "invalid_request": True,  # a query or a header that does not fit
        "version_mismatch": True,
        "unauthorized": not operation.open,
        "forbidden": True,  # a host or an origin that is not the server's
        "idempotency_conflict": operation.idempotent,
        "payload_too_large": operation.request is not None or operation.raw,
        "unsupported_media": operation.request is not None,
        "internal_error": True,
        "upstream_unavailable": operation.idempotent,  # the first one of its key still runs
        "draining": changes or operation.stream,
        "store_full": changes,
        "deadline_exceeded": not operation.stream,
    }
    return tuple(code for code in FAULT_CODES if common.get(code) or code in operation.faults)


def takes_match(operation: Operation) -> bool:
    """Whether an operation holds an `If-Match` against what counts now (C2.6)."""
    return operation.method != "GET" and "precondition_failed" in operation.faults

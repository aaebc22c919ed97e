"""Errors as answers: RFC 9457 with the contract's members (C2.2 to C2.4)."""

import math

from starlette.responses import Response

from towline_protocol import FAULT_CODES, Fault, Problem, encode

__all__ = ["problem"]


def problem(fault: Fault, request_id: str) -> Response:
    """A fault as an HTTP answer; 429 and 503 say when to come back (C2.4)."""
    row = FAULT_CODES.get(fault.code, FAULT_CODES["internal_error"])
    body = Problem(
        title=row.code.replace("_", " "),
        status=row.status,
        detail=fault.message,
        code=row.code,
        retry=fault.retry,
        retry_after_s=fault.retry_after_s,
        scope=fault.scope,
        reason=fault.reason,
        request_id=request_id,
        details=fault.details,
    )
    headers: dict[str, str] = {}
    if row.status in (429, 503):
        headers["retry-after"] = str(max(1, math.ceil(fault.retry_after_s or 1)))
    return Response(
        encode(body),
        status_code=row.status,
        headers=headers,
        media_type="application/problem+json",
    )

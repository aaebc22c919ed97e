"""How a request is named in the log: by its caller, or by the server (C2.8)."""

import re
import secrets
from typing import Final

from starlette.datastructures import Headers

__all__ = ["name_request", "read_trace"]

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TRACE: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


def name_request(headers: Headers) -> str:
    """The caller's `x-request-id` when it is one, else a fresh name."""
    given = headers.get("x-request-id", "")
    return given if _NAME.fullmatch(given) else f"req_{secrets.token_hex(8)}"


def read_trace(headers: Headers) -> str | None:
    """The id of the caller's trace out of `traceparent` (W3C); `None` when there is none."""
    found = _TRACE.fullmatch(headers.get("traceparent", ""))
    return None if found is None else found[1]

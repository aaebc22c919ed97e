"""What a scripted server reads out of a call, and how it answers."""

from typing import Any, Final, TypeVar

import msgspec

from towline_client.transport import Call, Reply
from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION, FAULT_CODES, Problem, encode

__all__ = ["give", "part_of", "read_body", "refuse"]

_HEAD: Final = {CONTRACT_HEADER: CONTRACT_VERSION, "content-type": "application/json"}
_T = TypeVar("_T", bound=msgspec.Struct)


def give(call: Call, value: object, *, tag: str | None = None) -> Reply:
    """A success.

    Args:
        call: What it answers.
        value: The body: bytes as they are, `None` for none, else what JSON is made of.
        tag: Its `ETag`.
    """
    head: dict[str, Any] = dict(_HEAD)
    if call.operation.media is not None:
        head["content-type"] = call.operation.media
    if tag is not None:
        head["etag"] = tag
    body = value if isinstance(value, bytes) else b"" if value is None else encode(value)
    return Reply(status=call.operation.status, headers=head, body=body)


def refuse(
    code: str, detail: str, *, retry_after_s: float | None = None, reason: str | None = None
) -> Reply:
    """A problem answer.

    Args:
        code: One of the fault codes.
        detail: What was wrong, then what to do next.
        retry_after_s: Seconds until a retry can help.
        reason: Why, in a word.
    """
    row = FAULT_CODES[code]
    problem = Problem(
        title=code.replace("_", " "),
        status=row.status,
        detail=detail,
        code=code,
        retry=row.retry,
        retry_after_s=retry_after_s,
        reason=reason,
    )
    head = {**_HEAD, "content-type": "application/problem+json"}
    return Reply(status=row.status, headers=head, body=encode(problem))


def read_body(call: Call, kind: type[_T]) -> _T:
    """A call's body; an empty one counts as `{}`."""
    return msgspec.json.decode(call.body or b"{}", type=kind)


def part_of(call: Call, place: int) -> str:
    """A part of the path, counted from 0: the session's id is part 2, what is in it part 4."""
    parts = call.path.strip("/").split("/")
    return parts[place] if place < len(parts) else ""

"""How requests leave and answers come: the seam, and what every answer is checked for (C2.1)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import msgspec

from towline_client.errors import (
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    Unauthorized,
)
from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION, Operation, Problem, VersionMismatch

__all__ = [
    "MAX_ANSWER_BYTES",
    "MAX_WAIT_S",
    "Call",
    "Reply",
    "StreamReply",
    "Transport",
    "check_head",
    "check_reply",
]

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""The largest answer a client takes: a view of 200 messages, each as long as an event may be (C6),
so that a peer whose answer never ends does not fill the memory."""
MAX_WAIT_S: Final = 366 * 86_400.0
"""The longest wait that an answer may ask for, a year; more counts as this."""

_problem: Final = msgspec.json.Decoder(Problem)
_OF_PROXIES: Final = frozenset({407, 408, 413, 425, 429})
"""Statuses below 500 that a proxy before a healthy server gives as well."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Its repr leaves out what may be secret."""

    operation: Operation
    """The row of the contract table."""
    path: str
    """The path with its parameters filled in."""
    query: Mapping[str, str] = {}
    """Query parameters."""
    headers: Mapping[str, str] = {}
    """Headers beside the credential, lower case."""
    body: bytes | None = None
    """JSON; bytes as they are for an operation whose body is `raw`."""
    token: str | None = None
    """The credential, asked for this request alone."""
    timeout_s: float = 30.0
    """Seconds for the whole of an ordinary request; a stream has no such limit."""

    def __repr__(self) -> str:
        return f"Call({self.operation.method} {self.path})"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it came; its repr leaves out the body."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """Its headers; look them up in lower case."""
    body: bytes = b""
    """Its bytes."""
    address: str = ""
    """Scheme, host and port of who sent it, for messages; empty when the transport has none."""

    def __repr__(self) -> str:
        return f"Reply({self.status})"


class StreamReply(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a stream, and its bytes as they come."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """Its headers; look them up in lower case."""
    chunks: AsyncIterator[bytes]
    """The body. Ends in order when the server ends it, raises `ConnectionLost` when it breaks."""
    address: str = ""
    """As `Reply.address`."""


class Transport(Protocol):
    """Carries calls.

    Contract: any status is an answer, not an error; the only error is `ConnectionLost`. Redirects
    are not followed: the credential goes to one address alone. The stream is closed when its
    context is left. The client that uses a transport closes it.
    """

    async def request(self, call: Call) -> Reply:
        """Send an ordinary request and read the answer whole."""
        ...

    def stream(self, call: Call) -> AbstractAsyncContextManager[StreamReply]:
        """Open a stream."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


def check_head(status: int, headers: Mapping[str, str], *, media_type: str | None) -> None:
    """Let a success of this contract pass.

    Args:
        status: The HTTP status, below 400.
        headers: The answer's headers.
        media_type: What the body must be; `None` when there is none.

    Raises:
        ContractUnavailable: No towline server sent it (C2.1).
        VersionMismatch: One of another major version did.
    """
    contract = headers.get(CONTRACT_HEADER)
    where = f"The answer (status {status})"
    if status >= 300 or contract is None:
        raise ContractUnavailable(
            f"{where} has no {CONTRACT_HEADER!r} header, so no towline server sent it; check the "
            "address, and whether a proxy or a sign-in page of the network stands in between.",
            status=status,
            reason="missing_header",
        )
    if not contract.isdigit():
        raise ContractUnavailable(
            f"{where} has the contract {contract[:20]!r}, which is no version; check the address.",
            status=status,
            reason="bad_header",
        )
    if contract != CONTRACT_VERSION:
        raise VersionMismatch(
            f"The server speaks contract {contract[:20]!r}, this client {CONTRACT_VERSION!r}; "
            "update the older of the two."
        )
    found = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type is not None and found != media_type:
        raise ContractUnavailable(
            f"{where} is {found[:60]!r} where {media_type!r} was due; check the address.",
            status=status,
            reason="not_json",
        )


def check_reply(reply: Reply, operation: Operation) -> None:
    """Let a success pass; raise what any other answer means.

    Raises:
        ConnectionLost: A proxy answered with an error of its own (C4.7).
        ContractUnavailable: A success that no towline server sent.
        VersionMismatch: A server of another major version answered.
        Unauthorized: The credential was refused.
        CommandRejected: The server said no.
    """
    if reply.status < 400:
        wanted = "text/event-stream" if operation.stream else "application/json"
        has_body = operation.stream or operation.answer is not None
        check_head(reply.status, reply.headers, media_type=wanted if has_body else None)
        return
    if CONTRACT_HEADER not in reply.headers:
        raise ConnectionLost(
            _doubt(reply),
            status=reply.status,
            retry_after_s=_retry_after_s(reply.headers),
        )
    problem = _read_problem(reply)
    if reply.status == 401:
        raise Unauthorized(problem.detail, problem=problem)
    if problem.code == VersionMismatch.code:
        raise VersionMismatch(problem.detail)
    raise CommandRejected(problem)


def _doubt(reply: Reply) -> str:
    """What an error means that no towline server sent: the wrong address, or a proxy."""
    where = repr(reply.address) if reply.address else "the address"
    if reply.status < 500 and reply.status not in _OF_PROXIES:
        return (
            f"What answers at {where} (status {reply.status}) is no towline server; check the "
            "address, and the proxy if there is one."
        )
    return (
        f"Something between here and the server at {where} answered with status {reply.status}; "
        "try again, and check the address and the proxy if it stays."
    )


def _read_problem(reply: Reply) -> Problem:
    try:
        problem = _problem.decode(reply.body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        problem = Problem(
            title="unreadable problem",
            status=reply.status,
            detail=f"The server answered with status {reply.status} and no readable reason; "
            "look at its log.",
            code="internal_error",
            retry="same_request" if reply.status in (429, 503) else "none",
        )
    waits_s = problem.retry_after_s
    if waits_s is None:
        waits_s = _retry_after_s(reply.headers)
    if waits_s is not None:
        waits_s = min(max(waits_s, 0.0), MAX_WAIT_S)
    return msgspec.structs.replace(problem, status=reply.status, retry_after_s=waits_s)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "")
    return min(float(value[:9]), MAX_WAIT_S) if value.isascii() and value.isdigit() else None

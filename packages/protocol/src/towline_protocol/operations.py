"""The contract table: each HTTP operation once.

Routes, the client's calls, the TypeScript types and the reference page are made from it.
"""

from typing import Final

import msgspec

from towline_protocol.commands import (
    AnswerPermission,
    Claim,
    Claimed,
    CreateSession,
    Health,
    Identity,
    Interrupt,
    Interrupted,
    Pairing,
    PermissionAnswered,
    PromptAccepted,
    SendPrompt,
    SessionInfo,
    SessionList,
    ViewAnswer,
)

__all__ = ["CONTRACT_HEADER", "CONTRACT_VERSION", "OPERATIONS", "Operation"]

CONTRACT_HEADER: Final = "towline-contract"
"""The header that every answer carries (C2.1)."""
CONTRACT_VERSION: Final = "1"
"""The major number in it; another one is `VersionMismatch`."""


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
    """Query parameters that it reads."""
    faults: tuple[str, ...] = ()
    """Codes it may answer beside those that any operation may."""
    idempotent: bool = False
    """Whether it takes an `Idempotency-Key` (C2.5)."""
    stream: bool = False
    """Whether the answer is an event stream (C3)."""
    open: bool = False
    """Whether it answers without a credential."""


OPERATIONS: Final[dict[str, Operation]] = {
    row.name: row
    for row in (
        Operation(
            name="health",
            method="GET",
            path="/healthz",
            summary="Say that the server lives.",
            answer=Health,
            open=True,
        ),
        Operation(
            name="claim",
            method="POST",
            path="/api/auth/claim",
            summary="Turn a one-time code into a token.",
            request=Claim,
            answer=Claimed,
            faults=("unauthorized", "rate_limited"),
            open=True,
        ),
        Operation(
            name="pair",
            method="POST",
            path="/api/auth/pair",
            summary="Make a one-time code for another device.",
            answer=Pairing,
        ),
        Operation(
            name="me",
            method="GET",
            path="/api/auth/me",
            summary="Say who the caller is.",
            answer=Identity,
        ),
        Operation(
            name="logout",
            method="POST",
            path="/api/auth/logout",
            summary="Revoke the token the call came with.",
            status=204,
        ),
        Operation(
            name="create_session",
            method="POST",
            path="/api/sessions",
            summary="Begin a session, with a first prompt if one is given.",
            request=CreateSession,
            answer=SessionInfo,
            status=201,
            faults=("forbidden", "rejected"),
            idempotent=True,
        ),
        Operation(
            name="list_sessions",
            method="GET",
            path="/api/sessions",
            summary="List sessions, newest first.",
            query=("limit", "after"),
            answer=SessionList,
        ),
        Operation(
            name="get_session",
            method="GET",
            path="/api/sessions/{session}",
            summary="Read one row of the list.",
            answer=SessionInfo,
            faults=("not_found",),
        ),
        Operation(
            name="get_view",
            method="GET",
            path="/api/sessions/{session}/view",
            summary="Read a session as a screen shows it, with the number it stands at.",
            answer=ViewAnswer,
            faults=("not_found",),
        ),
        Operation(
            name="follow",
            method="GET",
            path="/api/sessions/{session}/events",
            summary="Follow a session: everything after the cursor, then live.",
            query=("after", "log", "reader"),
            faults=("not_found", "capacity_exceeded"),
            stream=True,
        ),
        Operation(
            name="send_prompt",
            method="POST",
            path="/api/sessions/{session}/prompts",
            summary="Say something; it is durable before this answers.",
            request=SendPrompt,
            answer=PromptAccepted,
            status=202,
            faults=("not_found", "gone", "conflict", "rejected", "capacity_exceeded"),
            idempotent=True,
        ),
        Operation(
            name="interrupt",
            method="POST",
            path="/api/sessions/{session}/interrupt",
            summary="Stop the running turn.",
            request=Interrupt,
            answer=Interrupted,
            status=202,
            faults=("not_found",),
        ),
        Operation(
            name="answer_permission",
            method="POST",
            path="/api/sessions/{session}/permissions/{permission}",
            summary="Decide an open permission request.",
            request=AnswerPermission,
            answer=PermissionAnswered,
            faults=("not_found", "gone", "conflict", "rejected"),
            idempotent=True,
        ),
    )
}
"""Name to operation: the rows that are built."""

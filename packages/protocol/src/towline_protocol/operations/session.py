"""Sessions."""

from typing import Final

from towline_protocol.commands.session import CreateSession, SessionInfo, SessionList
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
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
        large=True,
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
)
"""The rows of this part of the table."""

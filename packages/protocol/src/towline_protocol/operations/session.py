"""Sessions."""

from typing import Final

from towline_protocol.commands.session import (
    CloseSession,
    CreateSession,
    MarkRead,
    ReadMark,
    SessionDeleted,
    SessionInfo,
    SessionList,
    UpdateSession,
)
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
        faults=("forbidden", "rejected", "capacity_exceeded", "rate_limited"),
        idempotent=True,
        large=True,
    ),
    Operation(
        name="list_sessions",
        method="GET",
        path="/api/sessions",
        summary="List sessions, newest first.",
        query=("limit", "after", "search", "label", "archived", "needs"),
        answer=SessionList,
        faults=("precondition_failed",),
    ),
    Operation(
        name="get_session",
        method="GET",
        path="/api/sessions/{session}",
        summary="Read one row of the list.",
        answer=SessionInfo,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="update_session",
        method="PATCH",
        path="/api/sessions/{session}",
        summary="Change a session's title, model, mode, labels, or put it away.",
        request=UpdateSession,
        answer=SessionInfo,
        faults=("not_found", "gone", "precondition_failed", "rejected"),
        idempotent=True,
    ),
    Operation(
        name="mark_read",
        method="POST",
        path="/api/sessions/{session}/read",
        summary="Say how far you have read; the mark never goes back.",
        request=MarkRead,
        answer=ReadMark,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="close_session",
        method="POST",
        path="/api/sessions/{session}/close",
        summary="Stop what runs and take no more prompts; the session stays readable.",
        request=CloseSession,
        answer=SessionInfo,
        faults=("not_found", "gone"),
        idempotent=True,
    ),
    Operation(
        name="delete_session",
        method="DELETE",
        path="/api/sessions/{session}",
        summary="Close a session and remove its log.",
        answer=SessionDeleted,
        faults=("not_found", "gone"),
        idempotent=True,
    ),
)
"""The rows of this part of the table."""

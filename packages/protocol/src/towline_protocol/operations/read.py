"""What a session looks like."""

from typing import Final

from towline_protocol.commands.read import History, RequestList, ViewAnswer
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="get_view",
        method="GET",
        path="/api/sessions/{session}/view",
        summary="Read a session as a screen shows it, with the number it stands at.",
        answer=ViewAnswer,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="get_history",
        method="GET",
        path="/api/sessions/{session}/history",
        summary="Read messages that are older than those of the view.",
        query=("before", "limit"),
        answer=History,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="follow",
        method="GET",
        path="/api/sessions/{session}/events",
        summary="Follow a session: everything after the cursor, then live.",
        query=("after", "log", "reader"),
        faults=("not_found", "gone", "capacity_exceeded"),
        stream=True,
    ),
    Operation(
        name="list_requests",
        method="GET",
        path="/api/requests",
        summary="List what waits for the caller in all their sessions.",
        answer=RequestList,
    ),
    Operation(
        name="follow_all",
        method="GET",
        path="/api/events",
        summary="Follow the list of sessions; with `session` also that session, in one stream.",
        query=("session", "after", "log", "reader"),
        faults=("not_found", "gone", "capacity_exceeded"),
        stream=True,
    ),
)
"""The rows of this part of the table."""

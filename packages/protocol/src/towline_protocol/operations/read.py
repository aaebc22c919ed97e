"""What a session looks like."""

from typing import Final

from towline_protocol.commands.read import ViewAnswer
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
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
)
"""The rows of this part of the table."""

"""What turns did to files."""

from typing import Final

from towline_protocol.commands.checkpoint import (
    CheckpointList,
    RevertTurn,
    TurnDiff,
    TurnReverted,
)
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="list_checkpoints",
        method="GET",
        path="/api/sessions/{session}/checkpoints",
        summary="List the turns that files can go back to before, newest first.",
        query=("after", "limit"),
        answer=CheckpointList,
        faults=("not_found", "gone", "precondition_failed"),
    ),
    Operation(
        name="get_diff",
        method="GET",
        path="/api/sessions/{session}/turns/{turn}/diff",
        summary="Read what a turn did to files.",
        query=("after", "limit"),
        answer=TurnDiff,
        faults=("not_found", "gone", "precondition_failed"),
    ),
    Operation(
        name="revert_turn",
        method="POST",
        path="/api/sessions/{session}/turns/{turn}/revert",
        summary="Put files back to what they were before a turn; what others changed stays.",
        request=RevertTurn,
        answer=TurnReverted,
        faults=("not_found", "gone", "conflict", "rejected"),
        idempotent=True,
    ),
)
"""The rows of this part of the table."""

"""Tools that run in a client."""

from typing import Final

from towline_protocol.commands.client_call import (
    ClaimCall,
    ClientCall,
    ClientCallEnded,
    DeclareTools,
    ReportProgress,
    SendResult,
    ToolsDeclared,
)
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="declare_tools",
        method="PUT",
        path="/api/sessions/{session}/tools",
        summary="Say which tools a client runs, in place of those that it declared before.",
        request=DeclareTools,
        answer=ToolsDeclared,
        faults=("not_found", "gone", "rejected"),
        idempotent=True,
    ),
    Operation(
        name="claim_call",
        method="POST",
        path="/api/sessions/{session}/calls/{call}/claim",
        summary="Take a call before running it; only one client can.",
        request=ClaimCall,
        answer=ClientCall,
        faults=("not_found", "gone", "conflict", "rejected"),
        idempotent=True,
    ),
    Operation(
        name="report_progress",
        method="POST",
        path="/api/sessions/{session}/calls/{call}/progress",
        summary="Show how far a taken call is.",
        request=ReportProgress,
        status=204,
        faults=("not_found", "gone", "conflict"),
    ),
    Operation(
        name="send_result",
        method="POST",
        path="/api/sessions/{session}/calls/{call}/result",
        summary="Say what a taken call came to.",
        request=SendResult,
        answer=ClientCallEnded,
        faults=("not_found", "gone", "conflict", "rejected"),
        idempotent=True,
        large=True,
    ),
)
"""The rows of this part of the table."""

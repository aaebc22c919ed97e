"""What people say."""

from typing import Final

from towline_protocol.commands.talk import Interrupt, Interrupted, PromptAccepted, SendPrompt
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
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
        large=True,
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
)
"""The rows of this part of the table."""

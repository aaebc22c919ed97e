"""What people say."""

from typing import Final

from towline_protocol.commands.session import SessionInfo
from towline_protocol.commands.talk import (
    ForkSession,
    Interrupt,
    Interrupted,
    PromptAccepted,
    QueueResumed,
    Resend,
    SendPrompt,
    Withdrawn,
)
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
        faults=("not_found", "gone", "conflict", "rejected", "capacity_exceeded", "rate_limited"),
        idempotent=True,
        large=True,
    ),
    Operation(
        name="interrupt",
        method="POST",
        path="/api/sessions/{session}/interrupt",
        summary="Stop the running turn; its end is durable before this answers.",
        request=Interrupt,
        answer=Interrupted,
        status=202,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="withdraw_prompt",
        method="POST",
        path="/api/sessions/{session}/prompts/{prompt}/withdraw",
        summary="Take back a prompt that waits.",
        answer=Withdrawn,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="resume_queue",
        method="POST",
        path="/api/sessions/{session}/queue/resume",
        summary="Run the prompts that a stop holds back.",
        answer=QueueResumed,
        faults=("not_found", "gone", "capacity_exceeded"),
    ),
    Operation(
        name="retry",
        method="POST",
        path="/api/sessions/{session}/retry",
        summary="Undo the last turn and say its prompt again.",
        answer=PromptAccepted,
        status=202,
        faults=("not_found", "gone", "conflict", "rejected", "capacity_exceeded", "rate_limited"),
        idempotent=True,
    ),
    Operation(
        name="resend",
        method="POST",
        path="/api/sessions/{session}/turns/{turn}/resend",
        summary="Go back to before a turn and say something else in its place.",
        request=Resend,
        answer=PromptAccepted,
        status=202,
        faults=("not_found", "gone", "conflict", "rejected", "capacity_exceeded", "rate_limited"),
        idempotent=True,
        large=True,
    ),
    Operation(
        name="compact_session",
        method="POST",
        path="/api/sessions/{session}/compact",
        summary="Sum the conversation up, to make room; an event tells what came of it.",
        answer=SessionInfo,
        status=202,
        faults=("not_found", "gone", "conflict", "capacity_exceeded", "rate_limited"),
    ),
    Operation(
        name="fork_session",
        method="POST",
        path="/api/sessions/{session}/fork",
        summary="Begin a new session that goes on from a turn of this one.",
        request=ForkSession,
        answer=SessionInfo,
        status=201,
        faults=("not_found", "gone", "conflict", "rejected", "capacity_exceeded"),
        idempotent=True,
    ),
)
"""The rows of this part of the table."""

"""Answers to what a turn asks."""

from typing import Final

from towline_protocol.commands.answer import (
    AnswerPermission,
    AnswerQuestion,
    PermissionAnswered,
    QuestionAnswered,
)
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
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
    Operation(
        name="answer_question",
        method="POST",
        path="/api/sessions/{session}/questions/{question}",
        summary="Answer an open question.",
        request=AnswerQuestion,
        answer=QuestionAnswered,
        faults=("not_found", "gone", "conflict", "rejected"),
        idempotent=True,
    ),
)
"""The rows of this part of the table."""

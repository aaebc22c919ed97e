"""What is open in a turn that ends before its time: closed, piece by piece (C1.23). Pure."""

from collections.abc import Iterator

from towline_protocol import (
    DENY,
    INTERRUPTED,
    MessageDiscarded,
    PermissionResolved,
    QuestionResolved,
    SessionView,
    StoredEvent,
    Text,
    ToolEnded,
)
from towline_server.auth.reserved_name import SERVER

__all__ = ["close_parts"]


def close_parts(view: SessionView, reason: str) -> Iterator[StoredEvent]:
    """The events that close what is open, for right before the turn's end.

    Args:
        view: The session as it stands.
        reason: Why messages are given up.
    """
    for message in view.open_messages:
        yield MessageDiscarded(message=message.id, reason=reason)
    for request in view.permissions:
        yield PermissionResolved(permission=request.permission, option=DENY, by=SERVER)
    for question in view.questions:
        yield QuestionResolved(question=question.question, answers={}, by=SERVER)
    for call in view.open_calls:
        yield ToolEnded(
            call=call.call, status="unknown", content=(Text(text=INTERRUPTED),), is_error=True
        )

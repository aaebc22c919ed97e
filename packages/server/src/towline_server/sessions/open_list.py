"""What waits for a person, or for a client of theirs, in all their sessions: one list."""

from collections.abc import Iterable
from typing import Final

from towline_protocol import RequestRow
from towline_server.sessions.session import Session

__all__ = ["MAX_ROWS", "list_open"]

MAX_ROWS: Final = 200
"""Rows of the list: more than anybody can answer."""

_LAST: Final = "~"  # sorts behind every time


def list_open(sessions: Iterable[Session]) -> tuple[RequestRow, ...]:
    """The open requests of some sessions, what ends first before the rest."""
    rows = [row for session in sessions for row in _rows(session)]
    return tuple(sorted(rows, key=_place)[:MAX_ROWS])


def _rows(session: Session) -> list[RequestRow]:
    view, id_ = session.log.view, session.log.session
    permissions = [
        RequestRow(session=id_, title=view.title, kind="permission", permission=request)
        for request in view.permissions
    ]
    questions = [
        RequestRow(session=id_, title=view.title, kind="question", question=question)
        for question in view.questions
    ]
    calls = [
        RequestRow(session=id_, title=view.title, kind="call", call=call)
        for call in view.open_calls
        if call.expires_at is not None  # it was offered to clients
    ]
    return [*permissions, *questions, *calls]


def _place(row: RequestRow) -> tuple[str, str]:
    """By deadline, then by age: ids sort by their time."""
    if row.permission is not None:
        return row.permission.expires_at, row.permission.permission
    if row.call is not None:
        return row.call.expires_at or _LAST, row.call.call
    assert row.question is not None
    return row.question.expires_at or _LAST, row.question.question

"""Answers to what a turn asks."""

from typing import Final, cast

from towline_protocol import (
    AnswerPermission,
    AnswerQuestion,
    PermissionAnswered,
    PermissionId,
    QuestionAnswered,
    QuestionId,
)
from towline_server.api.handlers.call import MAX_NOTE, Call, Handler, check_length

__all__ = ["HANDLERS"]


async def _answer_permission(call: Call) -> PermissionAnswered:
    body = cast("AnswerPermission", call.body)
    check_length(MAX_NOTE, note=body.note)
    session = await call.service.sessions.get(call.user, call.session)
    option = await session.requests.resolve(
        PermissionId(call.request.path_params["permission"]),
        option=body.option,
        digest=body.digest,
        by=call.user,
        note=body.note,
        remember=call.remember,
    )
    return PermissionAnswered(option=option)


async def _answer_question(call: Call) -> QuestionAnswered:
    body = cast("AnswerQuestion", call.body)
    session = await call.service.sessions.get(call.user, call.session)
    answers = await session.questions.resolve(
        QuestionId(call.request.path_params["question"]),
        body.answers,
        by=call.user,
        remember=call.remember,
    )
    return QuestionAnswered(answers=answers)


HANDLERS: Final[dict[str, Handler]] = {
    "answer_permission": _answer_permission,
    "answer_question": _answer_question,
}
"""Operation name to handler."""

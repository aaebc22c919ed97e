"""Answers to what a turn asks."""

from typing import Final, cast

from towline_protocol import AnswerPermission, PermissionAnswered, PermissionId
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


HANDLERS: Final[dict[str, Handler]] = {
    "answer_permission": _answer_permission,
}
"""Operation name to handler."""

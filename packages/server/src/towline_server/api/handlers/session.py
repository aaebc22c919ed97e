"""Sessions: made, listed, read."""

from typing import Final, cast

from towline_protocol import CreateSession, SessionInfo, SessionList
from towline_server.api.handlers.call import (
    MAX_PATH,
    MAX_WORD,
    Call,
    Handler,
    check_content,
    check_length,
    read_number,
)

__all__ = ["HANDLERS"]

_PAGE: Final = 50
_MAX_PAGE: Final = 200


async def _create_session(call: Call) -> SessionInfo:
    body = cast("CreateSession", call.body)
    check_length(MAX_PATH, cwd=body.cwd)
    check_length(
        MAX_WORD,
        agent=body.agent,
        model=body.model,
        title=body.title,
        mode=body.mode,
        key=body.key,
    )
    if body.prompt is not None:
        check_content(body.prompt)
    session = await call.service.sessions.create(
        call.user,
        agent=body.agent,
        model=body.model,
        title=body.title,
        cwd=body.cwd,
        mode=body.mode,
        prompt=body.prompt,
        key=body.key,
        remember=call.remember,
    )
    return session.info()


async def _list_sessions(call: Call) -> SessionList:
    query = call.request.query_params
    limit = read_number(query.get("limit"), _PAGE, _MAX_PAGE)
    return await call.service.sessions.page(call.user, limit, query.get("after"))


async def _get_session(call: Call) -> SessionInfo:
    return (await call.service.sessions.get(call.user, call.session)).info()


HANDLERS: Final[dict[str, Handler]] = {
    "create_session": _create_session,
    "list_sessions": _list_sessions,
    "get_session": _get_session,
}
"""Operation name to handler."""

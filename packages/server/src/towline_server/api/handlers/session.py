"""Sessions: made, listed, changed, ended."""

from typing import Final, cast

from towline_protocol import (
    CloseSession,
    CreateSession,
    MarkRead,
    ReadMark,
    SessionDeleted,
    SessionInfo,
    SessionList,
    SessionUpdated,
    UpdateSession,
)
from towline_server.api.handlers.call import (
    MAX_NOTE,
    MAX_PATH,
    MAX_WORD,
    Call,
    Handler,
    Tagged,
    check_length,
    check_limits,
    take_content,
)
from towline_server.sessions.inbox import Said
from towline_server.sessions.settings import settings_tag
from towline_server.store.records import SessionFilter, fold_words

__all__ = ["HANDLERS"]

_PAGE: Final = 50


async def _create_session(call: Call) -> Tagged:
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
    check_limits(body.limits)
    prompt = None if body.prompt is None else await _first_prompt(call, body)
    session = await call.service.sessions.create(
        call.user, body, first=prompt, remember=call.remember
    )
    return _tagged(session.info())


async def _first_prompt(call: Call, body: CreateSession) -> Said:
    assert body.prompt is not None
    cwd = call.service.projects.folder(body.cwd)
    taken = await take_content(call, body.prompt, cwd=cwd)
    return Said(content=taken.content, notices=taken.notices, key=body.key)


async def _list_sessions(call: Call) -> SessionList:
    only = SessionFilter(
        archived=call.flag("archived"),
        needs=call.flag("needs"),
        label=call.text("label") or "",
        words=tuple(fold_words(call.text("search") or "").split()),
    )
    limit = call.number("limit", _PAGE)
    return await call.service.sessions.page(call.user, limit, call.text("after"), only)


async def _get_session(call: Call) -> Tagged:
    return _tagged(await call.service.sessions.info(call.user, call.session))


async def _update_session(call: Call) -> Tagged:
    body = cast("UpdateSession", call.body)
    check_length(MAX_WORD, title=body.title, model=body.model, mode=body.mode)
    wanted = SessionUpdated(
        title=body.title,
        model=body.model,
        mode=body.mode,
        labels=body.labels,
        archived=body.archived,
    )
    info = await call.service.sessions.update(
        call.user, call.session, wanted, check=call.check_match, remember=call.remember
    )
    return _tagged(info)


async def _mark_read(call: Call) -> ReadMark:
    body = cast("MarkRead", call.body)
    return ReadMark(seq=await call.service.sessions.mark_read(call.user, call.session, body.seq))


async def _close_session(call: Call) -> SessionInfo:
    body = cast("CloseSession", call.body)
    check_length(MAX_NOTE, reason=body.reason)
    return await call.service.sessions.close_session(
        call.user, call.session, reason=body.reason, remember=call.remember
    )


async def _delete_session(call: Call) -> SessionDeleted:
    return await call.service.sessions.delete_session(
        call.user, call.session, remember=call.remember
    )


def _tagged(info: SessionInfo) -> Tagged:
    return Tagged(info, settings_tag(info))


HANDLERS: Final[dict[str, Handler]] = {
    "create_session": _create_session,
    "list_sessions": _list_sessions,
    "get_session": _get_session,
    "update_session": _update_session,
    "mark_read": _mark_read,
    "close_session": _close_session,
    "delete_session": _delete_session,
}
"""Operation name to handler."""

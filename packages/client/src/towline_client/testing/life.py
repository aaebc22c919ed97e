"""What a scripted server answers to calls about a session as a whole."""

import zlib
from typing import Final

import msgspec

from towline_client.testing.log import ScriptedSession, time_at
from towline_client.testing.reply import give, read_body, refuse
from towline_client.testing.stage import Handler, Stage
from towline_client.transport import Call, Reply
from towline_protocol import (
    CloseSession,
    History,
    MarkRead,
    PromptWithdrawn,
    ReadMark,
    SessionClosed,
    SessionDeleted,
    SessionId,
    SessionInfo,
    SessionList,
    SessionUpdated,
    UpdateSession,
    ViewAnswer,
    empty_view,
    encode,
    reduce,
)

__all__ = ["LIFE", "list_sessions"]

_PAGE: Final = 50
_MOST: Final = 100


def list_sessions(stage: Stage, call: Call) -> Reply:
    """One page of the list; an unknown cursor counts as none."""
    query = call.query
    words = query.get("search", "").casefold().split()

    def fits(row: SessionInfo) -> bool:
        text = " ".join([row.title or "", *row.labels]).casefold()
        return (
            row.archived == (query.get("archived") == "true")
            and (query.get("needs") != "true" or row.pending > 0)
            and ("label" not in query or query["label"] in row.labels)
            and all(word in text for word in words)
        )

    rows = [row for row in stage.rows() if fits(row)]
    ids = [row.id for row in rows]
    after = SessionId(query.get("after", ""))
    start = ids.index(after) + 1 if after in ids else 0
    page = tuple(rows[start : start + int(query.get("limit", _PAGE))])
    more = start + len(page) < len(rows)
    return give(call, SessionList(sessions=page, next=page[-1].id if more else None))


def _get_session(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    return give(call, session.info, tag=_tag(session.info))


def _update_session(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    if call.headers.get("if-match", _tag(session.info)) != _tag(session.info):
        return refuse("precondition_failed", "Its settings are others by now; read them again.")
    wanted = read_body(call, UpdateSession)
    changes = {
        name: value
        for name in UpdateSession.__struct_fields__
        if (value := getattr(wanted, name)) not in (None, getattr(session.view, name))
    }
    if changes:
        session.emit(msgspec.convert(changes, SessionUpdated))
    return give(call, session.info, tag=_tag(session.info))


def _tag(info: SessionInfo) -> str:
    settings = [info.title, info.model, info.mode, info.labels, info.archived]
    return f'"{zlib.crc32(encode(settings)):08x}"'


def _mark_read(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    told = min(read_body(call, MarkRead).seq, session.view.seq)
    session.read_seq = max(session.read_seq, told)
    stage.feed.tell(session.info)
    return give(call, ReadMark(seq=session.read_seq))


def _close_session(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    _close(stage, session, read_body(call, CloseSession).reason)
    return give(call, session.info)


def _delete_session(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    _close(stage, session, "deleted")
    del stage.sessions[session.id]
    stage.deleted.add(session.id)
    stage.feed.drop(session.id)
    return give(call, SessionDeleted(session=session.id, until=time_at(9000)))


def _close(stage: Stage, session: ScriptedSession, reason: str) -> None:
    if session.view.closed is not None:
        return
    stage.turns.stop(session, reason)
    for queued in session.view.queue:
        session.emit(PromptWithdrawn(prompt=queued.prompt))
    session.emit(SessionClosed(reason=reason))


def _get_view(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    view = ViewAnswer(log=session.log, seq=len(session.events), view=session.view)
    return give(call, view)


def _get_history(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    before = int(call.query.get("before", len(session.events) + 1))
    limit = min(int(call.query.get("limit", _PAGE)), _MOST)
    view = empty_view()
    for envelope in session.events[: before - 1]:
        view = reduce(view, envelope)
    page = view.messages[-limit:]
    more = view.older or len(page) < len(view.messages)
    turns = {message.turn for message in page}
    calls = tuple(told for told in (*view.calls, *view.open_calls) if told.turn in turns)
    return give(call, History(messages=page, calls=calls, next=page[0].seq if more else None))


LIFE: Final[dict[str, Handler]] = {
    "get_session": _get_session,
    "update_session": _update_session,
    "mark_read": _mark_read,
    "close_session": _close_session,
    "delete_session": _delete_session,
    "get_view": _get_view,
    "get_history": _get_history,
}
"""Operation name to what answers it."""

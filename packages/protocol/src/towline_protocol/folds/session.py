"""The reducer's part for sessions, their prompts, their plan and their notices."""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from towline_protocol.content import Block, block_text
from towline_protocol.events import (
    Compacted,
    Context,
    Envelope,
    FilesReverted,
    Notice,
    PromptAdmitted,
    PromptDelivered,
    PromptWithdrawn,
    Reverted,
    SessionClosed,
    SessionCreated,
    SessionUpdated,
    TodosUpdated,
)
from towline_protocol.folds.entry import add_entry, add_mark
from towline_protocol.ids import TurnId
from towline_protocol.view import Mark, MessageView, NoticeView, QueuedPrompt, SessionView

__all__ = ["FOLDS", "MAX_NOTICES", "TITLE_CHARS"]

MAX_NOTICES: Final = 20
"""Notices that a view holds."""
TITLE_CHARS: Final = 60
"""Code points of a prompt that become the title (D16)."""

_SPACE: Final = "[ \\t\\n\\r\\f\\v\\u0085\\u2028\\u2029]+"

_set = msgspec.structs.replace


def _created(view: SessionView, envelope: Envelope, event: SessionCreated) -> SessionView:
    return _set(
        view,
        session=envelope.session,
        agent=event.agent,
        model=event.model,
        mode=event.mode,
        title=event.title,
        cwd=event.cwd,
        labels=event.labels,
        parent=event.parent,
        created=envelope.time,
    )


def _updated(view: SessionView, envelope: Envelope, event: SessionUpdated) -> SessionView:
    del envelope
    return _set(
        view,
        title=view.title if event.title is None else event.title,
        title_truncated=view.title_truncated and event.title is None,
        model=view.model if event.model is None else event.model,
        mode=view.mode if event.mode is None else event.mode,
        archived=view.archived if event.archived is None else event.archived,
        labels=view.labels if event.labels is None else event.labels,
    )


def _closed(view: SessionView, envelope: Envelope, event: SessionClosed) -> SessionView:
    view = _set(view, closed=event.reason)
    return add_mark(view, envelope, Mark(kind="closed", text=event.reason))


def _admitted(view: SessionView, envelope: Envelope, event: PromptAdmitted) -> SessionView:
    if view.title is None:
        view = _titled(view, event.content)
    queued = QueuedPrompt(
        prompt=event.prompt,
        content=event.content,
        when=event.when,
        key=event.key,
        time=envelope.time,
    )
    ahead = min(max(event.position, 0), len(view.queue))  # a retry goes before what waits
    return _set(view, queue=(*view.queue[:ahead], queued, *view.queue[ahead:]))


def _titled(view: SessionView, content: tuple[Block, ...]) -> SessionView:
    words = re.sub(_SPACE, " ", block_text(content)).strip(" ")
    if not words:
        return view
    return _set(view, title=words[:TITLE_CHARS], title_truncated=len(words) > TITLE_CHARS)


def _delivered(view: SessionView, envelope: Envelope, event: PromptDelivered) -> SessionView:
    waited = next((queued for queued in view.queue if queued.prompt == event.prompt), None)
    if waited is None:
        return view
    entry = MessageView(
        seq=envelope.seq or 0,
        role="user",
        id=event.prompt,
        turn=event.turn,
        time=waited.time,
        content=waited.content,
        key=waited.key,
    )
    queue = tuple([queued for queued in view.queue if queued is not waited])
    return add_entry(_set(view, queue=queue), entry)


def _withdrawn(view: SessionView, envelope: Envelope, event: PromptWithdrawn) -> SessionView:
    del envelope
    return _set(view, queue=tuple([q for q in view.queue if q.prompt != event.prompt]))


def _compacted(view: SessionView, envelope: Envelope, event: Compacted) -> SessionView:
    if event.usage is not None:  # a model was asked for the summary
        cost = None if view.cost is None or event.cost is None else view.cost + event.cost
        between = envelope.turn is None  # the turn's own sum has what was asked in it
        usage = view.usage + event.usage if between else view.usage
        view = _set(view, cost=cost, usage=usage)
    window = None if view.context is None else view.context.window
    view = _set(view, context=Context(used=event.after_tokens, window=window))
    mark = Mark(
        kind="compacted",
        text=event.summary or "",
        before_tokens=event.before_tokens,
        after_tokens=event.after_tokens,
    )
    return add_mark(view, envelope, mark)


def _reverted(view: SessionView, envelope: Envelope, event: Reverted) -> SessionView:
    first = _first_undone(view, event.to_turn)
    messages = tuple(
        [
            entry if place < first or entry.undone else _set(entry, undone=True)
            for place, entry in enumerate(view.messages)
        ]
    )
    mark = Mark(
        kind="reverted",
        text=event.to_turn,
        files=event.files,
        not_reverted=event.not_reverted,
    )
    return add_mark(_set(view, messages=messages), envelope, mark)


def _files_reverted(view: SessionView, envelope: Envelope, event: FilesReverted) -> SessionView:
    conflicts = [f"{conflict.path}: {conflict.what}" for conflict in event.conflicts]
    mark = Mark(
        kind="files_reverted",
        text=event.turn,
        files=event.files,
        not_reverted=(*conflicts, *event.unkept),
    )
    return add_mark(view, envelope, mark)


def _first_undone(view: SessionView, turn: TurnId) -> int:
    """The place of the first entry that a revert takes back.

    As a transcript does, it looks only at what is not undone yet. A turn that the view holds
    nothing of began before all it holds, when it holds not everything.
    """
    for place, entry in enumerate(view.messages):
        if entry.turn == turn and not entry.undone:
            return place
    known = not view.older or any(entry.turn == turn for entry in view.messages)
    return len(view.messages) if known else 0


def _todos(view: SessionView, envelope: Envelope, event: TodosUpdated) -> SessionView:
    del envelope
    return _set(view, todos=event.todos)


def _notice(view: SessionView, envelope: Envelope, event: Notice) -> SessionView:
    notice = NoticeView(
        seq=envelope.seq or 0, code=event.code, message=event.message, scope=event.scope
    )
    notices = (*view.notices, notice)
    older = view.older_notices or len(notices) > MAX_NOTICES
    return _set(view, notices=notices[-MAX_NOTICES:], older_notices=older)


FOLDS: Final[dict[type, Callable[[SessionView, Envelope, Any], SessionView]]] = {
    SessionCreated: _created,
    SessionUpdated: _updated,
    SessionClosed: _closed,
    PromptAdmitted: _admitted,
    PromptDelivered: _delivered,
    PromptWithdrawn: _withdrawn,
    Compacted: _compacted,
    Reverted: _reverted,
    FilesReverted: _files_reverted,
    TodosUpdated: _todos,
    Notice: _notice,
}
"""Event type to its fold."""

"""The reducer's part for sessions, prompts, turns and messages."""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from towline_protocol.content import Block, Text, Thinking, ToolCall, block_text
from towline_protocol.events import (
    Compacted,
    Envelope,
    Fallback,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    Notice,
    PromptAdmitted,
    PromptDelivered,
    PromptWithdrawn,
    Reverted,
    SessionClosed,
    SessionCreated,
    SessionUpdated,
    StepEnded,
    StepStarted,
    TextDelta,
    ThinkingDelta,
    TodosUpdated,
    ToolCallDelta,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    TurnStarted,
    Waiting,
)
from towline_protocol.frames import Partial
from towline_protocol.ids import CallId, TurnId
from towline_protocol.view import (
    EndedTurn,
    Mark,
    MessageView,
    OpenMessage,
    QueuedPrompt,
    SessionView,
    TurnView,
)

__all__ = ["FOLDS", "MAX_MESSAGES", "MAX_NOTICES", "MAX_OPEN_BLOCKS", "TITLE_CHARS", "partial"]

MAX_MESSAGES: Final = 200
"""Finished entries that a view holds (D4)."""
MAX_NOTICES: Final = 20
"""Notices that a view holds."""
TITLE_CHARS: Final = 60
"""Code points of a prompt that become the title (D16)."""

MAX_OPEN_BLOCKS: Final = 1024
"""Blocks of an open message: a peer cannot make a view grow by naming a far block."""

_SPACE: Final = "[ \\t\\n\\r\\f\\v\\u0085\\u2028\\u2029]+"
_NO_TURN: Final = TurnId("")

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
        created=envelope.time,
    )


def _updated(view: SessionView, envelope: Envelope, event: SessionUpdated) -> SessionView:
    del envelope
    return _set(
        view,
        title=view.title if event.title is None else event.title,
        model=view.model if event.model is None else event.model,
        mode=view.mode if event.mode is None else event.mode,
        archived=view.archived if event.archived is None else event.archived,
        labels=view.labels if event.labels is None else event.labels,
    )


def _closed(view: SessionView, envelope: Envelope, event: SessionClosed) -> SessionView:
    return _mark(_set(view, closed=event.reason), envelope, Mark(kind="closed", text=event.reason))


def _admitted(view: SessionView, envelope: Envelope, event: PromptAdmitted) -> SessionView:
    queued = QueuedPrompt(
        prompt=event.prompt,
        content=event.content,
        when=event.when,
        key=event.key,
        time=envelope.time,
    )
    title = view.title
    if title is None:
        words = re.sub(_SPACE, " ", block_text(event.content)).strip(" ")
        title = words[:TITLE_CHARS] or None
    ahead = min(max(event.position, 0), len(view.queue))  # a retry goes before what waits
    queue = (*view.queue[:ahead], queued, *view.queue[ahead:])
    return _set(view, queue=queue, title=title)


def _delivered(view: SessionView, envelope: Envelope, event: PromptDelivered) -> SessionView:
    waiting = [queued for queued in view.queue if queued.prompt == event.prompt]
    view = _set(view, queue=tuple(q for q in view.queue if q.prompt != event.prompt))
    if not waiting:
        return view
    return _append(
        view,
        MessageView(
            seq=envelope.seq or 0,
            role="user",
            id=event.prompt,
            turn=event.turn,
            time=waiting[0].time,
            content=waiting[0].content,
            key=waiting[0].key,
        ),
    )


def _withdrawn(view: SessionView, envelope: Envelope, event: PromptWithdrawn) -> SessionView:
    del envelope
    return _set(view, queue=tuple(q for q in view.queue if q.prompt != event.prompt))


def _turn_started(view: SessionView, envelope: Envelope, event: TurnStarted) -> SessionView:
    if envelope.turn is None:
        return view
    turn = TurnView(id=envelope.turn, prompt=event.prompt, model=event.model, started=envelope.time)
    return _set(view, turn=turn)


def _turn_resumed(view: SessionView, envelope: Envelope, event: TurnResumed) -> SessionView:
    del envelope
    if view.turn is None:
        return view
    return _set(view, turn=_set(view.turn, attempt=event.attempt))


def _completed(view: SessionView, envelope: Envelope, event: TurnCompleted) -> SessionView:
    view = _ended(
        _set(view, fault=None),
        envelope,
        EndedTurn(
            id=envelope.turn or _NO_TURN,
            outcome="completed",
            stop_reason=event.stop_reason,
            time=envelope.time,
            usage=event.usage,
            cost=event.cost,
            summary=event.summary,
        ),
    )
    if event.stop_reason == "end_turn":
        return view
    return _mark(view, envelope, Mark(kind="turn_limited", text=event.stop_reason))


def _failed(view: SessionView, envelope: Envelope, event: TurnFailed) -> SessionView:
    view = _ended(
        _set(view, fault=event.fault),
        envelope,
        EndedTurn(
            id=envelope.turn or _NO_TURN,
            outcome="failed",
            time=envelope.time,
            usage=event.usage,
            fault=event.fault,
        ),
    )
    mark = Mark(kind="turn_failed", text=event.fault.message, fault=event.fault)
    return _mark(view, envelope, mark)


def _cancelled(view: SessionView, envelope: Envelope, event: TurnCancelled) -> SessionView:
    view = _ended(
        view,
        envelope,
        EndedTurn(
            id=envelope.turn or _NO_TURN,
            outcome="cancelled",
            time=envelope.time,
            usage=event.usage,
        ),
    )
    return _mark(view, envelope, Mark(kind="turn_cancelled", text=event.reason))


def _ended(view: SessionView, envelope: Envelope, ended: EndedTurn) -> SessionView:
    """What is common to every end: nothing of the turn stays open (C1.23)."""
    del envelope
    left = tuple(
        _set(call, status="unknown", progress=None, output="", output_at=0)
        for call in view.open_calls
    )
    return _set(
        view,
        turn=None,
        last_turn=ended,
        open_messages=(),
        open_calls=(),
        calls=(*view.calls, *left),
        permissions=(),
        questions=(),
        usage=view.usage + ended.usage,
    )


def _step_started(view: SessionView, envelope: Envelope, event: StepStarted) -> SessionView:
    del envelope
    if view.turn is None:
        return view
    step = view.turn.step + (1 if event.attempt == 1 else 0)
    return _set(view, turn=_set(view.turn, step=step))


def _step_ended(view: SessionView, envelope: Envelope, event: StepEnded) -> SessionView:
    del envelope
    cost = None if view.cost is None or event.cost is None else view.cost + event.cost
    return _set(view, cost=cost, context=event.context or view.context)


def _waiting(view: SessionView, envelope: Envelope, event: Waiting) -> SessionView:
    del envelope
    return _set(view, waiting=event)


def _fallback(view: SessionView, envelope: Envelope, event: Fallback) -> SessionView:
    mark = Mark(kind="fallback", text=f"{event.from_} → {event.to}", fault=event.fault)
    return _mark(view, envelope, mark)


def _message_started(view: SessionView, envelope: Envelope, event: MessageStarted) -> SessionView:
    opened = OpenMessage(id=event.message, turn=envelope.turn, time=envelope.time)
    kept = tuple(message for message in view.open_messages if message.id != event.message)
    return _set(view, open_messages=(*kept, opened))


def _text_delta(
    view: SessionView, envelope: Envelope, event: TextDelta | ThinkingDelta | ToolCallDelta
) -> SessionView:
    del envelope
    for place, message in enumerate(view.open_messages):
        if message.id == event.message:
            content = _grown(message.content, event)
            if content is None:
                return _set(view, lost=True)
            opened = list(view.open_messages)
            opened[place] = _set(message, content=content)
            return _set(view, open_messages=tuple(opened))
    return view  # ended or discarded already: its truth has been told


def _grown(
    content: tuple[Block, ...], event: TextDelta | ThinkingDelta | ToolCallDelta
) -> tuple[Block, ...] | None:
    """The blocks with the piece put in; `None` for a hole (C1.5)."""
    if not 0 <= event.block < MAX_OPEN_BLOCKS:
        return None
    blocks = list(content)
    while len(blocks) <= event.block:
        blocks.append(_blank(event))
    block = blocks[event.block]
    if isinstance(block, Text) and not block.text:
        block = _blank(event)  # a place holder takes the kind of its first piece
    written = block.arguments if isinstance(block, ToolCall) else getattr(block, "text", "")
    if event.at > len(written):
        return None
    piece = event.text[len(written) - event.at :]
    match block:
        case Text():
            blocks[event.block] = Text(text=block.text + piece)
        case Thinking():
            blocks[event.block] = _set(block, text=block.text + piece)
        case ToolCall():
            blocks[event.block] = _set(block, arguments=block.arguments + piece)
        case _:
            return None
    return tuple(blocks)


def _blank(event: TextDelta | ThinkingDelta | ToolCallDelta) -> Block:
    match event:
        case TextDelta():
            return Text(text="")
        case ThinkingDelta():
            return Thinking(text="")
        case ToolCallDelta():
            return ToolCall(id=CallId(""), name="", arguments="")


def _message_ended(view: SessionView, envelope: Envelope, event: MessageEnded) -> SessionView:
    kept = tuple(message for message in view.open_messages if message.id != event.message)
    return _append(
        _set(view, open_messages=kept),
        MessageView(
            seq=envelope.seq or 0,
            role="assistant",
            id=event.message,
            turn=envelope.turn,
            time=envelope.time,
            content=event.content,
            cut=event.cut,
        ),
    )


def _discarded(view: SessionView, envelope: Envelope, event: MessageDiscarded) -> SessionView:
    del envelope
    kept = tuple(message for message in view.open_messages if message.id != event.message)
    return _set(view, open_messages=kept)


def _compacted(view: SessionView, envelope: Envelope, event: Compacted) -> SessionView:
    return _mark(view, envelope, Mark(kind="compacted", text=event.summary or ""))


def _reverted(view: SessionView, envelope: Envelope, event: Reverted) -> SessionView:
    return _mark(view, envelope, Mark(kind="reverted", text=event.to_turn))


def _todos(view: SessionView, envelope: Envelope, event: TodosUpdated) -> SessionView:
    del envelope
    return _set(view, todos=event.todos)


def _notice(view: SessionView, envelope: Envelope, event: Notice) -> SessionView:
    del envelope
    return _set(view, notices=(*view.notices, event)[-MAX_NOTICES:])


def _mark(view: SessionView, envelope: Envelope, mark: Mark) -> SessionView:
    return _append(
        view,
        MessageView(
            seq=envelope.seq or 0,
            role="mark",
            turn=envelope.turn,
            time=envelope.time,
            mark=mark,
        ),
    )


def _append(view: SessionView, message: MessageView) -> SessionView:
    """One more entry; the oldest one, and its calls, make room."""
    messages = (*view.messages, message)
    if len(messages) <= MAX_MESSAGES:
        return _set(view, messages=messages)
    gone = {block.id for block in messages[0].content if isinstance(block, ToolCall)}
    calls = tuple(c for c in view.calls if c.call not in gone) if gone else view.calls
    return _set(view, messages=messages[1:], calls=calls, older=True)


def partial(view: SessionView, frame: Partial) -> SessionView:
    """An open message as it stands: replaces what was built from deltas."""
    if frame.message is None:
        return view
    opened = [
        _set(message, content=frame.content) if message.id == frame.message else message
        for message in view.open_messages
    ]
    return _set(view, open_messages=tuple(opened))


FOLDS: Final[dict[type, Callable[[SessionView, Envelope, Any], SessionView]]] = {
    SessionCreated: _created,
    SessionUpdated: _updated,
    SessionClosed: _closed,
    PromptAdmitted: _admitted,
    PromptDelivered: _delivered,
    PromptWithdrawn: _withdrawn,
    TurnStarted: _turn_started,
    TurnResumed: _turn_resumed,
    TurnCompleted: _completed,
    TurnFailed: _failed,
    TurnCancelled: _cancelled,
    StepStarted: _step_started,
    StepEnded: _step_ended,
    Waiting: _waiting,
    Fallback: _fallback,
    MessageStarted: _message_started,
    TextDelta: _text_delta,
    ThinkingDelta: _text_delta,
    ToolCallDelta: _text_delta,
    MessageEnded: _message_ended,
    MessageDiscarded: _discarded,
    Compacted: _compacted,
    Reverted: _reverted,
    TodosUpdated: _todos,
    Notice: _notice,
}
"""Event type to its fold."""

"""The reducer's part for messages and the pieces that they grow by."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from towline_protocol.content import Block, Text, Thinking, ToolCall
from towline_protocol.events import (
    Envelope,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from towline_protocol.folds.entry import add_entry
from towline_protocol.frames import Partial
from towline_protocol.ids import CallId, MessageId
from towline_protocol.view import MessageView, OpenMessage, SessionView

__all__ = ["FOLDS", "MAX_OPEN_BLOCKS", "PieceDelta", "partial", "take_piece"]

MAX_OPEN_BLOCKS: Final = 1024
"""Blocks of an open message: a peer cannot make a view grow by naming a far block."""

_T = TypeVar("_T")

PieceDelta = TextDelta | ThinkingDelta | ToolCallDelta
"""A piece of a block of an open message."""

_HOLDER: Final = Text(text="")
"""Stands for a block of which nothing has come yet; its first piece tells its kind."""

_BLANKS: Final[dict[type, Block]] = {
    TextDelta: _HOLDER,
    ThinkingDelta: Thinking(text=""),
    ToolCallDelta: ToolCall(id=CallId(""), name="", arguments=""),
}
"""What a block of each kind begins as."""

_set = msgspec.structs.replace


def _started(view: SessionView, envelope: Envelope, event: MessageStarted) -> SessionView:
    opened = OpenMessage(id=event.message, turn=envelope.turn, time=envelope.time)
    return _set(view, open_messages=(*_others(view, event.message), opened))


def take_piece(view: SessionView, envelope: Envelope | None, event: PieceDelta) -> SessionView:
    """The view with a piece put into its open message, or lost for a hole (C1.5)."""
    del envelope
    opened = view.open_messages
    for place, message in enumerate(opened):
        if message.id == event.message:
            content = _grown(message.content, event)
            if content is None:
                return _set(view, lost=True)
            opened = _put(opened, place, _set(message, content=content))
            return _set(view, open_messages=opened)
    return view  # ended or discarded already: its truth has been told


def _grown(content: tuple[Block, ...], event: PieceDelta) -> tuple[Block, ...] | None:
    """The blocks with the piece put in; `None` for a hole (C1.5)."""
    place = event.block
    if not 0 <= place < MAX_OPEN_BLOCKS:
        return None
    if place >= len(content):
        content += (_HOLDER,) * (place + 1 - len(content))
    block = content[place]
    if isinstance(block, Text):
        if event.at == len(block.text) > 0:  # nearly always
            return _put(content, place, Text(text=block.text + event.text))
        if not block.text:  # a place holder takes the kind of its first piece
            block = _BLANKS[type(event)]
    grown = _longer(block, event)
    return None if grown is None else _put(content, place, grown)


def _put(items: tuple[_T, ...], place: int, item: _T) -> tuple[_T, ...]:
    """The items with another one in this place; the likely case first, for it is done each time."""
    if len(items) == 1:
        return (item,)
    return (*items[:place], item, *items[place + 1 :])


def _longer(block: Block, event: PieceDelta) -> Block | None:
    """The block with the piece at its end, without what it has of it already."""
    if isinstance(block, Thinking):
        more = _rest(event, len(block.text))
        return None if more is None else _set(block, text=block.text + more)
    if isinstance(block, ToolCall):
        more = _rest(event, len(block.arguments))
        return None if more is None else _set(block, arguments=block.arguments + more)
    if isinstance(block, Text):
        more = _rest(event, len(block.text))
        return None if more is None else Text(text=block.text + more)
    return None  # it holds no words


def _rest(event: PieceDelta, has: int) -> str | None:
    """What of the piece is new to a block of so many code points; `None` for a hole."""
    if event.at == has:
        return event.text
    return None if event.at > has else event.text[has - event.at :]


def _ended(view: SessionView, envelope: Envelope, event: MessageEnded) -> SessionView:
    entry = MessageView(
        seq=envelope.seq or 0,
        role="assistant",
        id=event.message,
        turn=envelope.turn,
        time=envelope.time,
        content=event.content,
        cut=event.cut,
    )
    return add_entry(_set(view, open_messages=_others(view, event.message)), entry)


def _discarded(view: SessionView, envelope: Envelope, event: MessageDiscarded) -> SessionView:
    del envelope
    return _set(view, open_messages=_others(view, event.message))


def _others(view: SessionView, message: MessageId) -> tuple[OpenMessage, ...]:
    return tuple([opened for opened in view.open_messages if opened.id != message])


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
    MessageStarted: _started,
    TextDelta: take_piece,
    ThinkingDelta: take_piece,
    ToolCallDelta: take_piece,
    MessageEnded: _ended,
    MessageDiscarded: _discarded,
}
"""Event type to its fold."""

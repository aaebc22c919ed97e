"""The entries of the conversation, which every fold may add to."""

from typing import Final

import msgspec

from towline_protocol.content import ToolCall
from towline_protocol.events import Envelope
from towline_protocol.view import Mark, MessageView, SessionView

__all__ = ["MAX_MESSAGES", "add_entry", "add_mark"]

MAX_MESSAGES: Final = 200
"""Finished entries that a view holds (D4)."""

_set = msgspec.structs.replace


def add_entry(view: SessionView, entry: MessageView) -> SessionView:
    """The view with one more entry; the oldest one, and its calls, make room."""
    messages = (*view.messages, entry)
    if len(messages) <= MAX_MESSAGES:
        return _set(view, messages=messages)
    gone = {block.id for block in messages[0].content if type(block) is ToolCall}
    calls = tuple([call for call in view.calls if call.call not in gone]) if gone else view.calls
    return _set(view, messages=messages[1:], calls=calls, older=True)


def add_mark(view: SessionView, envelope: Envelope, mark: Mark) -> SessionView:
    """The view with a quiet line at its end."""
    entry = MessageView(
        seq=envelope.seq or 0,
        role="mark",
        turn=envelope.turn,
        time=envelope.time,
        mark=mark,
    )
    return add_entry(view, entry)

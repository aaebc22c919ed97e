"""How much of what is being written a screen shows: whole messages only, or no thinking at all.

A pure function over views, so that every client can offer the choice and change it in mid-turn.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from towline_protocol.content import Block, Text, Thinking
from towline_protocol.view import MessageView, OpenMessage, SessionView

__all__ = ["Presentation", "Shown", "present"]


class Presentation(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants to see of messages."""

    text: Literal["stream", "final"] = "stream"
    """`stream` shows words as they come, `final` when their message has ended."""
    thinking: Literal["stream", "final", "off"] = "stream"
    """The same for thinking; `off` shows none."""


_PLAIN: Final = Presentation()
_Options = tuple[Presentation, ...]  # by the place of the block in its message


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What `present` remembers from one view to the next; begin with an empty one."""

    view: SessionView = SessionView()
    """The view as it came."""
    messages: tuple[MessageView, ...] = ()
    """Its finished messages as they are shown."""
    options: Mapping[str, _Options] | None = None
    """The option of each block that was seen, by its message; `None` while all are plain."""


def present(
    shown: Shown, view: SessionView, presentation: Presentation
) -> tuple[Shown, SessionView]:
    """The view as it is to be shown, and what to remember for the next one.

    A block keeps the option that was in force when it was first seen, so a change counts from the
    next block on. Text and thinking that wait for their message's end are there with empty words;
    thinking that is off is left out, and the other blocks keep their order. With the default all is
    shown as it is, at no cost.

    Args:
        shown: What this function gave with the view before.
        view: What the reducer made; never what this function gave.
        presentation: What is wanted from now on.
    """
    if shown.options is None and presentation == _PLAIN:
        return Shown(view=view), view
    options, messages = shown.options, shown.messages
    if options is None:  # until now all was shown as it was
        options, messages = _remember({}, shown.view, _PLAIN), shown.view.messages
    options = _remember(options, view, presentation)
    if view.messages is not shown.view.messages:
        messages = tuple([_finished(entry, options) for entry in view.messages])
    opened = tuple([_open(entry, options[entry.id]) for entry in view.open_messages])
    made = msgspec.structs.replace(view, messages=messages, open_messages=opened)
    return Shown(view=view, messages=messages, options=options), made


def _remember(
    options: Mapping[str, _Options], view: SessionView, presentation: Presentation
) -> Mapping[str, _Options]:
    """The options of all blocks of the view; those that are new get this one."""
    found: dict[str, _Options] = {}
    for entry in (*view.messages, *view.open_messages):
        if entry.id is not None:
            known = options.get(entry.id, ())
            found[entry.id] = known + (presentation,) * (len(entry.content) - len(known))
    return found


def _finished(entry: MessageView, options: Mapping[str, _Options]) -> MessageView:
    if entry.id is None:
        return entry
    content = tuple(
        [
            block
            for block, option in zip(entry.content, options[entry.id], strict=False)
            if not (type(block) is Thinking and option.thinking == "off")
        ]
    )
    if len(content) == len(entry.content):
        return entry
    return msgspec.structs.replace(entry, content=content)


def _open(entry: OpenMessage, options: _Options) -> OpenMessage:
    content: list[Block] = []
    for block, option in zip(entry.content, options, strict=False):
        if type(block) is Text and option.text == "final":
            content.append(Text(text=""))
        elif type(block) is not Thinking or option.thinking == "stream":
            content.append(block)
        elif option.thinking == "final":
            content.append(msgspec.structs.replace(block, text=""))
    return msgspec.structs.replace(entry, content=tuple(content))

"""Prompts on their way, beside those that the log shows."""

from collections.abc import Iterable

import msgspec

from towline_protocol.view import OutgoingPrompt, SessionView

__all__ = ["show_outgoing"]


def show_outgoing(view: SessionView, entries: Iterable[OutgoingPrompt]) -> SessionView:
    """The view with the prompts that are on their way and that it does not hold itself.

    A prompt whose key stands in `queue` waits, one whose key a message has is delivered: neither is
    on its way. A view that changes by this is for showing, not for folding more frames into it.
    """
    outgoing = tuple(entries)
    if outgoing:
        held = {queued.key for queued in view.queue} | {entry.key for entry in view.messages}
        outgoing = tuple([entry for entry in outgoing if entry.key not in held])
    if outgoing == view.outgoing:
        return view
    return msgspec.structs.replace(view, outgoing=outgoing)

"""The view of a session as a pure function of its frames.

Server snapshots, clients, crash recovery and the web app use the same function; the golden vectors
hold the Python and the TypeScript one together.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from towline_protocol.content import Unknown
from towline_protocol.events import Envelope
from towline_protocol.folds import talk, tool
from towline_protocol.frames import Control, Frame, Gap, Partial
from towline_protocol.view import SessionView

__all__ = ["empty_view", "reduce"]

_Fold = Callable[[SessionView, Envelope, Any], SessionView]
_FOLDS: Final[dict[type, _Fold]] = {**talk.FOLDS, **tool.FOLDS}


def empty_view() -> SessionView:
    """The view before any event: where a replay from the beginning starts."""
    return SessionView()


def reduce(view: SessionView, frame: Frame) -> SessionView:
    """The view after one more frame. Pure; never raises.

    A stored event at or below `view.seq` is a duplicate and changes nothing. One that leaves a
    hole, and a delta that does, set `lost`; a lost view takes no more stored events.
    """
    if not isinstance(frame, Envelope):
        return _control(view, frame)
    if frame.seq is None:
        return _apply(view, frame)
    if frame.seq <= view.seq or view.lost:
        return view
    if frame.seq != view.seq + 1:
        return msgspec.structs.replace(view, lost=True)
    view = msgspec.structs.replace(view, seq=frame.seq, updated=frame.time, waiting=None)
    return _apply(view, frame)


def _apply(view: SessionView, envelope: Envelope) -> SessionView:
    event = envelope.event
    if type(event) is Unknown:
        return msgspec.structs.replace(view, unknown=view.unknown + 1)
    fold = _FOLDS.get(type(event))
    return view if fold is None else fold(view, envelope, event)


def _control(view: SessionView, frame: Control) -> SessionView:
    if isinstance(frame, Partial):
        return tool.partial(talk.partial(view, frame), frame)
    if isinstance(frame, Gap):
        return msgspec.structs.replace(view, lost=True)
    return view

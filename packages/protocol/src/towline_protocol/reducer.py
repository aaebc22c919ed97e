"""The view of a session as a pure function of its frames.

Server snapshots, clients, crash recovery and the web app use the same function; the golden vectors
hold the Python and the TypeScript one together.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from towline_protocol.content import Unknown
from towline_protocol.events import Envelope, TextDelta, ThinkingDelta, ToolCallDelta
from towline_protocol.folds import message, session, tool, turn
from towline_protocol.folds.message import PieceDelta
from towline_protocol.frames import Control, Frame, Gap, Partial
from towline_protocol.view import SessionView

__all__ = ["empty_view", "reduce", "reduce_all"]

_Fold = Callable[[SessionView, Envelope, Any], SessionView]

_set = msgspec.structs.replace


def _unknown(view: SessionView, envelope: Envelope, event: Unknown) -> SessionView:
    del envelope, event
    return _set(view, unknown=view.unknown + 1)


_FOLDS: Final[dict[type, _Fold]] = {
    **session.FOLDS,
    **turn.FOLDS,
    **message.FOLDS,
    **tool.FOLDS,
    Unknown: _unknown,
}


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
    seq = frame.seq
    if seq is not None:
        if seq <= view.seq or view.lost:
            return view
        if seq != view.seq + 1:
            return _set(view, lost=True)
        view = _set(view, seq=seq, updated=frame.time, waiting=None)
    fold = _FOLDS.get(type(frame.event))
    return view if fold is None else fold(view, frame, frame.event)


def reduce_all(view: SessionView, frames: Iterable[Frame]) -> SessionView:
    """The view after these frames: what `reduce` makes of them one after the other.

    Pieces of a block that follow each other are put in as one: a long text is not copied anew for
    each of them.
    """
    run: _Run | None = None
    for frame in frames:
        piece = _piece_of(frame)
        if run is not None:
            if piece is not None and run.takes(piece):
                continue
            view = message.take_piece(view, None, run.whole())
            run = None
        if piece is None:
            view = reduce(view, frame)
        else:
            run = _Run(piece)
    return view if run is None else message.take_piece(view, None, run.whole())


def _piece_of(frame: Frame) -> PieceDelta | None:
    if not isinstance(frame, Envelope) or frame.seq is not None:
        return None
    event = frame.event
    if type(event) is TextDelta or type(event) is ThinkingDelta or type(event) is ToolCallDelta:
        return event
    return None


class _Run:
    """Pieces of one block, each of which goes on where the one before ended."""

    __slots__ = ("_end", "_first", "_texts")

    def __init__(self, first: PieceDelta) -> None:
        self._first = first
        self._texts = [first.text]
        self._end = first.at + len(first.text)

    def takes(self, piece: PieceDelta) -> bool:
        """Whether the piece goes on here; then it is in."""
        first = self._first
        if (
            piece.at != self._end
            or piece.block != first.block
            or piece.message != first.message
            or type(piece) is not type(first)
        ):
            return False
        self._texts.append(piece.text)
        self._end += len(piece.text)
        return True

    def whole(self) -> PieceDelta:
        if len(self._texts) == 1:
            return self._first
        return _set(self._first, text="".join(self._texts))


def _control(view: SessionView, frame: Control) -> SessionView:
    if isinstance(frame, Partial):
        return tool.partial(message.partial(view, frame), frame)
    if isinstance(frame, Gap):
        return _set(view, lost=True)
    return view

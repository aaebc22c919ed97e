"""The reducer's part for turns and steps."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from towline_protocol.events import (
    Envelope,
    Fallback,
    StepEnded,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    TurnStarted,
    Waiting,
)
from towline_protocol.folds.entry import add_mark
from towline_protocol.ids import TurnId
from towline_protocol.view import EndedTurn, Mark, SessionView, TurnView

__all__ = ["FOLDS"]

_NO_TURN: Final = TurnId("")

_set = msgspec.structs.replace


def _started(view: SessionView, envelope: Envelope, event: TurnStarted) -> SessionView:
    if envelope.turn is None:
        return view
    turn = TurnView(id=envelope.turn, prompt=event.prompt, model=event.model, started=envelope.time)
    return _set(view, turn=turn)


def _resumed(view: SessionView, envelope: Envelope, event: TurnResumed) -> SessionView:
    del envelope
    if view.turn is None:
        return view
    return _set(view, turn=_set(view.turn, attempt=event.attempt))


def _completed(view: SessionView, envelope: Envelope, event: TurnCompleted) -> SessionView:
    ended = EndedTurn(
        id=envelope.turn or _NO_TURN,
        outcome="completed",
        stop_reason=event.stop_reason,
        time=envelope.time,
        usage=event.usage,
        cost=event.cost,
        summary=event.summary,
    )
    view = _set(_ended(view, ended), fault=None)
    if event.stop_reason == "end_turn":
        return view
    return add_mark(view, envelope, Mark(kind="turn_limited", text=event.stop_reason))


def _failed(view: SessionView, envelope: Envelope, event: TurnFailed) -> SessionView:
    ended = EndedTurn(
        id=envelope.turn or _NO_TURN,
        outcome="failed",
        time=envelope.time,
        usage=event.usage,
        fault=event.fault,
    )
    mark = Mark(kind="turn_failed", text=event.fault.message, fault=event.fault)
    return add_mark(_set(_ended(view, ended), fault=event.fault), envelope, mark)


def _cancelled(view: SessionView, envelope: Envelope, event: TurnCancelled) -> SessionView:
    ended = EndedTurn(
        id=envelope.turn or _NO_TURN,
        outcome="cancelled",
        time=envelope.time,
        usage=event.usage,
    )
    mark = Mark(kind="turn_cancelled", text=event.reason)
    return add_mark(_ended(view, ended), envelope, mark)


def _ended(view: SessionView, ended: EndedTurn) -> SessionView:
    """What is common to every end: nothing of the turn stays open (C1.23)."""
    left = [
        _set(call, status="unknown", progress=None, fraction=None, output="", output_at=0)
        for call in view.open_calls
    ]
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
    if view.turn is None or event.attempt != 1:
        return view
    return _set(view, turn=_set(view.turn, step=view.turn.step + 1))


def _step_ended(view: SessionView, envelope: Envelope, event: StepEnded) -> SessionView:
    del envelope
    cost = None if view.cost is None or event.cost is None else view.cost + event.cost
    return _set(view, cost=cost, context=event.context or view.context)


def _waiting(view: SessionView, envelope: Envelope, event: Waiting) -> SessionView:
    del envelope
    return _set(view, waiting=event)


def _fallback(view: SessionView, envelope: Envelope, event: Fallback) -> SessionView:
    mark = Mark(kind="fallback", text=f"{event.from_} → {event.to}", fault=event.fault)
    return add_mark(view, envelope, mark)


FOLDS: Final[dict[type, Callable[[SessionView, Envelope, Any], SessionView]]] = {
    TurnStarted: _started,
    TurnResumed: _resumed,
    TurnCompleted: _completed,
    TurnFailed: _failed,
    TurnCancelled: _cancelled,
    StepStarted: _step_started,
    StepEnded: _step_ended,
    Waiting: _waiting,
    Fallback: _fallback,
}
"""Event type to its fold."""

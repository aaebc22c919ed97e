"""The law of turns over a stored log (C1.20, C1.22, C1.23). Pure.

A log that lost something cannot be held to all of it: what stands in `lost_event` notices excuses
whatever follows without its beginning.
"""

from typing import Final, Literal

from towline_protocol import (
    TERMINAL_EVENTS,
    CallId,
    Envelope,
    Notice,
    SessionCreated,
    SessionView,
    StepEnded,
    ToolEnded,
    TurnId,
    TurnStarted,
    Usage,
)

__all__ = ["LOST", "Breach", "TurnLaw"]

LOST: Final = "lost_event"
"""The code of the notice that stands where an event was lost."""

Breach = Literal["surplus", "unended", "headless", "open"]
"""How an event breaks the law: it must not stand at all; the turn before it has no end; what it
belongs to has no beginning; or it ends a turn of which something is open."""


class TurnLaw:
    """Holds a log to the law, event by event, in order."""

    def __init__(self) -> None:
        self.turn: TurnId | None = None
        """The turn that is open."""
        self.doubtful = False
        """Whether something of the open turn is lost."""
        self.lost = False
        """Whether anything of the log is lost so far."""
        self.usage = Usage()
        """What the open turn's answers used."""
        self._ended: set[TurnId] = set()
        self._closed: set[CallId] = set()

    def judge(self, envelope: Envelope, view: SessionView) -> Breach | None:
        """How an event would break the law if it came next; `None` when it would not.

        Args:
            envelope: The event.
            view: The session right before it.
        """
        event, turn = envelope.event, envelope.turn
        if isinstance(event, SessionCreated):
            return "surplus" if view.seq else None
        if turn is None:
            return "surplus" if isinstance(event, (TurnStarted, *TERMINAL_EVENTS)) else None
        if turn in self._ended:
            return "surplus"
        if turn != self.turn:
            return self._judge_other(event)
        if isinstance(event, TurnStarted):
            return "surplus"
        if isinstance(event, TERMINAL_EVENTS):
            return "open" if view.open_calls or view.permissions or view.questions else None
        return self._judge_call(event, view) if isinstance(event, ToolEnded) else None

    def _judge_other(self, event: object) -> Breach | None:
        """An event of a turn that is not the open one and has not ended."""
        if isinstance(event, TurnStarted):
            return "unended" if self.turn is not None else None
        if self.turn is not None:
            return "unended" if self.doubtful else "surplus"
        return None if self.lost else "headless"

    def _judge_call(self, event: ToolEnded, view: SessionView) -> Breach | None:
        if event.call in self._closed:
            return "surplus"
        known = any(call.call == event.call for call in view.open_calls)
        return None if known or self.lost else "headless"

    def take(self, envelope: Envelope) -> None:
        """Go on from an event that stands."""
        event, turn = envelope.event, envelope.turn
        if isinstance(event, Notice) and event.code == LOST:
            self.lost = True
            self.doubtful = self.turn is not None
        elif isinstance(event, TERMINAL_EVENTS) and turn is not None:
            self._ended.add(turn)
            self.turn, self.doubtful = None, False
        elif turn is not None and turn != self.turn:
            self.turn, self.usage = turn, Usage()
            self.doubtful = not isinstance(event, TurnStarted)
        if isinstance(event, ToolEnded):
            self._closed.add(event.call)
            self.usage += event.usage or Usage()
        elif isinstance(event, StepEnded):
            self.usage += event.usage

"""What of a session's events a user is called for (C7.1). It keeps nothing but when turns began."""

from typing import Final

from towline_protocol import (
    Event,
    PermissionRequested,
    QuestionAsked,
    SessionId,
    SessionView,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    TurnStarted,
    parse_time,
)
from towline_server.auth.reserved_name import DEADLINE
from towline_server.push.message import TEXT_CHARS, Call

__all__ = ["LONG_TURN_S", "REQUESTS", "Triggers", "still_waits"]

LONG_TURN_S: Final = 30.0
"""Seconds after which the end of a turn is news: who sent a shorter one still looks (C7.1)."""
REQUESTS: Final = frozenset({"permission", "question"})
"""The kinds that wait for an answer."""

_Ended = TurnCompleted | TurnFailed | TurnCancelled


class Triggers:
    """Turns events into calls.

    Args:
        shows_text: Whether the session's own words may stand in a message.
    """

    def __init__(self, *, shows_text: bool = False) -> None:
        self._shows_text = shows_text
        self._began_ms: dict[SessionId, int] = {}

    def find(self, user: str, view: SessionView, event: Event, *, time: str) -> Call | None:
        """What a user is called for; `None` for most events.

        Args:
            user: Whose session it is.
            view: The session right after the event.
            event: The event.
            time: The time, RFC 3339.
        """
        if isinstance(event, TurnStarted | TurnResumed):
            if view.turn is not None:
                self._began_ms[view.session] = parse_time(view.turn.started)
            return None
        if isinstance(event, PermissionRequested):
            call = Call(user=user, kind="permission", request=event.permission, text=event.title)
        elif isinstance(event, QuestionAsked):
            asked = " / ".join(item.prompt for item in event.items)
            call = Call(user=user, kind="question", request=event.question, text=asked)
        elif isinstance(event, _Ended):
            return self._find_end(user, view, event, time)
        else:
            return None
        return self._told(call, view, time, status="waiting", about=call.request or "")

    def _find_end(self, user: str, view: SessionView, event: _Ended, time: str) -> Call | None:
        began_ms = self._began_ms.pop(view.session, None)
        ended = view.last_turn
        if ended is None:
            return None
        if isinstance(event, TurnFailed):
            call = Call(
                user=user, kind="turn_failed", reason=event.fault.code, text=event.fault.message
            )
        elif began_ms is None or parse_time(ended.time) - began_ms <= LONG_TURN_S * 1000:
            return None
        elif isinstance(event, TurnCompleted):
            call = Call(user=user, kind="turn_ended", reason=event.stop_reason, text=event.summary)
        elif event.by == DEADLINE:  # nobody stopped it, so nobody knows
            call = Call(user=user, kind="turn_ended", reason=event.by)
        else:
            return None
        return self._told(call, view, time, status=ended.outcome, about=ended.id)

    def _told(self, call: Call, view: SessionView, time: str, *, status: str, about: str) -> Call:
        """The call with what every one of a session has."""
        running = view.turn or view.last_turn
        return Call(
            user=call.user,
            kind=call.kind,
            request=call.request,
            reason=call.reason,
            session=view.session,
            about=about,
            turn=None if running is None else running.id,
            status=status,
            last_seq=view.seq,
            time=time,
            text=call.text[:TEXT_CHARS] if self._shows_text and call.text else None,
        )


def still_waits(call: Call, view: SessionView) -> bool:
    """Whether what a user is called for still waits; what waits for nobody always counts."""
    if call.kind == "permission":
        return any(asked.permission == call.request for asked in view.permissions)
    if call.kind == "question":
        return any(asked.question == call.request for asked in view.questions)
    return True

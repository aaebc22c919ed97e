"""A session that goes on from a turn of another one."""

from collections.abc import Iterable, Sequence
from typing import Final

from towline_protocol import (
    TERMINAL_EVENTS,
    Compacted,
    Event,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    Reverted,
    StepStarted,
    TodosUpdated,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnId,
    TurnStarted,
)
from towline_server.errors import Rejected, SessionBusy, SessionNotFound
from towline_server.sessions.recovery import Piece

__all__ = ["MAX_EVENTS", "take_upto"]

MAX_EVENTS: Final = 10_000
"""Events that a fork copies: they are committed in one piece."""

_KEPT: Final = (
    *TERMINAL_EVENTS,
    Compacted,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    PromptDelivered,
    Reverted,
    StepStarted,
    TodosUpdated,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnStarted,
)
"""What tells the conversation. What people allowed, what a step cost and what clients were asked
belongs to the session it happened in: it counts there, once."""


def take_upto(log: Sequence[Piece], turn: TurnId | None) -> list[Piece]:
    """The conversation of a log up to the end of a turn, as a new log may begin.

    Args:
        log: The whole log.
        turn: The last turn to take; `None` for the last one that has ended.

    Raises:
        SessionNotFound: There is no such turn.
        SessionBusy: It has not ended.
        Rejected: Too much would be copied.
    """
    ends = {
        piece.envelope.turn: place
        for place, piece in enumerate(log)
        if isinstance(piece.envelope.event, TERMINAL_EVENTS)
    }
    if turn is None:
        end = max(ends.values(), default=-1)
    elif turn in ends:
        end = ends[turn]
    elif any(piece.envelope.turn == turn for piece in log):
        raise SessionBusy(
            f"The turn {turn!r} still runs; wait for its end, then fork.", reason="turn_active"
        )
    else:
        raise SessionNotFound(f"There is no turn {turn!r} in this session; read its view.")
    kept = _conversation(log[: end + 1], set(ends))
    if len(kept) > MAX_EVENTS:
        raise Rejected(
            f"A fork copies at most {MAX_EVENTS} events; this one would copy {len(kept)}. Fork at "
            "an earlier turn, or start a new session.",
            reason="too_long",
        )
    return kept


def _conversation(log: Iterable[Piece], ended: set[TurnId | None]) -> list[Piece]:
    pieces = list(log)
    delivered = {
        piece.envelope.event.prompt
        for piece in pieces
        if isinstance(piece.envelope.event, PromptDelivered)
    }
    return [
        piece
        for piece in pieces
        if _is_kept(piece.envelope.event) or _is_said(piece.envelope.event, delivered)
        if piece.envelope.turn is None or piece.envelope.turn in ended
    ]


def _is_kept(event: Event) -> bool:
    return isinstance(event, _KEPT)


def _is_said(event: Event, delivered: set[PromptId]) -> bool:
    return isinstance(event, PromptAdmitted) and event.prompt in delivered

"""The unions and the envelope."""

import msgspec

from towline_protocol.content import Unknown
from towline_protocol.events.person import (
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAsked,
    QuestionResolved,
    TodosUpdated,
)
from towline_protocol.events.session import (
    Compacted,
    FilesReverted,
    PromptAdmitted,
    PromptDelivered,
    PromptWithdrawn,
    Reverted,
    SessionClosed,
    SessionCreated,
    SessionUpdated,
)
from towline_protocol.events.tool import (
    ClientCallClaimed,
    ClientCallOffered,
    FilesChanged,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolStarted,
)
from towline_protocol.events.turn import (
    Fallback,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    StepEnded,
    StepStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    TurnStarted,
    Waiting,
)
from towline_protocol.ids import SessionId, TurnId

__all__ = ["TERMINAL_EVENTS", "Delta", "Envelope", "Event", "StoredEvent"]

StoredEvent = (
    SessionCreated
    | SessionUpdated
    | SessionClosed
    | Compacted
    | Reverted
    | FilesReverted
    | PromptAdmitted
    | PromptDelivered
    | PromptWithdrawn
    | TurnStarted
    | TurnResumed
    | TurnCompleted
    | TurnFailed
    | TurnCancelled
    | StepStarted
    | StepEnded
    | Waiting
    | Fallback
    | MessageStarted
    | MessageEnded
    | MessageDiscarded
    | ToolProposed
    | ToolStarted
    | ToolEnded
    | ClientCallOffered
    | ClientCallClaimed
    | PermissionRequested
    | PermissionResolved
    | QuestionAsked
    | QuestionResolved
    | TodosUpdated
    | FilesChanged
    | Notice
    | Unknown
)
"""An event with a number, kept as long as its session."""

Delta = TextDelta | ThinkingDelta | ToolCallDelta | ToolProgress | ToolOutputDelta
"""A piece of what is still being written: no number, never stored (C1.5)."""

Event = StoredEvent | Delta
"""Everything that happens in a session."""

TERMINAL_EVENTS = (TurnCompleted, TurnFailed, TurnCancelled)
"""The three ways a turn ends (C1.20)."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event with where and when (C1.2)."""

    seq: int | None = None
    """The event's number: 1, 2, 3 … without holes; `None` for a delta (C1.3, C1.5)."""
    session: SessionId
    """The session."""
    turn: TurnId | None = None
    """The turn it happened in; `None` outside turns."""
    time: str
    """RFC 3339 UTC with milliseconds, the server's clock."""
    event: Event
    """What happened."""

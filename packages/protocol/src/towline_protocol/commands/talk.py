"""What people say to a session, and how they stop it."""

from towline_protocol.commands.body import Body
from towline_protocol.content import PromptBlock
from towline_protocol.ids import PromptId, SessionId, TurnId
from towline_protocol.messages import Limits

__all__ = [
    "ForkSession",
    "Interrupt",
    "Interrupted",
    "PromptAccepted",
    "QueueResumed",
    "Resend",
    "SendPrompt",
    "Withdrawn",
]


class SendPrompt(Body, frozen=True, kw_only=True):
    """Something a person says to a session."""

    content: tuple[PromptBlock, ...]
    """1 to 64 blocks."""
    when: str = "auto"
    """`auto`: start when idle, else queue. `queue`, `steer`, `reject` (C2.11)."""
    limits: Limits | None = None
    """Bounds of the turn; `None` for the agent's own."""
    speak: bool = False
    """Whether the turn's end should say what to read aloud (A4.30)."""


class PromptAccepted(Body, frozen=True, kw_only=True):
    """The prompt is durable."""

    prompt: PromptId
    """Its id."""
    turn: TurnId | None = None
    """The turn it starts or steers, when that is known already."""
    position: int = 0
    """Prompts ahead of it."""
    session: SessionId
    """Where it went."""


class Interrupt(Body, frozen=True, kw_only=True):
    """Stop the running turn."""

    turn: TurnId | None = None
    """Only this turn; `None` for whichever runs."""
    reason: str = "stopped by the user"
    """Why, for the log."""


class Interrupted(Body, frozen=True, kw_only=True):
    """What was stopped."""

    turn: TurnId | None = None
    """The turn that is stopping; `None` when none was running."""


class Withdrawn(Body, frozen=True, kw_only=True):
    """The prompt will not run."""

    prompt: PromptId
    """Its id."""


class QueueResumed(Body, frozen=True, kw_only=True):
    """What waited runs again."""

    queued: int
    """Prompts that wait."""


class Resend(Body, frozen=True, kw_only=True):
    """Undo a turn, with all after it, and say something else in its place."""

    content: tuple[PromptBlock, ...]
    """1 to 64 blocks."""
    limits: Limits | None = None
    """Bounds of the turn; `None` for the agent's own."""
    speak: bool = False
    """Whether the turn's end should say what to read aloud (A4.30)."""


class ForkSession(Body, frozen=True, kw_only=True):
    """Begin a new session that goes on from a turn of this one."""

    turn: TurnId | None = None
    """The last turn that the new session has; `None` for the last one that has ended."""
    title: str | None = None
    """A title; `None` for the one of this session."""

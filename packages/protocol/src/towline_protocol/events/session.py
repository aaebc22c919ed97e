"""Session and inbox events."""

from towline_protocol.content import Block
from towline_protocol.events.data import Data, EventData
from towline_protocol.events.tool import ClientTool, ToolDeclaration
from towline_protocol.ids import CallId, PromptId, SessionId, TurnId
from towline_protocol.messages import Limits, Usage

__all__ = [
    "Compacted",
    "FileConflict",
    "FilesReverted",
    "Parent",
    "PromptAdmitted",
    "PromptDelivered",
    "PromptWithdrawn",
    "Reverted",
    "SessionClosed",
    "SessionCreated",
    "SessionUpdated",
]


class Parent(Data, frozen=True, kw_only=True):
    """What a sub-agent's session works for (D5)."""

    session: SessionId
    """The session of the agent that asked for it."""
    call: CallId
    """That agent's call."""


class SessionCreated(EventData, frozen=True, kw_only=True, tag="session_created"):
    """A session began; always its first event."""

    agent: str
    """The name of the agent's spec."""
    model: str
    """`provider/model`."""
    mode: str
    """What passes unasked (A5.44). An open word: servers of today offer `ask` and `auto`."""
    title: str | None = None
    """A title given at creation."""
    cwd: str | None = None
    """The folder the agent works in; `None` for no folder."""
    forked_from: SessionId | None = None
    """The session it was forked from."""
    parent: Parent | None = None
    """The session and call that a sub-agent works for."""
    tools: tuple[ClientTool, ...] = ()
    """Tools that any client of the session may run."""
    labels: tuple[str, ...] = ()
    """What people sort it by."""
    limits: Limits | None = None
    """Bounds of its turns that name none; `None` for the agent's own."""


class SessionUpdated(EventData, frozen=True, kw_only=True, tag="session_updated"):
    """Settings changed; fields that are `None` did not."""

    title: str | None = None
    """The new title."""
    model: str | None = None
    """The new model."""
    mode: str | None = None
    """The new mode."""
    archived: bool | None = None
    """Whether it is put away."""
    labels: tuple[str, ...] | None = None
    """The new labels, all of them."""
    tools: ToolDeclaration | None = None
    """What a client says it can run, from the next turn on."""


class SessionClosed(EventData, frozen=True, kw_only=True, tag="session_closed"):
    """The session takes no more prompts. Only a `session_updated` may follow."""

    reason: str
    """Why, in one word or sentence."""


class Compacted(EventData, frozen=True, kw_only=True, tag="compacted"):
    """The transcript was made to fit: exactly what is needed to rebuild it (D6)."""

    cut: tuple[CallId, ...] = ()
    """The calls whose results were cut down."""
    upto: str | None = None
    """The last message or prompt that `summary` stands for."""
    summary: str | None = None
    """What stands for all messages up to `upto`."""
    before_tokens: int
    """The size before, by the provider's count."""
    after_tokens: int
    """The size after, estimated."""
    model: str | None = None
    """Who wrote the summary, as `provider/model`; `None` when nobody was asked."""
    usage: Usage | None = None
    """What that request used."""
    cost: float | None = None
    """US dollars of it; `None` when unknown."""


class Reverted(EventData, frozen=True, kw_only=True, tag="reverted"):
    """The conversation went back to before a turn."""

    to_turn: TurnId
    """The first turn that is undone."""
    files: tuple[str, ...] = ()
    """The paths that were put back."""
    not_reverted: tuple[str, ...] = ()
    """What could not be put back."""


class FileConflict(Data, frozen=True, kw_only=True):
    """A path that somebody changed after the agent did: it is left alone (A5.75)."""

    path: str
    """Relative to the root."""
    what: str
    """What happened to it, for people."""


class FilesReverted(EventData, frozen=True, kw_only=True, tag="files_reverted"):
    """Files were put back to what they were before a turn; the conversation is as it was."""

    turn: TurnId
    """The first turn that is undone."""
    files: tuple[str, ...] = ()
    """The paths that were put back, or went."""
    conflicts: tuple[FileConflict, ...] = ()
    """The paths that were left alone, for somebody has changed them since."""
    unkept: tuple[str, ...] = ()
    """What could not be undone, such as what commands did, a sentence each (A5.74)."""


class PromptAdmitted(EventData, frozen=True, kw_only=True, tag="prompt_admitted"):
    """A prompt is durable; it runs later."""

    prompt: PromptId
    """Its id."""
    content: tuple[Block, ...]
    """What the user sent."""
    when: str
    """`auto`, `queue`, `steer` or `reject`, as asked."""
    key: str | None = None
    """The client's own key of the prompt: how it finds its message again."""
    position: int = 0
    """Prompts ahead of it."""
    limits: Limits | None = None
    """Bounds of the turn that it will start; `None` for the agent's own."""
    speak: bool = False
    """Whether the turn that it starts should say what to read aloud (A4.30)."""


class PromptDelivered(EventData, frozen=True, kw_only=True, tag="prompt_delivered"):
    """A prompt reached the model's side of the line."""

    prompt: PromptId
    """Its id."""
    turn: TurnId
    """The turn it went into."""
    how: str
    """`started` or `steered`."""


class PromptWithdrawn(EventData, frozen=True, kw_only=True, tag="prompt_withdrawn"):
    """A prompt that waited was taken back."""

    prompt: PromptId
    """Its id."""

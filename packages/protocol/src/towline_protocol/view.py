"""What a screen shows of a session: the values that the reducer makes."""

from typing import Final

import msgspec

from towline_protocol.artifacts import Artifact
from towline_protocol.content import Block, ResultBlock
from towline_protocol.events import (
    Context,
    FileChange,
    Parent,
    PermissionRequested,
    Preview,
    QuestionAsked,
    Todo,
    Waiting,
)
from towline_protocol.faults import Fault
from towline_protocol.ids import CallId, MessageId, PromptId, SessionId, TurnId
from towline_protocol.messages import Usage

__all__ = [
    "REDUCER_VERSION",
    "CallView",
    "Decision",
    "EndedTurn",
    "Mark",
    "MessageView",
    "NoticeView",
    "OpenMessage",
    "OutgoingPrompt",
    "QueuedPrompt",
    "SessionView",
    "TurnView",
]

REDUCER_VERSION: Final = 4
"""Goes up when the same log reduces to another view: older snapshots are rebuilt (D4)."""


class _View(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Mark(_View, frozen=True, kw_only=True):
    """A quiet line between messages."""

    kind: str
    """`turn_failed`, `turn_cancelled`, `turn_limited`, `compacted`, `reverted`, `files_reverted`,
    `fallback` or `closed`."""
    text: str = ""
    """Words for it, when there are any; for `reverted` and `files_reverted` the first
    turn that is undone."""
    fault: Fault | None = None
    """What went wrong, for `turn_failed` and `fallback`."""
    files: tuple[str, ...] = ()
    """The paths that were put back, for `reverted` and `files_reverted`."""
    not_reverted: tuple[str, ...] = ()
    """What could not be put back, for `reverted` and `files_reverted`."""
    before_tokens: int | None = None
    """The size of what the model sees, before, for `compacted`."""
    after_tokens: int | None = None
    """The same, after; an estimate."""


class MessageView(_View, frozen=True, kw_only=True):
    """One finished entry of the conversation."""

    seq: int
    """The number of the event that finished it: its key and its place."""
    role: str
    """`user`, `assistant` or `mark`."""
    id: str | None = None
    """The prompt's or the message's id."""
    turn: TurnId | None = None
    """The turn it belongs to."""
    time: str
    """RFC 3339 time of that event."""
    content: tuple[Block, ...] = ()
    """Its blocks; a tool call's card is found in `calls` by the call's id."""
    cut: str | None = None
    """Why it is not whole."""
    key: str | None = None
    """The client's key of a prompt."""
    mark: Mark | None = None
    """What a mark says."""
    undone: bool = False
    """Whether the conversation went back to before it: the model no longer sees it. A screen shows
    it grey, or not at all."""


class NoticeView(_View, frozen=True, kw_only=True):
    """A quiet line that ends nothing and is no entry of the conversation."""

    seq: int
    """The number of its event: it stands behind the last entry with a lower one."""
    code: str
    """A word for programs."""
    message: str
    """A sentence for people."""
    scope: str
    """`turn` or `session`."""


class OpenMessage(_View, frozen=True, kw_only=True):
    """A message that is still being written."""

    id: MessageId
    """Its id."""
    turn: TurnId | None = None
    """The turn it belongs to."""
    time: str
    """RFC 3339 time of its start."""
    content: tuple[Block, ...] = ()
    """Its blocks so far; a call's arguments may end anywhere."""


class Decision(_View, frozen=True, kw_only=True):
    """How a permission request of a call was resolved."""

    option: str
    """The option's id."""
    by: str
    """Who decided."""
    note: str | None = None
    """Words for the model."""
    time: str
    """RFC 3339 time."""


class CallView(_View, frozen=True, kw_only=True):
    """One tool call."""

    call: CallId
    """Its id."""
    tool: str
    """The tool's name."""
    title: str
    """One line."""
    effect: str
    """What kind of thing it does."""
    arguments: str
    """JSON text as the model wrote it; of a long one the ends, with a mark (C1.10)."""
    status: str
    """`pending`, `in_progress`, `completed`, `failed`, `denied`, `cancelled` or `unknown`."""
    preview: Preview | None = None
    """What it would do."""
    turn: TurnId | None = None
    """The turn it belongs to."""
    started: str | None = None
    """RFC 3339 time of its start."""
    progress: str | None = None
    """The last progress line, while it runs."""
    fraction: float | None = None
    """How far it is, from 0 to 1, while it runs; `None` when unknown."""
    output: str = ""
    """The tail of its output, while it runs."""
    output_at: int = 0
    """Code points of the output that `output` no longer holds."""
    content: tuple[ResultBlock, ...] = ()
    """What the model was told."""
    is_error: bool = False
    """Whether it was told as an error."""
    duration_ms: int = 0
    """Milliseconds it took."""
    artifacts: tuple[Artifact, ...] = ()
    """What it made or found."""
    changes: tuple[FileChange, ...] = ()
    """Files it changed, with the heads of their diffs."""
    changes_truncated: bool = False
    """Whether it changed more files than these."""
    decision: Decision | None = None
    """How its permission request was resolved."""
    expires_at: str | None = None
    """When a client must have answered it, RFC 3339; `None` for what the server runs itself."""
    claimed_by: str | None = None
    """The client that took it."""
    arguments_file: str | None = None
    """The content hash of the whole arguments, when they are too long for an event."""
    files: tuple[str, ...] = ()
    """Content hashes of files it left, its whole output among them when that is long."""
    child: SessionId | None = None
    """The session of the sub-agent that does it: what a link leads to (D5)."""


class TurnView(_View, frozen=True, kw_only=True):
    """The running turn."""

    id: TurnId
    """Its id."""
    prompt: PromptId
    """The prompt that started it."""
    model: str
    """`provider/model`."""
    started: str
    """RFC 3339 time."""
    step: int = 0
    """Steps begun."""
    attempt: int = 0
    """How often it was resumed after a crash."""


class EndedTurn(_View, frozen=True, kw_only=True):
    """How the last turn ended."""

    id: TurnId
    """Its id."""
    outcome: str
    """`completed`, `failed` or `cancelled`."""
    stop_reason: str | None = None
    """Why a completed turn stopped."""
    time: str
    """RFC 3339 time."""
    usage: Usage
    """The sum over its requests."""
    cost: float | None = None
    """US dollars; `None` when unknown."""
    summary: str | None = None
    """The first sentence of its answer."""
    fault: Fault | None = None
    """What went wrong."""


class QueuedPrompt(_View, frozen=True, kw_only=True):
    """A prompt that waits."""

    prompt: PromptId
    """Its id."""
    content: tuple[Block, ...]
    """What the user sent."""
    when: str
    """How it asked to run."""
    key: str | None = None
    """The client's key."""
    time: str
    """RFC 3339 time of its admission."""


class OutgoingPrompt(_View, frozen=True, kw_only=True):
    """A prompt that this client has sent and that the log does not show yet."""

    key: str
    """The client's key: how it is found again."""
    content: tuple[Block, ...]
    """What the user sent."""
    when: str
    """How it asked to run."""
    state: str
    """`sending`, `accepted`, `refused` or `unknown`: whether it got through is not known."""
    message: str | None = None
    """Why it was refused, or what the last try failed with."""
    begun: str
    """RFC 3339 time of the first try, by the client's clock."""


class SessionView(_View, frozen=True, kw_only=True):
    """A session as a screen shows it; made by `reduce` alone."""

    reducer: int = REDUCER_VERSION
    """The version of the reducer that made it (D4)."""
    session: SessionId = SessionId("")
    """Its id; empty before its first event."""
    seq: int = 0
    """The last stored event it holds."""
    agent: str = ""
    """The name of the agent's spec."""
    model: str = ""
    """`provider/model`."""
    mode: str = ""
    """What passes unasked. An open word: servers of today offer `ask` and `auto`."""
    title: str | None = None
    """Its title: given, or the first 60 characters of its first prompt (D16)."""
    title_truncated: bool = False
    """Whether that prompt is longer than the title made of it."""
    cwd: str | None = None
    """The folder it works in."""
    parent: Parent | None = None
    """What it works for, when it is a sub-agent's."""
    created: str = ""
    """RFC 3339 time of its first event."""
    updated: str = ""
    """RFC 3339 time of its last stored event."""
    archived: bool = False
    """Whether it is put away."""
    labels: tuple[str, ...] = ()
    """What people sort it by."""
    closed: str | None = None
    """Why it takes no more prompts."""
    turn: TurnView | None = None
    """The running turn."""
    last_turn: EndedTurn | None = None
    """How the turn before ended."""
    waiting: Waiting | None = None
    """What the turn waits for."""
    messages: tuple[MessageView, ...] = ()
    """The last finished entries, 200 at most (D4)."""
    older: bool = False
    """Whether there are entries before these."""
    open_messages: tuple[OpenMessage, ...] = ()
    """Messages that are being written."""
    calls: tuple[CallView, ...] = ()
    """Ended calls of the messages held."""
    open_calls: tuple[CallView, ...] = ()
    """Calls that have not ended."""
    permissions: tuple[PermissionRequested, ...] = ()
    """Open permission requests, oldest first."""
    questions: tuple[QuestionAsked, ...] = ()
    """Open questions, oldest first."""
    queue: tuple[QueuedPrompt, ...] = ()
    """Prompts that wait, in order."""
    outgoing: tuple[OutgoingPrompt, ...] = ()
    """Prompts on their way; only a client knows of them, see `show_outgoing`."""
    todos: tuple[Todo, ...] = ()
    """The agent's plan."""
    notices: tuple[NoticeView, ...] = ()
    """The last notices, 20 at most, oldest first."""
    older_notices: bool = False
    """Whether there were notices before these."""
    usage: Usage = Usage()
    """The sum over all ended turns, and over summaries made between them."""
    cost: float | None = 0.0
    """US dollars of all steps, summaries and sub-agents; `None` once one of them is unknown."""
    context: Context | None = None
    """How full the model's window is."""
    fault: Fault | None = None
    """The last fault; a turn that completes clears it."""
    unknown: int = 0
    """Events of a kind this reader does not know."""
    lost: bool = False
    """Whether something was missed: the view must be fetched anew (C1.5, C4.2)."""

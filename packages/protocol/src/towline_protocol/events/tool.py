"""Tool events, those of client tools and of files included."""

from typing import Any

from towline_protocol.artifacts import Artifact
from towline_protocol.content import ResultBlock
from towline_protocol.events.data import Data, EventData
from towline_protocol.ids import CallId, SessionId
from towline_protocol.messages import Usage

__all__ = [
    "ClientCallClaimed",
    "ClientCallOffered",
    "ClientTool",
    "FileChange",
    "FilesChanged",
    "Preview",
    "Process",
    "ToolDeclaration",
    "ToolEnded",
    "ToolOutputDelta",
    "ToolProgress",
    "ToolProposed",
    "ToolStarted",
]


class Preview(Data, frozen=True, kw_only=True):
    """What a person sees before a call runs (A5.59)."""

    kind: str
    """`command`, `diff`, `url` or `text`."""
    text: str
    """The whole of it."""
    truncated: bool = False
    """Whether something is missing; then it must not be approved (W07)."""


class Process(Data, frozen=True, kw_only=True):
    """A program that runs for a call (C5.6)."""

    pid: int
    """Its process id."""
    group: int
    """Its process group."""
    started: str
    """Its start time as the system tells it: how a reused pid is told apart."""


class ToolProposed(EventData, frozen=True, kw_only=True, tag="tool_proposed"):
    """The model asked for a tool; nothing has run."""

    call: CallId
    """The call."""
    tool: str
    """The tool's name."""
    arguments: str
    """JSON text as the model wrote it; of a long one the ends, with a mark (C1.10)."""
    title: str
    """One line for a person."""
    effect: str
    """`read`, `write`, `exec`, `network` or `own` (A5.42)."""
    preview: Preview | None = None
    """What it would do."""
    arguments_file: str | None = None
    """The content hash of the whole arguments, when they are too long for an event."""


class ToolStarted(EventData, frozen=True, kw_only=True, tag="tool_started"):
    """The call runs; committed before its side effect (C5.5)."""

    call: CallId
    """The call."""
    process: Process | None = None
    """The program it started."""
    child: SessionId | None = None
    """The session of the sub-agent that does it (D5)."""


class ToolProgress(EventData, frozen=True, kw_only=True, tag="tool_progress"):
    """How far a call is; not stored."""

    call: CallId
    """The call."""
    text: str
    """One line."""
    fraction: float | None = None
    """From 0 to 1; `None` when unknown."""


class ToolOutputDelta(EventData, frozen=True, kw_only=True, tag="tool_output_delta"):
    """More output of a running call; not stored."""

    call: CallId
    """The call."""
    at: int
    """Code points of its output before this piece."""
    text: str
    """The piece."""


class FileChange(Data, frozen=True, kw_only=True):
    """One file that a call changed."""

    path: str
    """Relative to the root."""
    kind: str
    """`created`, `changed`, `deleted` or `moved`; of a folder, with all that is in it."""
    source: str | None = None
    """Where it stood before it was moved."""
    before: str | None = None
    """Content hash before; `None` for folders and links too."""
    after: str | None = None
    """Content hash after; `None` for folders and links too."""
    before_mode: int | None = None
    """Permission bits before, if they changed."""
    after_mode: int | None = None
    """Permission bits after, if they changed."""
    diff: str | None = None
    """Unified diff; `None` for what is no text."""
    truncated: bool = False
    """Whether `diff` is only the head of it."""


class ToolEnded(EventData, frozen=True, kw_only=True, tag="tool_ended"):
    """What the call came to."""

    call: CallId
    """The call."""
    status: str
    """`completed`, `failed`, `denied`, `cancelled` or `unknown`."""
    content: tuple[ResultBlock, ...]
    """What the model is told."""
    is_error: bool = False
    """Whether it is told as an error."""
    duration_ms: int = 0
    """Milliseconds from start to end; 0 when it never started."""
    artifacts: tuple[Artifact, ...] = ()
    """What it made or found."""
    files: tuple[str, ...] = ()
    """Content hashes of files it left, its whole output among them when that is long."""
    usage: Usage | None = None
    """Tokens that a sub-agent used for it, which count in the turn (D5); `None` for none."""
    cost: float | None = None
    """US dollars of these; `None` when a price is unknown."""


class ClientTool(Data, frozen=True, kw_only=True):
    """A tool that runs in a client: a phone, an app, an editor (C5.12)."""

    name: str
    """Letters, digits, `_` and `-`; 64 at most."""
    description: str
    """What it does and when to use it, for the model."""
    parameters: dict[str, Any]
    """JSON Schema of the arguments, an object."""
    effect: str = "write"
    """`read`, `write`, `exec` or `network`; counts only if the agent trusts its clients."""
    idempotent: bool = False
    """Whether running it twice is harmless, so that a second client may."""
    timeout_s: float = 120.0
    """Seconds from the offer to the deadline, 1 to 600."""


class ToolDeclaration(Data, frozen=True, kw_only=True):
    """The tools of one client, in place of those that it declared before."""

    reader: str
    """How the client names itself."""
    tools: tuple[ClientTool, ...] = ()
    """What it can run; none when it takes them back."""


class ClientCallOffered(EventData, frozen=True, kw_only=True, tag="client_call_offered"):
    """A call waits for a client; the same call again replaces the offer."""

    call: CallId
    """The call."""
    expires_at: str
    """RFC 3339 server time."""
    to: str | None = None
    """The client that has it already and is to go on; `None` for all that declared the tool."""


class ClientCallClaimed(EventData, frozen=True, kw_only=True, tag="client_call_claimed"):
    """A client took a call."""

    call: CallId
    """The call."""
    by: str
    """Who."""


class FilesChanged(EventData, frozen=True, kw_only=True, tag="files_changed"):
    """A call changed files."""

    call: CallId
    """The call."""
    changes: tuple[FileChange, ...]
    """What changed."""

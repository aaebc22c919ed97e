"""Tool events, those of client tools and of files included."""

from towline_protocol.artifacts import Artifact
from towline_protocol.content import ResultBlock
from towline_protocol.events.data import Data, EventData
from towline_protocol.ids import CallId

__all__ = [
    "ClientCallClaimed",
    "ClientCallOffered",
    "FileChange",
    "FilesChanged",
    "Preview",
    "Process",
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
    """JSON text as the model wrote it."""
    title: str
    """One line for a person."""
    effect: str
    """`read`, `write`, `exec`, `network` or `own` (A5.42)."""
    preview: Preview | None = None
    """What it would do."""


class ToolStarted(EventData, frozen=True, kw_only=True, tag="tool_started"):
    """The call runs; committed before its side effect (C5.5)."""

    call: CallId
    """The call."""
    process: Process | None = None
    """The program it started."""


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
    """`created`, `changed`, `deleted` or `moved`."""
    before: str | None = None
    """Content hash before."""
    after: str | None = None
    """Content hash after."""
    diff: str | None = None
    """Unified diff."""


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
    """Content hashes of files it left."""


class ClientCallOffered(EventData, frozen=True, kw_only=True, tag="client_call_offered"):
    """A call waits for a client to take it."""

    call: CallId
    """The call."""
    expires_at: str
    """RFC 3339 server time."""


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

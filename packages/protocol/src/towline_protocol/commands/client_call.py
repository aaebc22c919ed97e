"""Tools that run in a client: declared, taken, answered (C5.12)."""

from towline_protocol.commands.body import Body
from towline_protocol.content import Image, Text
from towline_protocol.events import ClientTool
from towline_protocol.ids import CallId

__all__ = [
    "ClaimCall",
    "ClientBlock",
    "ClientCall",
    "ClientCallEnded",
    "DeclareTools",
    "ReportProgress",
    "SendResult",
    "ToolsDeclared",
]


class DeclareTools(Body, frozen=True, kw_only=True):
    """What a client can run, in place of what it declared before."""

    reader: str
    """How the client names itself, as in the `reader` of its event stream."""
    tools: tuple[ClientTool, ...] = ()
    """Its tools; none to take them back."""


class ToolsDeclared(Body, frozen=True, kw_only=True):
    """The declaration is kept; it counts from the next turn on."""

    reader: str
    """The client."""
    tools: tuple[str, ...]
    """The names of all tools that clients of the session run now."""


class ClaimCall(Body, frozen=True, kw_only=True):
    """A client is about to run a call."""

    reader: str
    """How the client names itself."""


class ClientCall(Body, frozen=True, kw_only=True):
    """A call that belongs to one client now."""

    call: CallId
    """The call."""
    tool: str
    """The tool's name."""
    arguments: str
    """JSON text that fits the tool's parameters."""
    by: str
    """The client that has it."""
    expires_at: str
    """When its result must be there, RFC 3339 server time."""


class ReportProgress(Body, frozen=True, kw_only=True):
    """How far a call is; shown, never stored."""

    reader: str
    """The client that has the call."""
    text: str
    """One line."""
    fraction: float | None = None
    """From 0 to 1; `None` when unknown."""


ClientBlock = Text | Image
"""What a client may answer a call with."""


class SendResult(Body, frozen=True, kw_only=True):
    """What a call came to."""

    reader: str
    """The client that has the call."""
    content: tuple[ClientBlock, ...] = ()
    """What the model is told; pictures with their bytes as base 64."""
    is_error: bool = False
    """Whether it is told as an error."""


class ClientCallEnded(Body, frozen=True, kw_only=True):
    """The result is kept."""

    call: CallId
    """The call."""
    status: str
    """`completed` or `failed`."""

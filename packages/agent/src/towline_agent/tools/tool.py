"""What a tool is (A4.43, A4.56 to A4.58, A5.42)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from towline_agent.permissions.part import Part
from towline_agent.tools.state import ToolState
from towline_agent.workspaces.base import Workspace
from towline_protocol import (
    Artifact,
    CallId,
    FileChange,
    Preview,
    Process,
    ResultBlock,
    SessionId,
    Todo,
    Usage,
)

__all__ = ["EFFECTS", "Look", "Part", "Tool", "ToolContext", "ToolOutput"]

EFFECTS: Final = ("read", "write", "exec", "network", "own")
"""What a call may do to the world (A5.42)."""


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to, in full."""

    content: tuple[ResultBlock, ...]
    """What the model is told."""
    is_error: bool = False
    """Whether it is told as an error."""
    artifacts: tuple[Artifact, ...] = ()
    """What screens show of it."""
    changes: tuple[FileChange, ...] = ()
    """Files it changed."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is about, found out before anybody decides on it."""

    parts: tuple[Part, ...]
    """All that it would do; at least one."""
    whole: str | None = None
    """The call in one line, such as a command of several parts as it was written: what a rule for
    the session names when more than one part asks. `None` when no line says all of it."""
    preview: Preview | None = None
    """What a person sees (A5.59); `None` for the tool's own preview."""
    bases: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Path to hash of each file that the preview shows, `ABSENT` for one that is to be made; part
    of the digest, and handed to the call, so that it changes nothing else (A5.62, A5.63)."""


class ToolContext(Protocol):
    """What a running tool may use."""

    call: CallId
    """The call's id."""
    workspace: Workspace
    """The fenced folder."""
    result_limit: int
    """Characters that the model is told of the result; a tool that pages keeps to it (A4.20)."""
    state: ToolState
    """What tools keep for this conversation."""
    bases: Mapping[str, str]
    """The hashes of the files as they were looked at, if the tool has a `look`."""

    def output(self, text: str) -> None:
        """Show a piece of output while the call runs."""
        ...

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Show how far the call is."""
        ...

    async def start(self, process: Process | None, child: SessionId | None = None) -> None:
        """Make a start durable before its effect; only for tools with `journals`.

        Args:
            process: The program that runs for the call.
            child: The session of the sub-agent that does it.
        """
        ...

    def todos(self, todos: tuple[Todo, ...]) -> None:
        """Show the agent's plan, whole."""
        ...

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Count what was used for the call elsewhere, by a sub-agent, to the turn (D5).

        Args:
            usage: Tokens.
            cost: US dollars; `None` when a price is unknown.
        """
        ...

    def used_up(self) -> str | None:
        """Why nothing more may be used for the turn, as its stop reason; `None` while it may."""
        ...


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: its words for the model, its effect, and the function that runs it."""

    name: str
    """Letters, digits, `_` and `-`; 64 at most."""
    description: str
    """What it does and when to use it, for the model."""
    parameters: dict[str, Any]
    """JSON Schema of the arguments, an object."""
    run: Callable[[ToolContext, dict[str, Any]], Awaitable[ToolOutput]]
    """Takes checked arguments; raises `ToolError` for what the model should hear."""
    check: Callable[[str], dict[str, Any]]
    """The arguments' JSON text as what `run` takes; raises `ToolInputInvalid`, nothing else."""
    effect: str = "write"
    """One of `EFFECTS`; drives concurrency, permission and recovery (A5.43)."""
    idempotent: bool = False
    """Whether running it twice is harmless, so that recovery may (C5.5)."""
    irreversible: bool = False
    """Whether nothing brings back what it does: then no mode lets it pass, only a rule or a person
    (A5.42)."""
    timeout_s: float | None = 120.0
    """Seconds it may take; `None` for a tool that bounds itself."""
    journals: bool = False
    """Whether it awaits `ToolContext.start` itself, once, before its effect."""
    threaded: bool = False
    """Whether it runs in a thread, which nothing can stop: cut short, it ends `unknown` (A4.26)."""
    together: bool = False
    """Whether calls of it that follow one another run at the same time; `read` calls always do."""
    rooted: bool = True
    """Whether it may work in the workspace; only then is a model told where that is (A4.10)."""
    title: Callable[[dict[str, Any]], str] | None = None
    """One line for a person; `None` for the tool's name."""
    subject: Callable[[dict[str, Any]], str] | None = None
    """What a permission rule is matched against: a path, a command line, a URL."""
    preview: Callable[[dict[str, Any]], Preview] | None = None
    """What a person sees before it runs; `None` for the arguments as they are."""
    reason: str | None = None
    """Why a person is asked, as a sentence; `None` for what the effect means."""
    look: Callable[[ToolContext, dict[str, Any]], Awaitable[Look]] | None = None
    """Looks at the world before anybody decides: what the call would do, part by part, what it
    shows people and what that rests on. It changes nothing; what it raises ends the call."""

"""What a turn works with: the same for all its steps."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from towline_agent.host import Clock, Mint
from towline_agent.limits import Slot
from towline_agent.permissions.doubt import Judge
from towline_agent.permissions.policy import Policy
from towline_agent.permissions.rules import Rule
from towline_agent.providers.base import Controls, Provider
from towline_agent.tools.output import OutputSpec
from towline_agent.tools.state import ToolState
from towline_agent.tools.toolset import Toolset
from towline_agent.workspaces.base import Workspace
from towline_protocol import CallId, Limits, PermissionRequested, PermissionResolved

__all__ = ["CallRecord", "Plan"]


def _jitter() -> float:
    import random  # asked for by retries alone, and slow to import

    return random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, guards nothing


def _never() -> None:
    return None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that the loop needs beside the conversation."""

    provider: Provider
    """Who is asked."""
    system: str
    """The stable system prefix (A4.3, A4.5)."""
    tools: Toolset
    """What the model may call, in the order it is told."""
    workspace: Workspace
    """Where tools work."""
    clock: Clock
    """Time."""
    mint: Mint
    """Ids."""
    state: ToolState = msgspec.field(default_factory=ToolState)
    """What tools keep for the conversation; whoever made it closes it."""
    mode: str = "ask"
    """The permission mode."""
    rules: list[Rule] = msgspec.field(default_factory=list[Rule])
    """The session's rules; grows when a person allows something for the session."""
    policy: Callable[[], Policy] = Policy
    """Asked with each call for the rules that stand beside them."""
    judge: Judge | None = None
    """Looks at what would run unasked (A5.70)."""
    limits: Limits = Limits()
    """The bounds of the turn."""
    used_up: Callable[[], str | None] = _never
    """Asked before each step for a bound that the host holds several turns to: the stop reason once
    it is reached (A4.8)."""
    slot: Slot | None = None
    """Shared by all who ask the same model, when it serves few at once."""
    jitter: Callable[[], float] = _jitter
    """A factor round 1 for retry delays, so that many do not come back at once."""
    hand_over: bool = True
    """Whether the step limit earns one last request for a hand-over (A4.4, A4.55)."""
    fallbacks: tuple[Provider, ...] = ()
    """Who is asked, in this order, when the provider cannot serve (A3.35)."""
    effort: str | None = None
    """How much the model should think (A1.15)."""
    controls: Controls = Controls()
    """How the model should write (A1.16)."""
    output: OutputSpec[Any] | None = None
    """The type that the last answer must have (A4.60)."""
    reminders: Callable[[], Sequence[str]] = tuple
    """What the host reminds the model of at the end of each request (A4.12)."""
    zone: str = ""
    """The local time zone's name, for the date in the reminder."""
    server_tools: tuple[str, ...] = ()
    """Tools of the provider's own that it may use (A2.60)."""
    live: bool = True
    """Whether somebody follows the words as they come; else each message is told as a whole."""
    cache_key: str = ""
    """What the requests of one conversation share: its id (A2.29)."""
    keep: Callable[[str, str], str | None] | None = None
    """Keeps a long output, whole, under a name, and gives its hash for `ToolEnded.files` (C1.10);
    `None` where nothing is kept."""


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says already of a call that a crash cut (C5.5)."""

    call: CallId
    """The call."""
    proposed: bool = False
    """`tool_proposed` is in the log."""
    request: PermissionRequested | None = None
    """The newest `permission_requested`."""
    decision: PermissionResolved | None = None
    """`permission_resolved`."""
    started: bool = False
    """`tool_started` is in the log: the effect may have happened."""

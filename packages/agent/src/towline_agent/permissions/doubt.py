"""A second look at what would run unasked: it may turn an allowance into a question (A5.70)."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from towline_agent.permissions.part import Part

__all__ = ["Allowed", "Judge"]


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """A call that rules and mode let pass."""

    tool: str
    """The tool's name."""
    effect: str
    """What it does to the world."""
    arguments: str
    """The JSON text as the model proposed it."""
    parts: tuple[Part, ...]
    """What it would do."""
    reason: str
    """Which rule or mode let it pass."""


Judge = Callable[[Allowed], Coroutine[Any, Any, str | None]]
"""An async function that looks at a call that would run unasked, by a model for instance. It
returns a sentence why a person should be asked, or `None` to let it pass; what it raises asks too.
What asks or is denied already never reaches it, so it can't make anything looser."""

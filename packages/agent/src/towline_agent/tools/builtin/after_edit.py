"""What is told after an edit: each hook adds to the result of what changed files (A5.11)."""

from collections.abc import Awaitable, Callable
from typing import Final

from towline_agent.tools.tool import ToolContext
from towline_protocol import FileChange

__all__ = ["AFTER_EDIT", "tell_after_edit"]

AFTER_EDIT: Final[list[Callable[[ToolContext, tuple[FileChange, ...]], Awaitable[str]]]] = []
"""Each takes what was changed, and returns what the model should know of it; an empty text for
nothing."""


async def tell_after_edit(context: ToolContext, changes: tuple[FileChange, ...]) -> str:
    """What all hooks say; empty when none has anything to say.

    Args:
        context: The call.
        changes: What was changed.
    """
    told = [await hook(context, changes) for hook in AFTER_EDIT] if changes else []
    return "\n".join(text for text in told if text)

"""What is told after an edit: each hook adds to the result of what changed files (A5.11)."""

from collections.abc import Awaitable, Callable
from typing import Final

from towline_agent.tools.tool import ToolContext

__all__ = ["AFTER_EDIT", "tell_after_edit"]

AFTER_EDIT: Final[list[Callable[[ToolContext, tuple[str, ...]], Awaitable[str]]]] = []
"""Each takes the paths of the files that were written, and returns what the model should know of
them; an empty text for nothing."""


async def tell_after_edit(context: ToolContext, paths: tuple[str, ...]) -> str:
    """What all hooks say; empty when none has anything to say.

    Args:
        context: The call.
        paths: The files that were written, relative to the root.
    """
    told = [await hook(context, paths) for hook in AFTER_EDIT] if paths else []
    return "\n".join(text for text in told if text)

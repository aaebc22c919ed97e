"""What looks at files after a tool has changed them (A5.11)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from towline_agent.tools.builtin.new_findings import tell_new_findings
from towline_agent.tools.tool import ToolContext

__all__ = ["AFTER_EDIT", "AfterEdit", "tell_after_edit"]

AfterEdit = Callable[[ToolContext, Mapping[str, bytes]], Awaitable[str]]
"""Takes the context and the changed files, path to the bytes before (empty for a new file); returns
what the model should hear, empty for nothing."""

AFTER_EDIT: Final[list[AfterEdit]] = [tell_new_findings]
"""Asked in order, after each edit that was written."""


async def tell_after_edit(context: ToolContext, changed: Mapping[str, bytes]) -> str:
    """What all of them say of an edit, a blank line between; empty when none says anything.

    Args:
        context: The call that changed the files.
        changed: Path to the bytes before, empty for a file that is new. The files that are gone
            are left out.
    """
    said = [await look(context, changed) for look in AFTER_EDIT]
    return "\n\n".join(words for words in said if words)

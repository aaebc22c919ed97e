"""The notes that the agent keeps on a folder, for a run: those that sessions have, too."""

from towline_agent import Tool, ToolError, make_memory_tools
from towline_server import OWNER, Config, notes_of, tell_notes

__all__ = ["take_notes"]


async def take_notes(config: Config, root: str) -> tuple[str, tuple[Tool, ...]]:
    """What the agent noted down on a folder, in words for its instructions, and its tools for that.

    Args:
        config: Says where they are kept.
        root: The folder that is worked in.
    """
    notes = notes_of(config.data_dir / "notes", OWNER)
    try:
        text = await notes.read(root)
    except ToolError:  # a run does without them, and the tool says why
        text = ""
    return tell_notes(text) if text else "", make_memory_tools(notes)

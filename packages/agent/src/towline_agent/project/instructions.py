"""A project's own words to its agents: `AGENTS.md`, else `CLAUDE.md` (A5.82)."""

import posixpath
from collections.abc import Iterator
from typing import Final

from towline_agent.errors import ToolError
from towline_agent.project.mentioned import read_unasked
from towline_agent.project.tag import wrap_text
from towline_agent.workspaces.base import Workspace

__all__ = ["INSTRUCTIONS_CHARS", "INSTRUCTION_FILES", "find_instructions"]

INSTRUCTION_FILES: Final = ("AGENTS.md", "CLAUDE.md")
"""The first of these that a folder has counts."""
INSTRUCTIONS_CHARS: Final = 6_000
"""Characters of them all: they go with every request."""

_CUT: Final = "\n[… the rest is left out …]"


async def find_instructions(top: Workspace, folder: str = ".") -> str:
    """What a folder and those above it say to agents, the nearest first; empty when nothing does.

    Args:
        top: The highest folder that may be looked at.
        folder: Where the work is done, relative to that.
    """
    room = INSTRUCTIONS_CHARS
    found: list[str] = []
    for place in _upwards(folder):
        named = await _first(top, place)
        if named is None or room <= 0:
            continue
        path, text = named
        shown = text if len(text) <= room else text[: max(0, room - len(_CUT))] + _CUT
        room -= len(shown)
        found.append(wrap_text("project-instructions", shown, path=path))
    return "\n\n".join(found)


def _upwards(folder: str) -> Iterator[str]:
    place = posixpath.normpath(folder)
    while place not in (".", "/", "") and not place.startswith(".."):
        yield place
        place = posixpath.dirname(place)
    yield "."


async def _first(top: Workspace, place: str) -> tuple[str, str] | None:
    for name in INSTRUCTION_FILES:
        path = posixpath.normpath(posixpath.join(place, name))
        try:
            file = await read_unasked(top, path)
        except ToolError:  # there is none, or none that may be read
            continue
        text = file.data.decode("utf-8-sig", "replace").replace("\0", "").strip()
        if text:
            return path, text
    return None

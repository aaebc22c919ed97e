"""A project's own words to its agents."""

import pytest

from towline_agent.project.instructions import INSTRUCTIONS_CHARS, find_instructions
from towline_agent.workspaces.memory import MemoryWorkspace


@pytest.mark.rules("A5.82")
async def test_the_nearest_words_come_first_and_agents_before_claude() -> None:
    files = {
        "AGENTS.md": "top",
        "a/CLAUDE.md": "middle",
        "a/b/AGENTS.md": "near",
        "a/b/CLAUDE.md": "not this",
        "c/AGENTS.md": "elsewhere",
    }
    words = await find_instructions(MemoryWorkspace(files), "a/b")
    assert words == (
        '<project-instructions path="a/b/AGENTS.md">\nnear\n</project-instructions>\n\n'
        '<project-instructions path="a/CLAUDE.md">\nmiddle\n</project-instructions>\n\n'
        '<project-instructions path="AGENTS.md">\ntop\n</project-instructions>'
    )


@pytest.mark.rules("A5.82", "A5.83")
async def test_they_are_bounded_together_and_close_no_tag_of_ours() -> None:
    files = {"AGENTS.md": "y" * 9_000, "a/AGENTS.md": "</project-instructions>" + "x" * 4_000}
    words = await find_instructions(MemoryWorkspace(files), "a")
    assert words.count("</project-instructions>") == 2
    assert len(words) + 100 > INSTRUCTIONS_CHARS
    assert len(words) < INSTRUCTIONS_CHARS + 300
    assert "the rest is left out" in words


async def test_a_folder_that_says_nothing_adds_nothing() -> None:
    assert await find_instructions(MemoryWorkspace({"AGENTS.md": " \n"}), ".") == ""
    assert await find_instructions(MemoryWorkspace(), "a/../..") == ""

"""Notes on a project, from one conversation to the next."""

from pathlib import Path

import pytest

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.memory import MAX_NOTES, Notes, make_memory_tools
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.base import ABSENT
from towline_protocol import block_text


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


class Talk:
    """One conversation's calls of the two tools."""

    def __init__(self, folder: Path) -> None:
        self._context = MemoryContext()
        self._read, self._write = make_memory_tools(Notes(folder))

    async def read(self) -> str:
        return block_text((await self._read.run(self._context, {})).content)

    async def write(self, text: str) -> str:
        return block_text((await self._write.run(self._context, {"text": text})).content)


@pytest.mark.rules("A5.T16", "A5.36")
async def test_what_one_conversation_notes_another_one_reads(tmp_path: Path) -> None:
    one, two = Talk(tmp_path / "notes"), Talk(tmp_path / "notes")
    assert await one.read() == "There are no notes yet."
    assert await one.write("# Tests\nuse pytest") == f"Noted: 18 of {MAX_NOTES} bytes."
    assert "\n# Tests\nuse pytest\n" in await two.read()
    await two.write("")
    assert await two.read() == "There are no notes yet."
    assert names(tmp_path / "notes") == []


@pytest.mark.rules("A5.36")
async def test_notes_that_were_not_seen_are_not_overwritten(tmp_path: Path) -> None:
    one, two = Talk(tmp_path), Talk(tmp_path)
    await one.write("mine")
    with pytest.raises(ToolError, match="read_memory"):
        await two.write("yours")
    await two.read()
    await two.write("yours")
    with pytest.raises(ToolError, match="read_memory"):
        await one.write("mine again")
    assert "yours" in await one.read()


async def test_projects_have_notes_of_their_own_that_nobody_else_reads(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    paths = [notes.path(root) for root in ("/a/b c", "/a/b-c", "/", "/x/" + "y" * 300, "/a/../b")]
    assert len(set(paths)) == len(paths)
    assert all(path.parent == tmp_path / "notes" for path in paths)
    await notes.write("/a/b c", "text", ABSENT)
    assert paths[0].stat().st_mode & 0o777 == 0o600
    assert paths[0].parent.stat().st_mode & 0o777 == 0o700
    assert await notes.read("/a/b-c") == ""


@pytest.mark.rules("A5.36")
async def test_notes_are_bounded_and_whole(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    with pytest.raises(ToolInputInvalid, match=str(MAX_NOTES)):
        await notes.write("/a", "ü" * (MAX_NOTES // 2 + 1), ABSENT)
    await notes.write("/a", "x" * MAX_NOTES, ABSENT)
    assert len(await notes.read("/a")) == MAX_NOTES
    assert names(tmp_path) == [notes.path("/a").name]


async def test_a_folder_that_can_not_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    notes = Notes(tmp_path / "file")
    with pytest.raises(ToolError, match="cannot be"):
        await notes.write("/a", "x", ABSENT)
    notes.path("/b").parent.unlink()
    notes.path("/b").mkdir(parents=True)
    with pytest.raises(ToolError, match="cannot be read"):
        await notes.read("/b")

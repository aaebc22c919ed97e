"""What a conversation has seen of files."""

from pathlib import Path

import pytest

from towline_agent import Agent, tool
from towline_agent.testing import ScriptedProvider, call
from towline_agent.tools.builtin.files import read_file
from towline_agent.workspaces.base import Put, Remove, hash_bytes
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_agent.workspaces.seen import KEPT_MAX, Seen


@pytest.mark.rules("A5.15")
async def test_a_file_counts_as_seen_until_others_change_it() -> None:
    workspace = MemoryWorkspace({"a": "1", "b": "2", "c": "3"})
    seen = Seen()
    for path in ("a", "b"):
        seen.note(path, await workspace.read(path))
    assert await seen.changed(workspace) == ()
    await workspace.apply(
        (Put(path="b", data=b"other"), Remove(path="a"), Put(path="c", data=b"new"))
    )
    assert await seen.changed(workspace) == ("a", "b")
    seen.note("b", await workspace.read("b"))
    seen.forget("a")
    assert await seen.changed(workspace) == ()


@pytest.mark.rules("A5.15")
async def test_a_file_that_was_touched_but_holds_the_same_is_not_changed() -> None:
    workspace = MemoryWorkspace({"a": "1"})
    seen = Seen()
    seen.note("a", await workspace.read("a"))
    await workspace.apply((Put(path="a", data=b"2"),))
    await workspace.apply((Put(path="a", data=b"1"),))
    assert await seen.changed(workspace) == ()


async def test_what_moves_is_known_by_its_new_path() -> None:
    seen = Seen()
    for path in ("src/a", "src/b/c", "srcs"):
        seen.note_written(path, hash_bytes(path.encode()))
    seen.note_moved("src", "lib")
    for old, new in (("src/a", "lib/a"), ("src/b/c", "lib/b/c"), ("srcs", "srcs")):
        kept = seen.get(new)
        assert kept is not None
        assert kept.hash == hash_bytes(old.encode())
    assert seen.get("src/a") is None
    seen.forget("lib")
    assert seen.get("lib/b/c") is None


async def test_only_the_files_seen_last_are_kept() -> None:
    seen = Seen()
    for number in range(KEPT_MAX):
        seen.note_written(str(number), "x")
    seen.note_written("0", "y")
    seen.note_written("new", "x")
    assert seen.get("1") is None
    assert seen.get("0") is not None


async def test_what_lies_outside_is_not_looked_at_unasked() -> None:
    seen = Seen()
    seen.note_written("/outside/a", "x")
    assert await seen.changed(MemoryWorkspace()) == ()


@pytest.mark.rules("A4.12")
async def test_a_model_is_reminded_of_files_that_others_changed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")

    @tool
    async def meddle() -> str:
        """Be somebody else."""
        (tmp_path / "a.txt").write_text("new")
        return "done"

    provider = ScriptedProvider(call("read_file", path="a.txt"), call("meddle"), "Well.")
    agent = Agent(provider, tools=[read_file, meddle], root=str(tmp_path))
    await agent.run("Look")
    first, second, third = (request.trailing for request in provider.requests)
    assert "a.txt" not in first + second
    assert "changed or removed since you saw them, and not by you" in third
    assert "- a.txt" in third


@pytest.mark.rules("A4.12")
async def test_many_changed_files_are_told_in_few_lines() -> None:
    workspace = MemoryWorkspace({f"f{number:02}": "1" for number in range(30)})
    seen = Seen()
    assert seen.remind() == ()
    for path in list(workspace.files):
        seen.note(path, await workspace.read(path))
    await workspace.apply(tuple(Put(path=path, data=b"2") for path in list(workspace.files)))
    await seen.refresh(workspace)
    (told,) = seen.remind()
    assert told.count("\n- f") == 20
    assert told.endswith("- and 10 more")

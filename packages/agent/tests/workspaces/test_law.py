"""The law of workspaces: on disk and in memory the same edits come to the same."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import (
    ABSENT,
    Edit,
    MakeDir,
    Move,
    Put,
    Remove,
    Workspace,
    hash_bytes,
)
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace

_DATA = (b"", b"one\n", b"two\n", b"one\ntwo", b"\0")
_PATHS = st.one_of(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join),
    st.sampled_from([".", "", "a/", "a/../b", "./a", "a/.", "../x", "/", "a/../..", "a//b", "A"]),
)
_EXPECT = st.sampled_from([None, None, None, ABSENT, *map(hash_bytes, _DATA)])
_EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.builds(
        Put,
        path=_PATHS,
        data=st.sampled_from(_DATA),
        mode=st.sampled_from([None, None, 0o644, 0o755, 0o444]),
        expect=_EXPECT,
    ),
    st.builds(MakeDir, path=_PATHS),
    st.builds(Remove, path=_PATHS, expect=_EXPECT),
    st.builds(Move, source=_PATHS, target=_PATHS, expect=_EXPECT),
)

_Tree = dict[str, tuple[str, bytes, int]]


async def _tree(workspace: Workspace) -> _Tree:
    found: _Tree = {}
    for entry in (await workspace.walk(".", ignored=True)).entries:
        if entry.kind == "file":
            file = await workspace.read(entry.name)
            assert entry.size == len(file.data)
            found[entry.name] = (entry.kind, file.data, file.mode)
        else:
            found[entry.name] = (entry.kind, b"", 0)
    return found


async def _apply(workspace: Workspace, edits: tuple[Edit, ...]) -> object:
    before = await _tree(workspace)
    try:
        return await workspace.apply(edits)
    except ToolError as error:
        assert await _tree(workspace) == before  # all or none
        # which of several faults is told first is left open
        return (type(error), error.message) if len(edits) == 1 else "failed"


async def _compare(batches: list[tuple[Edit, ...]], root: str) -> None:
    local = LocalWorkspace(root)
    memory = MemoryWorkspace(root=root)
    for edits in batches:
        assert await _apply(local, edits) == await _apply(memory, edits)
        tree = await _tree(local)
        assert tree == await _tree(memory)
        for path in ("a", "a/b", "none", ".."):
            results: list[object] = []
            for workspace in (local, memory):
                try:
                    walk = await workspace.walk(path)
                    results.append([(each.name, each.kind, each.size) for each in walk.entries])
                except ToolError as error:
                    results.append((type(error), error.message))
                try:
                    results.append((await workspace.read(path)).data)
                except ToolError as error:
                    results.append((type(error), error.message))
            assert results[:2] == results[2:]


@pytest.mark.rules("A5.1", "A5.3", "A5.12")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_EDITS, min_size=1, max_size=4).map(tuple), min_size=1, max_size=4))
def test_the_same_edits_come_to_the_same_on_disk_and_in_memory(
    batches: list[tuple[Edit, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        root.mkdir()
        asyncio.run(_compare(batches, str(root)))

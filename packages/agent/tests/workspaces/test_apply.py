"""Edits of files: all of them or none, the same on disk and in memory."""

from pathlib import Path

import pytest

from towline_agent.errors import ToolDenied, ToolError
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

FILES = {"a.txt": b"one\ntwo\n", "src/main.py": b"print(1)\n", "src/deep/x": b"\0"}


@pytest.fixture(params=["local", "memory"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    if request.param == "memory":
        return MemoryWorkspace(FILES, root=str(tmp_path))
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return LocalWorkspace(tmp_path)


async def _tree(workspace: Workspace) -> dict[str, bytes | None]:
    return {
        entry.name: (await workspace.read(entry.name)).data if entry.kind == "file" else None
        for entry in (await workspace.walk(".", ignored=True)).entries
    }


@pytest.mark.rules("A5.12")
async def test_each_kind_of_edit_is_done_and_told(workspace: Workspace) -> None:
    changes = await workspace.apply(
        (
            Put(path="a.txt", data=b"one\n2\n", expect=hash_bytes(FILES["a.txt"])),
            Put(path="new/b.txt", data=b"b", expect=ABSENT),
            MakeDir(path="empty"),
            Move(source="src/main.py", target="main.py"),
            Remove(path="src/deep"),
        )
    )
    assert await _tree(workspace) == {
        "a.txt": b"one\n2\n",
        "empty": None,
        "main.py": b"print(1)\n",
        "new": None,
        "new/b.txt": b"b",
        "src": None,
    }
    assert [(change.path, change.kind) for change in changes] == [
        ("a.txt", "changed"),
        ("new/b.txt", "created"),
        ("empty", "created"),
        ("main.py", "moved"),
        ("src/deep", "deleted"),
    ]
    assert changes[0].before == hash_bytes(FILES["a.txt"])
    assert changes[0].after == hash_bytes(b"one\n2\n")
    assert changes[0].diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


@pytest.mark.rules("A5.12", "A5.63")
@pytest.mark.parametrize(
    ("last", "told"),
    [
        (Put(path="a.txt", data=b"", expect=hash_bytes(b"other")), "changed since you looked"),
        (Put(path="gone", data=b"", expect=hash_bytes(b"other")), "changed since you looked"),
        (Put(path="a.txt", data=b"", expect=ABSENT), "something at 'a.txt' already"),
        (Put(path="src", data=b""), "is a folder"),
        (Put(path="a.txt/x", data=b""), "is no folder"),
        (Remove(path="a.txt", expect=hash_bytes(b"other")), "changed since you looked"),
        (Remove(path="gone"), "no file or folder 'gone'"),
        (Remove(path="."), "the whole folder"),
        (Move(source="gone", target="x"), "no file or folder 'gone'"),
        (Move(source="a.txt", target="src"), "something at 'src' already"),
        (Move(source="src", target="src/deep/y"), "into itself"),
        (Move(source="a.txt", target="x", expect=hash_bytes(b"no")), "changed since you looked"),
        (MakeDir(path="a.txt"), "something at 'a.txt' already"),
        (Put(path="new/b/late", data=b"", expect=ABSENT), "something at 'new/b/late' already"),
    ],
)
async def test_one_edit_that_fails_leaves_everything_as_it_was(
    workspace: Workspace, last: Edit, told: str
) -> None:
    before = await _tree(workspace)
    edits = (
        Put(path="new/b/late", data=b"b"),
        Put(path="src/main.py", data=b"other"),
        Move(source="src/deep/x", target="far/away/x"),
        last,
    )
    with pytest.raises(ToolError, match=told):
        await workspace.apply(edits)
    assert await _tree(workspace) == before


@pytest.mark.rules("A5.3")
async def test_an_edit_outside_is_denied(workspace: Workspace, tmp_path: Path) -> None:
    for edit in (
        Put(path="../x", data=b""),
        MakeDir(path="../x"),
        Remove(path="../x"),
        Move(source="a.txt", target="../x"),
        Move(source="../x", target="x"),
    ):
        with pytest.raises(ToolDenied, match="leads outside"):
            await workspace.apply((edit,))
    assert await _tree(workspace) == {**FILES, "src": None, "src/deep": None}


@pytest.mark.rules("A5.3")
async def test_a_place_outside_is_reached_once_it_is_granted(
    workspace: Workspace, tmp_path: Path
) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside" / "x"
    if isinstance(workspace, LocalWorkspace):
        outside.parent.mkdir()
    granted = workspace.grant(frozenset({str(outside)}))
    (change,) = await granted.apply((Put(path=str(outside), data=b"x"),))
    assert change.path == str(outside)
    assert (await granted.read(str(outside))).data == b"x"
    for path in (f"{outside}2", str(outside.parent)):
        with pytest.raises(ToolDenied):
            await granted.read(path)
    with pytest.raises(ToolDenied):
        await workspace.read(str(outside))

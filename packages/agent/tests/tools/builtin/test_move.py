"""The tools `create_dir`, `rename_path`, `move_path` and `delete_path`."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.permissions.gate import Case, judge
from towline_agent.tools.builtin.files import read_file
from towline_agent.tools.builtin.move import create_dir, delete_path, move_path, rename_path
from towline_agent.tools.builtin.write import edit_file
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces import walk
from towline_agent.workspaces.base import Put, hash_bytes
from towline_agent.workspaces.local import LocalWorkspace

Make = Callable[[Mapping[str, str | bytes]], MemoryContext]
FILES = {"a.txt": "a\n", "src/b.py": "b\n", "src/deep/c.py": "c\n", "src/.env": "KEY=1\n"}


async def _names(context: MemoryContext) -> list[str]:
    found = await context.workspace.walk(".", ignored=True)
    return [entry.name for entry in found.entries]


@pytest.mark.rules("A5.T7")
async def test_a_folder_is_made_with_those_above_it(make: Make) -> None:
    context = make(FILES)
    looked = await context.look(create_dir, path="new/deep")
    assert [(part.subject, part.effect) for part in looked.parts] == [("new/deep", "write")]
    assert await context.told(create_dir, path="new/deep") == "The folder 'new/deep' is there."
    assert await context.told(create_dir, path="new/deep") == "The folder 'new/deep' is there."
    assert {"new", "new/deep"} <= set(await _names(context))
    with pytest.raises(ToolError, match=r"There is something at 'a\.txt' already"):
        await context.use(create_dir, path="a.txt")


@pytest.mark.rules("A5.T7")
async def test_a_path_gets_another_name(make: Make) -> None:
    context = make(FILES)
    looked = await context.look(rename_path, path="a.txt", name="z.txt")
    assert [part.subject for part in looked.parts] == ["a.txt", "z.txt"]
    assert looked.bases == {"a.txt": hash_bytes(b"a\n")}
    assert looked.preview is not None
    assert looked.preview.text == "Move a.txt\nto z.txt"
    await context.use(read_file, path="a.txt")
    assert await context.told(rename_path, path="a.txt", name="z.txt") == (
        "Moved 'a.txt' to 'z.txt'."
    )
    edits = [{"old_text": "a", "new_text": "b"}]
    assert "Edited" in await context.told(edit_file, path="z.txt", edits=edits), "it was read"
    await context.use(rename_path, path="src/", name="lib")
    assert "lib/deep/c.py" in await _names(context)
    for name in ("", ".", "..", "x/y", "/x"):
        with pytest.raises(ToolInputInvalid, match="is no plain name"):
            rename_path.check(f'{{"path": "a", "name": "{name}"}}')


@pytest.mark.rules("A5.T7")
async def test_a_path_is_moved_and_nothing_is_overwritten(make: Make) -> None:
    context = make(FILES)
    output = await context.use(move_path, source="src/deep", target="lib/deeper")
    assert [change.kind for change in output.changes] == ["moved"]
    assert "lib/deeper/c.py" in await _names(context)
    for source, target, told in (
        ("a.txt", "src/b.py", "There is something at 'src/b.py' already"),
        ("none", "x", "There is no file or folder 'none'"),
        (".", "x", "is the whole folder"),
        ("a.txt", ".", "is the whole folder"),
        ("src", "src/x", "can't be moved into itself"),
        ("a.txt", "src/b.py/x", ""),
    ):
        before = await _names(context)
        with pytest.raises(ToolError) as caught:
            await context.use(move_path, source=source, target=target)
        assert told in caught.value.message
        assert await _names(context) == before


@pytest.mark.rules("A5.T7")
async def test_a_path_is_deleted(make: Make) -> None:
    context = make(FILES)
    looked = await context.look(delete_path, path="a.txt")
    assert looked.preview is not None
    assert looked.preview.text.endswith("-a\n")
    assert looked.bases == {"a.txt": hash_bytes(b"a\n")}
    assert await context.told(delete_path, path="a.txt") == "Deleted 'a.txt'."
    with pytest.raises(ToolError, match=r"There is no file or folder 'a\.txt'"):
        await context.use(delete_path, path="a.txt")
    with pytest.raises(ToolError, match="holds 3 files; set recursive"):
        await context.use(delete_path, path="src")
    looked = await context.look(delete_path, path="src", recursive=True)
    assert looked.preview is not None
    assert looked.preview.text == (
        "Delete the folder src with all in it: 3 files\n.env\nb.py\ndeep/c.py"
    )
    told = await context.told(delete_path, path="src", recursive=True)
    assert told == "Deleted the folder 'src' with 3 files."
    with pytest.raises(ToolError, match="is the whole folder"):
        await context.use(delete_path, path="./", recursive=True)


@pytest.mark.rules("A5.63")
async def test_a_folder_that_changed_since_it_was_looked_at_is_not_deleted(make: Make) -> None:
    context = make(FILES)
    looked = await context.look(delete_path, path="src", recursive=True)
    context.bases = looked.bases
    await context.workspace.apply((Put(path="src/new.py", data=b"of others\n"),))
    with pytest.raises(ToolError, match=r"'src/new\.py' changed since you looked"):
        await context.run(delete_path, path="src", recursive=True)


@pytest.mark.rules("A5.54", "A5.67")
async def test_what_is_grave_in_a_folder_is_judged_by_itself(make: Make) -> None:
    context = make({**FILES, "x/.towline/rules": "", "x/id_rsa": ""})
    looked = await context.look(move_path, source="src", target="pub")
    grave = [part.subject for part in looked.parts if part.caution]
    assert grave == ["src/.env", "pub/.env"]
    looked = await context.look(delete_path, path="x", recursive=True)
    firm = {part.subject: part.firm for part in looked.parts if part.caution}
    assert firm == {"x/.towline": True, "x/.towline/rules": True, "x/id_rsa": False}


@pytest.mark.rules("A5.67", "A5.69")
async def test_a_folder_that_cannot_all_be_looked_at_asks_in_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "big" / "z").mkdir(parents=True)
    for number in range(4):
        (tmp_path / "big" / f"f{number}").touch()
    (tmp_path / "big" / "z" / ".env").write_text("KEY=1\n")
    context = MemoryContext(LocalWorkspace(tmp_path))
    monkeypatch.setattr(walk, "WALK_MAX", 5)  # all but what stands in `z`
    for tool, arguments in (
        (delete_path, {"path": "big", "recursive": True}),
        (move_path, {"source": "big", "target": "other"}),
        (rename_path, {"path": "big", "name": "other"}),
    ):
        looked = await context.look(tool, **arguments)
        case = Case(tool=tool.name, effect="write", parts=looked.parts, mode="auto")
        verdict = judge(case)
        assert verdict.action == "ask"
        assert "big holds more than the 5 names that were looked at" in verdict.reason
    monkeypatch.undo()
    looked = await context.look(delete_path, path="big", recursive=True)
    assert [part.subject for part in looked.parts if part.caution] == ["big/z/.env"]


@pytest.mark.rules("A5.2")
async def test_a_link_itself_is_moved_and_deleted_never_what_it_leads_to(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("kept")
    (root / "link").symlink_to(tmp_path / "out")
    context = MemoryContext(LocalWorkspace(root))
    looked = await context.look(delete_path, path="link", recursive=True)
    assert [part.subject for part in looked.parts] == ["link"]
    await context.use(rename_path, path="link", name="other")
    assert (root / "other").readlink() == tmp_path / "out"
    await context.use(delete_path, path="other")
    assert (tmp_path / "out" / "kept").read_text() == "kept"
    (root / "link").symlink_to(tmp_path / "out")
    looked = await context.look(delete_path, path="link/kept")
    assert looked.parts[0].grants == (str(tmp_path / "out" / "kept"),)
    with pytest.raises(ToolDenied):
        await context.run(delete_path, path="link/kept")


@pytest.mark.rules("A5.3")
async def test_what_stands_outside_is_looked_at_only_when_it_is_allowed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "out.txt").write_text("hush")
    context = MemoryContext(LocalWorkspace(root))
    for path in ("../out.txt", "../none.txt"):
        looked = await context.look(delete_path, path=path)
        assert looked.preview is not None
        assert "hush" not in looked.preview.text
        looked = await context.look(move_path, source=path, target="in.txt")
        assert [bool(part.caution) for part in looked.parts] == [True, False]
    await context.use(move_path, source="../out.txt", target="in.txt")
    assert (root / "in.txt").read_text() == "hush"

"""The tools `create_file`, `write_file` and `edit_file`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.tools.builtin import after_edit
from towline_agent.tools.builtin.files import read_file
from towline_agent.tools.builtin.write import create_file, edit_file, write_file
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.base import ABSENT, Put, hash_bytes
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace

Make = Callable[[Mapping[str, str | bytes]], MemoryContext]


async def _data(context: MemoryContext, path: str) -> bytes:
    return (await context.workspace.read(path)).data


async def _change(context: MemoryContext, path: str, text: str) -> None:
    """As another program would."""
    await context.workspace.apply((Put(path=path, data=text.encode()),))


def _edits(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"old_text": old, "new_text": new} for old, new in pairs]


@pytest.mark.rules("A5.T6")
async def test_a_file_is_made_with_the_folders_above_it(make: Make) -> None:
    context = make({})
    looked = await context.look(create_file, path="./src/new.py", content="a\nb\n")
    assert [(part.subject, part.kind, part.effect) for part in looked.parts] == [
        ("src/new.py", "path", "write")
    ]
    assert looked.bases == {"src/new.py": ABSENT}
    assert looked.preview is not None
    assert looked.preview.kind == "diff"
    assert looked.preview.text.endswith("@@ -0,0 +1,2 @@\n+a\n+b\n")
    with pytest.raises(ToolError, match="There is no file"):
        await _data(context, "src/new.py")  # a look changes nothing
    output = await context.use(create_file, path="src/new.py", content="a\nb\n")
    assert [(change.path, change.kind) for change in output.changes] == [("src/new.py", "created")]
    assert await _data(context, "src/new.py") == b"a\nb\n"
    told = await context.told(edit_file, path="src/new.py", edits=_edits(("b", "c")))
    assert told == "Edited 'src/new.py' at 1 place:\n1\ta\n2\tc\n3\t", "what one wrote one has seen"


@pytest.mark.rules("A5.T6")
async def test_a_file_that_is_there_is_not_made_anew(make: Make) -> None:
    context = make({"a.txt": "x", "src/b": ""})
    with pytest.raises(ToolError, match=r"There is a file at 'a\.txt' already; .*edit_file"):
        await context.look(create_file, path="a.txt", content="")
    with pytest.raises(ToolError, match="There is a folder at 'src' already"):
        await context.use(create_file, path="src", content="")
    with pytest.raises(ToolError, match="There is a file"):
        await context.run(create_file, path="a.txt", content="")


@pytest.mark.rules("A5.15")
@pytest.mark.parametrize("tool", [write_file, edit_file])
async def test_what_was_not_read_is_not_written(make: Make, tool: object) -> None:
    context = make({"a.txt": "old\n"})
    chosen = write_file if tool is write_file else edit_file
    arguments = {"content": "x"} if chosen is write_file else {"edits": _edits(("old", "new"))}
    for way in (context.look, context.run):
        with pytest.raises(ToolError, match=r"'a\.txt' has not been read in this .*read_file"):
            await way(chosen, path="a.txt", **arguments)
    await context.use(read_file, path="a.txt")
    await _change(context, "a.txt", "old\nmore\n")
    with pytest.raises(ToolError, match=r"'a\.txt' has changed since you read it; read it again"):
        await context.look(chosen, path="a.txt", **arguments)
    await context.use(read_file, path="a.txt")
    await context.use(chosen, path="a.txt", **arguments)
    assert await _data(context, "a.txt") in (b"x", b"new\nmore\n")


@pytest.mark.rules("A5.15", "A5.63")
async def test_what_changed_between_look_and_run_is_not_written(make: Make) -> None:
    context = make({"a.txt": "old\n"})
    await context.use(read_file, path="a.txt")
    looked = await context.look(edit_file, path="a.txt", edits=_edits(("old", "new")))
    assert looked.bases == {"a.txt": hash_bytes(b"old\n")}
    await _change(context, "a.txt", "old and other\n")
    await context.use(read_file, path="a.txt")  # by another call, so that only the look is stale
    context.bases = looked.bases
    with pytest.raises(ToolError, match=r"'a\.txt' changed since you looked"):
        await context.run(edit_file, path="a.txt", edits=_edits(("old", "new")))
    assert await _data(context, "a.txt") == b"old and other\n"
    looked = await context.look(create_file, path="b.txt", content="x")
    context.bases = looked.bases
    await _change(context, "b.txt", "of others")
    with pytest.raises(ToolError, match="already"):
        await context.run(create_file, path="b.txt", content="x")
    looked = await context.look(write_file, path="c.txt", content="x")
    context.bases = looked.bases
    await _change(context, "c.txt", "of others")
    await context.run(read_file, path="c.txt")
    with pytest.raises(ToolError, match="changed since you looked"):
        await context.run(write_file, path="c.txt", content="x")


@pytest.mark.rules("A5.T6")
async def test_a_whole_file_is_written(make: Make) -> None:
    context = make({"a.txt": "one\ntwo\n"})
    await context.use(read_file, path="a.txt")
    looked = await context.look(write_file, path="a.txt", content="one\n2\n")
    assert looked.preview is not None
    assert "-two\n+2\n" in looked.preview.text
    told = await context.told(write_file, path="a.txt", content="one\n2\n")
    assert told == "Wrote 'a.txt': 6 bytes in place of 8."
    assert "is as it was" in await context.told(write_file, path="a.txt", content="one\n2\n")
    assert "Created 'n/b.txt' with 1 lines" in await context.told(
        write_file, path="n/b.txt", content="x"
    )


@pytest.mark.rules("A5.13")
async def test_several_edits_are_made_in_order_or_none(make: Make) -> None:
    context = make({"a.py": "a = 1\nb = 2\nc = 3\n"})
    await context.use(read_file, path="a.py")
    with pytest.raises(ToolInputInvalid, match="Edit 2 of 2: old_text is not in the file"):
        await context.use(edit_file, path="a.py", edits=_edits(("a = 1", "a = 9"), ("z", "y")))
    assert await _data(context, "a.py") == b"a = 1\nb = 2\nc = 3\n"
    told = await context.told(
        edit_file, path="a.py", edits=_edits(("a = 1", "a = 9"), ("c = 3", "c = 8\nd = 7"))
    )
    assert told == (
        "Edited 'a.py' at 2 places:\n1\ta = 9\n2\tb = 2\n…\n2\tb = 2\n3\tc = 8\n4\td = 7\n5\t"
    )


@pytest.mark.rules("A5.14")
async def test_a_near_miss_is_told_before_anybody_is_asked(make: Make) -> None:
    context = make({"a.py": "def f():\n    return 1\n"})
    await context.use(read_file, path="a.py")
    with pytest.raises(ToolInputInvalid, match="differ only in indentation"):
        await context.look(edit_file, path="a.py", edits=_edits(("def f():\n  return 1", "x")))


ENCODED = [
    ("utf-8", b"", "ä\n"),
    ("utf-8", b"\xef\xbb\xbf", "ä\r\n"),
    ("utf-16-le", b"\xff\xfe", "ä\n"),
    ("utf-16-be", b"\xfe\xff", "ä\r\n"),
    ("utf-32-le", b"\xff\xfe\0\0", "ä\n"),
    ("cp1252", b"", "ä\r\n"),
]


@pytest.mark.rules("A5.5")
@pytest.mark.parametrize(("codec", "mark", "text"), ENCODED)
async def test_encoding_mark_and_line_ends_are_kept(
    make: Make, codec: str, mark: bytes, text: str
) -> None:
    context = make({"a.txt": mark + text.encode(codec)})
    await context.use(read_file, path="a.txt")
    await context.use(edit_file, path="a.txt", edits=_edits(("ä\n", "ö\nü\n")))
    end = "\r\n" if "\r" in text else "\n"
    assert await _data(context, "a.txt") == mark + f"ö{end}ü{end}".encode(codec)
    await context.use(write_file, path="a.txt", content="x\ny\n")
    assert await _data(context, "a.txt") == mark + f"x{end}y{end}".encode(codec)


@pytest.mark.rules("A5.5")
async def test_lines_that_stay_keep_the_ends_they_have(make: Make) -> None:
    context = make({"a.txt": b"one\r\ntwo\nthree\rfour"})
    await context.use(read_file, path="a.txt")
    await context.use(edit_file, path="a.txt", edits=_edits(("two\nthree", "2\nthree")))
    assert await _data(context, "a.txt") == b"one\r\n2\nthree\rfour"


@pytest.mark.rules("A5.5")
async def test_what_an_encoding_can_not_hold_is_told(make: Make) -> None:
    context = make({"a.txt": b"\xe4\n"})
    await context.use(read_file, path="a.txt")
    with pytest.raises(ToolError, match="cp1252 has no sign for '漢'"):
        await context.look(edit_file, path="a.txt", edits=_edits(("ä", "漢")))


@pytest.mark.rules("A5.5", "A5.7")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x89PNG\0\1", "binary file; it can't be edited"),
        (b"\xff\xfea", "can't be written back without losing"),
        (b"\xef\xbb\xbf\xff x", "can't be written back without losing"),
    ],
)
async def test_what_can_not_be_written_back_is_not_edited(
    make: Make, data: bytes, said: str
) -> None:
    context = make({"a": data})
    await context.use(read_file, path="a")
    with pytest.raises(ToolError, match=said):
        await context.look(edit_file, path="a", edits=_edits(("x", "y")))
    await context.use(write_file, path="a", content="text\n")
    assert await _data(context, "a") == b"text\n"


@pytest.mark.rules("A5.2", "A5.3")
async def test_the_subject_is_the_real_path(tmp_path: Path) -> None:
    (tmp_path / "root" / "real").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to("real")
    (tmp_path / "root" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    context = MemoryContext(LocalWorkspace(tmp_path / "root"))
    (part,) = (await context.look(create_file, path="link/../link/a", content="")).parts
    assert (part.subject, part.also, part.grants) == ("real/a", ("link/a",), ())
    (part,) = (await context.look(create_file, path="out/a", content="")).parts
    outside = str(tmp_path / "outside" / "a")
    assert (part.subject, part.grants) == (outside, (outside,))
    assert part.caution is not None
    assert "outside" in part.caution
    with pytest.raises(ToolDenied):
        await context.run(create_file, path="out/a", content="x")
    await context.use(create_file, path="out/a", content="x")  # all is allowed, so granted
    assert (tmp_path / "outside" / "a").read_text() == "x"


@pytest.mark.rules("A5.3")
async def test_a_look_tells_nothing_of_what_stands_outside(make: Make, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password\n")
    context = make({})
    for tool, arguments in (
        (create_file, {"content": "x"}),
        (write_file, {"content": "x"}),
    ):
        looked = await context.look(tool, path="../secret", **arguments)
        assert looked.preview is not None
        assert "password" not in looked.preview.text
    with pytest.raises(ToolError, match="has not been read") as told:
        await context.look(edit_file, path="../secret", edits=_edits(("passwort", "x")))
    assert "password" not in told.value.message


@pytest.mark.rules("A5.54", "A5.67")
async def test_secrets_and_what_decides_call_for_caution(make: Make) -> None:
    context = make({})
    for path, is_firm in ((".env", False), (".towline/permissions.toml", True)):
        (part,) = (await context.look(create_file, path=path, content="")).parts
        assert part.caution is not None
        assert part.firm is is_firm


@pytest.mark.rules("A5.11")
async def test_what_a_hook_finds_is_told_with_the_edit(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(context: ToolContext, paths: Mapping[str, bytes]) -> str:
        return f"looked at {', '.join(paths)}"

    async def find_nothing(context: ToolContext, paths: Mapping[str, bytes]) -> str:
        return ""

    monkeypatch.setattr(after_edit, "AFTER_EDIT", [find, find_nothing])
    told = await make({}).told(create_file, path="a.py", content="x\n")
    assert told == "Created 'a.py' with 1 lines.\nlooked at a.py"


@pytest.mark.parametrize("path", ["a\0b", "", "src", "a.txt/b"])
async def test_a_path_that_can_not_be_a_file_is_told(make: Make, path: str) -> None:
    context = make({"a.txt": "x", "src/b": ""})
    with pytest.raises(ToolError):
        await context.use(write_file, path=path, content="x")


@pytest.mark.slow
@pytest.mark.rules("A5.59")
async def test_a_huge_change_has_a_bounded_preview_that_says_so() -> None:
    workspace = MemoryWorkspace({"a.txt": "x\n" * 500_000})
    context = MemoryContext(workspace)
    await context.use(read_file, path="a.txt")
    looked = await context.look(write_file, path="a.txt", content="y\n" * 500_000)
    assert looked.preview is not None
    assert looked.preview.truncated
    assert len(looked.preview.text) <= 60_100
    told = await context.told(
        edit_file,
        path="a.txt",
        edits=[{"old_text": "x", "new_text": "zz", "replace_all": True}],
    )
    assert len(told) < 2000


async def test_a_file_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    os.chmod(tmp_path / "a", 0o444)  # noqa: PTH101 - as a person does
    context = MemoryContext(LocalWorkspace(tmp_path))
    await context.use(read_file, path="a")
    with pytest.raises(ToolError):
        await context.use(edit_file, path="a", edits=_edits(("x", "y")))

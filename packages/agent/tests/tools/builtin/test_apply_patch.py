"""The tool `apply_patch`."""

import asyncio
from collections.abc import Callable, Mapping
from importlib.metadata import requires

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.files import read_file
from towline_agent.tools.builtin.patch import apply_patch
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.base import ABSENT, Put, hash_bytes
from towline_agent.workspaces.diff import diff_bytes
from towline_agent.workspaces.memory import MemoryWorkspace

Make = Callable[[Mapping[str, str | bytes]], MemoryContext]

FILES = {"a.py": "a = 1\nb = 2\n", "src/b.py": "x\r\ny\r\n", "c.txt": "gone\n", "d.txt": "d\n"}
PATCH = """*** Begin Patch
*** Update File: a.py
@@
 a = 1
-b = 2
+b = 3
*** Update File: src/b.py
*** Move to: src/new/b.py
-x
+z
*** Delete File: c.txt
*** Add File: e/new.txt
+one
+two
*** Update File: d.txt
*** Move to: d2.txt
*** End Patch"""


async def _read_all(context: MemoryContext, *paths: str) -> None:
    for path in paths:
        await context.use(read_file, path=path)


async def _state(context: MemoryContext) -> dict[str, bytes]:
    found = await context.workspace.walk(".")
    files = [entry.name for entry in found.entries if entry.kind == "file"]
    return {path: (await context.workspace.read(path)).data for path in files}


@pytest.mark.rules("A5.12", "A5.T6")
async def test_all_files_of_a_patch_change_at_once(make: Make) -> None:
    context = make(FILES)
    await _read_all(context, "a.py", "src/b.py", "d.txt")
    before = await _state(context)
    looked = await context.look(apply_patch, patch=PATCH)
    assert await _state(context) == before
    assert [part.subject for part in looked.parts] == [
        *("a.py", "src/b.py", "src/new/b.py", "c.txt", "e/new.txt", "d.txt", "d2.txt"),
    ]
    assert looked.bases == {
        "a.py": hash_bytes(b"a = 1\nb = 2\n"),
        "src/b.py": hash_bytes(b"x\r\ny\r\n"),
        "src/new/b.py": ABSENT,
        "c.txt": hash_bytes(b"gone\n"),
        "e/new.txt": ABSENT,
        "d.txt": hash_bytes(b"d\n"),
        "d2.txt": ABSENT,
    }
    assert looked.preview is not None
    for piece in ("-b = 2\n+b = 3", "src/b.py is moved to src/new/b.py", "-gone", "+two"):
        assert piece in looked.preview.text
    output = await context.use(apply_patch, patch=PATCH)
    assert await _state(context) == {
        "a.py": b"a = 1\nb = 3\n",
        "src/new/b.py": b"z\r\ny\r\n",
        "e/new.txt": b"one\ntwo\n",
        "d2.txt": b"d\n",
    }
    assert len(output.changes) == 5, "one files_changed for all of it"
    (block,) = output.content
    assert getattr(block, "text", "") == (
        "Applied the patch:\nM a.py\nR src/b.py -> src/new/b.py\nD c.txt\nA e/new.txt\n"
        "R d.txt -> d2.txt"
    )


@pytest.mark.rules("A5.12")
@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        ("-b = 2", "-b = 5", "a.py: The place at line 3 of the patch does not fit"),
        ("-x", "-w", "src/b.py: The place"),
        ("File: c.txt", "File: none.txt", "none.txt: There is no file"),
        ("File: e/new.txt", "File: d/../src/b.py", "stands in it twice"),
        ("Add File: e/new.txt", "Add File: src", "There is something at 'src' already"),
        ("to: d2.txt", "to: c.txt", "stands in it twice"),
        ("to: src/new/b.py", "to: a.py/b", ""),
        ("File: d.txt", "File: src", ""),
    ],
)
async def test_a_patch_that_does_not_fit_somewhere_changes_nothing(
    make: Make, wrong: str, right: str, told: str
) -> None:
    context = make(FILES)
    await _read_all(context, "a.py", "src/b.py", "d.txt")
    before = await _state(context)
    for way in (context.look, context.run):
        if way == context.look and not told:
            continue  # seen by the workspace alone, when it is done
        with pytest.raises(ToolError) as caught:
            await way(apply_patch, patch=PATCH.replace(wrong, right))
        assert told in caught.value.message
        assert await _state(context) == before


@pytest.mark.rules("A5.12")
async def test_all_that_does_not_fit_is_told_at_once(make: Make) -> None:
    context = make(FILES)
    await _read_all(context, "a.py", "src/b.py", "d.txt")
    patch = PATCH.replace("-b = 2", "-b = 5").replace("-x", "-w")
    with pytest.raises(ToolInputInvalid) as caught:
        await context.look(apply_patch, patch=patch)
    assert caught.value.message.startswith("Nothing was changed.\na.py: ")
    assert "\nsrc/b.py: " in caught.value.message


@pytest.mark.rules("A5.15")
async def test_a_file_that_was_not_read_is_not_patched(make: Make) -> None:
    context = make(FILES)
    with pytest.raises(ToolInputInvalid, match=r"'a\.py' has not been read") as caught:
        await context.look(apply_patch, patch=PATCH)
    assert caught.value.message.count("has not been read") == 3


@pytest.mark.rules("A5.15", "A5.63")
async def test_a_patch_meets_a_file_that_changed_since_it_was_looked_at(make: Make) -> None:
    context = make(FILES)
    await _read_all(context, "a.py", "src/b.py", "d.txt")
    looked = await context.look(apply_patch, patch=PATCH)
    await context.workspace.apply((Put(path="c.txt", data=b"others'\n"),))
    before = await _state(context)
    context.bases = looked.bases
    with pytest.raises(ToolError, match=r"'c\.txt' changed since you looked"):
        await context.run(apply_patch, patch=PATCH)
    assert await _state(context) == before


@pytest.mark.rules("A5.12")
async def test_a_unified_diff_deletes_only_what_it_shows(make: Make) -> None:
    context = make({"c.txt": "one\ntwo\n"})
    patch = "--- a/c.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    with pytest.raises(ToolInputInvalid, match="leave some of it"):
        await context.use(apply_patch, patch=patch)
    await context.use(
        apply_patch, patch="--- a/c.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
    )
    assert await _state(context) == {}


@pytest.mark.rules("A5.16")
def test_patches_are_read_without_unidiff() -> None:
    assert not any("unidiff" in need for need in requires("towline-agent") or [])


async def test_a_patch_of_a_binary_file_is_refused(make: Make) -> None:
    context = make({"a.bin": b"a\0\n"})
    await _read_all(context, "a.bin")
    patch = "--- a/a.bin\n+++ b/a.bin\n@@ -1 +1 @@\n-a\n+b\n"
    with pytest.raises(ToolInputInvalid, match="binary file; it can't be edited"):
        await context.use(apply_patch, patch=patch)


@pytest.mark.rules("A5.3")
async def test_a_patch_names_each_place_outside(make: Make) -> None:
    context = make({"a.txt": "x\n"})
    await _read_all(context, "a.txt")
    patch = (
        "*** Begin Patch\n*** Add File: ../out.txt\n+x\n*** Delete File: /etc/hosts\n"
        "*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch"
    )
    looked = await context.look(apply_patch, patch=patch)
    assert [bool(part.caution) for part in looked.parts] == [True, True, False]
    assert all(part.grants for part in looked.parts[:2])
    with pytest.raises(ToolError):
        await context.run(apply_patch, patch=patch)
    assert (await context.workspace.read("a.txt")).data == b"x\n"


_TEXT = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=8).map("\n".join)
_FILES = st.dictionaries(st.sampled_from(["a", "b", "d/c"]), _TEXT, max_size=3)


@pytest.mark.rules("A5.12")
@settings(max_examples=60)
@given(before=_FILES, after=_FILES)
def test_the_diffs_that_we_show_are_patches_that_we_take(
    before: dict[str, str], after: dict[str, str]
) -> None:
    pieces: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if not old and not new:
            return  # an empty file that comes or goes has no lines to show
        diff = diff_bytes(
            None if old is None else old.encode(), None if new is None else new.encode(), path
        )
        assert diff is not None
        if not diff.text:
            return
        pieces.append(diff.text)
    if not pieces or any(text == "" for path, text in after.items() if path not in before):
        return

    async def run() -> dict[str, bytes]:
        context = MemoryContext(MemoryWorkspace(before))
        await _read_all(context, *before)
        await context.use(apply_patch, patch="".join(pieces))
        return await _state(context)

    wanted = {path: text.encode() for path, text in after.items()}
    assert asyncio.run(run()) == wanted

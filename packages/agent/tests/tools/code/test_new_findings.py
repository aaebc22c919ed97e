"""What an edit broke is told with its result."""

from typing import Any

import pytest

from towline_agent.errors import ToolError
from towline_agent.tools.builtin.after_edit import tell_after_edit
from towline_agent.tools.builtin.files import read_file
from towline_agent.tools.builtin.write import edit_file
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.base import Put
from towline_agent.workspaces.memory import MemoryWorkspace


async def _edit(context: MemoryContext, **files: str) -> str:
    before = {path: await _read(context, path) for path in files}
    await context.workspace.apply(
        tuple(Put(path=path, data=text.encode()) for path, text in files.items())
    )
    return await tell_after_edit(context, before)


async def _read(context: MemoryContext, path: str) -> bytes:
    try:
        return (await context.workspace.read(path)).data
    except ToolError:
        return b""


@pytest.mark.rules("A5.11")
async def test_an_edit_tells_what_it_broke_and_not_what_was_broken(make_context: Any) -> None:
    context = make_context({"a.py": "import os\n\n\ndef f():\n    return 1\n"})
    text = await _edit(context, **{"a.py": "import os\n\n\n# why\ndef f():\n    return one\n"})
    assert text == (
        "New findings in a.py, mend them if they are yours:\n6:12 error F821 Undefined name `one`"
    )


@pytest.mark.rules("A5.11")
async def test_an_edit_that_breaks_nothing_tells_nothing(make_context: Any) -> None:
    context = make_context({"a.py": "import os\nx = 1\n"})
    assert await _edit(context, **{"a.py": "\n\nimport os\nx = 2\n"}) == ""


@pytest.mark.rules("A5.11")
@pytest.mark.parametrize(
    ("path", "text"),
    [("new.py", "def f(:\n"), ("a.json", "{,"), ("a.toml", "a = "), ("b.yml", "[")],
)
async def test_a_new_file_that_is_broken_is_told(path: str, text: str, make_context: Any) -> None:
    assert "error invalid-syntax" in await _edit(make_context({}), **{path: text})


async def test_files_of_other_kinds_binaries_and_those_that_are_gone_are_passed_over() -> None:
    context = MemoryContext(MemoryWorkspace({"a.md": "(", "b.py": b"\0\1"}))
    changed = {"a.md": b"", "b.py": b"", "gone.py": b"x = 1\n"}
    assert await tell_after_edit(context, changed) == ""


async def test_many_files_and_many_findings_are_bounded() -> None:
    files = {f"f{n:02}.json": "{" for n in range(25)}
    files["a.py"] = "".join(f"x = missing{n}\n" for n in range(50))
    text = await _edit(MemoryContext(), **dict(sorted(files.items())))
    assert "[30 more; see get_diagnostics]" in text
    assert text.endswith("[6 more edited files were not checked]")


@pytest.mark.rules("A5.11")
async def test_the_file_tools_tell_it_with_their_result(make_context: Any, ask: Any) -> None:
    context = make_context({"a.py": "x = 1\n"})
    await ask(context, read_file, path="a.py")
    edits = [{"old_text": "1", "new_text": "one"}]
    text = await ask(context, edit_file, path="a.py", edits=edits)
    assert "New findings in a.py" in text
    assert "1:5 error F821 Undefined name `one`" in text

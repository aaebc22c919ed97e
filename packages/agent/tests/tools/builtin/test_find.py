"""The tool `find_files`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from towline_agent.errors import ToolDenied, ToolInputInvalid
from towline_agent.tools.builtin.find import FILES_SHOWN, find_files
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace

Make = Callable[[Mapping[str, str | bytes]], MemoryContext]
FILES = {"a.py": "", "src/b.py": "", "src/deep/c.py": "", "src/d.ts": "", "src.py": "", "e.txt": ""}


@pytest.mark.rules("A5.T2")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"glob": "*.py"}, "a.py\nsrc/b.py\nsrc/deep/c.py\nsrc.py"),
        ({"glob": "src/*.{py,ts}"}, "src/b.py\nsrc/d.ts"),
        ({"glob": "**/c.*"}, "src/deep/c.py"),
        ({"glob": "*.py", "path": "src"}, "b.py\ndeep/c.py"),
        ({"glob": "*.py", "path": "src/../src/"}, "b.py\ndeep/c.py"),
        ({"glob": "d*/"}, "src/deep/"),
        ({"glob": "*.py", "skip": 2}, "src/deep/c.py\nsrc.py\n[3-4 of 4; this is the end]"),
        ({"glob": "*.py", "skip": 9}, "There are 4 files, so none after skip=9."),
    ],
)
async def test_files_are_found_by_glob(make: Make, arguments: dict[str, object], told: str) -> None:
    assert await make(FILES).told(find_files, **arguments) == told


@pytest.mark.rules("A5.T2")
async def test_nothing_found_says_where_to_look(make: Make) -> None:
    told = await make(FILES).told(find_files, glob="*.go", path="src")
    assert told == (
        "No file fits '*.go' in 'src'; set ignored to look at what .gitignore leaves out too."
    )


@pytest.mark.rules("A5.T2")
async def test_the_newest_come_first(tmp_path: Path) -> None:
    for age, name in enumerate(("old", "new", "mid")):
        (tmp_path / name).touch()
        stamp = {"old": 1, "mid": 2, "new": 3}[name] * 10**9 + age
        os.utime(tmp_path / name, ns=(stamp, stamp))
    context = MemoryContext(LocalWorkspace(tmp_path))
    assert await context.told(find_files, glob="*", sort="newest") == "new\nmid\nold"


@pytest.mark.rules("A5.T2", "A4.20")
async def test_many_files_come_in_pages_that_say_how_to_go_on() -> None:
    names = [f"{n:04}.txt" for n in range(450)]
    context = MemoryContext(MemoryWorkspace(dict.fromkeys(names, "")))
    seen: list[str] = []
    while len(seen) < len(names):
        page = (await context.told(find_files, glob="*.txt", skip=len(seen))).split("\n")
        assert len(page) <= FILES_SHOWN + 1
        seen += [line for line in page if not line.startswith("[")]
    assert seen == names
    first = (await context.told(find_files, glob="*.txt")).split("\n")[-1]
    assert first == "[1-200 of 450; narrow glob or path, or go on with skip=200]"
    small = MemoryContext(MemoryWorkspace(dict.fromkeys(names, "")), result_limit=500)
    page = await small.told(find_files, glob="*.txt")
    assert len(page) <= 500
    assert "go on with skip=" in page


@pytest.mark.rules("A5.3")
async def test_a_search_outside_is_denied_unless_granted(make: Make) -> None:
    context = make(FILES)
    with pytest.raises(ToolDenied):
        await context.run(find_files, glob="*", path="..")
    (part,) = (await context.look(find_files, glob="*", path="..")).parts
    assert part.effect == "read"
    assert part.caution is not None
    with pytest.raises(ToolInputInvalid, match="is no glob"):
        await context.run(find_files, glob="")

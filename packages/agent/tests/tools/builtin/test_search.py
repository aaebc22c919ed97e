"""The tool `search_text`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.tools.builtin import search
from towline_agent.tools.builtin.search import HITS_SHOWN, search_text
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace

Make = Callable[[Mapping[str, str | bytes]], MemoryContext]
FILES: dict[str, str | bytes] = {
    "a.py": "import os\ndef find():\n    return os\n",
    "src/b.ts": "const find = 1;\nfind();\n",
    "src/c.md": "Find it.\r\n",
    "src/deep/d.bin": b"find\0",
    "f(x).txt": "f(x)\n",
}
TWO = "src/b.ts\n1: const find = 1;\n2: find();"
DEF = "a.py\n1- import os\n2: def find():\n3-     return os"


@pytest.fixture(params=["rg", "python"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(search, "find_rg", lambda: None)


pytestmark = pytest.mark.usefixtures("_way")


@pytest.mark.rules("A5.T2", "A5.7", "A5.9")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"pattern": "find"}, f"a.py\n2: def find():\n{TWO}"),
        ({"pattern": "^find"}, "src/b.ts\n2: find();"),
        ({"pattern": r"it\.$"}, "src/c.md\n1: Find it."),
        ({"pattern": "FIND IT", "ignore_case": True}, "src/c.md\n1: Find it."),
        ({"pattern": "f(x)", "literal": True}, "f(x).txt\n1: f(x)"),
        ({"pattern": "find", "glob": "*.{ts,md}"}, TWO),
        ({"pattern": "find", "glob": "src/**", "path": "."}, TWO),
        ({"pattern": "const", "path": "src"}, "b.ts\n1: const find = 1;"),
        ({"pattern": "const", "path": "src/b.ts"}, "1: const find = 1;"),
        ({"pattern": "def", "context_lines": 1}, DEF),
        ({"pattern": "find", "skip": 1}, f"{TWO}\n[hits 2-3 of 3; this is the end]"),
        ({"pattern": "find", "skip": 3}, "There are 3 hits, so none after skip=3."),
    ],
)  # fmt: skip
async def test_lines_are_found(make: Make, arguments: dict[str, object], told: str) -> None:
    assert await make(FILES).told(search_text, **arguments) == told


@pytest.mark.rules("A5.T2")
async def test_nothing_found_says_what_to_try(make: Make) -> None:
    assert await make(FILES).told(search_text, pattern="nix", path="src") == (
        "No line of 'src' has 'nix'. Try another pattern, set ignore_case, or set ignored to look "
        "at what .gitignore leaves out."
    )


@pytest.mark.rules("A5.T2")
async def test_gaps_between_hits_are_shown(make: Make) -> None:
    text = "\n".join("hit" if n in (3, 9) else f"line {n}" for n in range(1, 12))
    told = await make({"a": text}).told(search_text, pattern="hit", context_lines=1)
    assert told == "a\n2- line 2\n3: hit\n4- line 4\n--\n8- line 8\n9: hit\n10- line 10"


@pytest.mark.rules("A5.T2", "A4.20")
async def test_many_hits_come_in_pages_that_say_how_to_go_on(make: Make) -> None:
    context = make({f"{n:02}": "hit\n" * 30 for n in range(9)})
    seen: list[str] = []
    while len(seen) < 270:
        page = (await context.told(search_text, pattern="hit", skip=len(seen))).split("\n")
        hits = [line for line in page if line.endswith(": hit")]
        assert 0 < len(hits) <= HITS_SHOWN
        seen += hits
    assert len(seen) == 270
    first = await context.told(search_text, pattern="hit")
    assert first.endswith(
        "[hits 1-100 of 270; narrow the pattern, path or glob, or go on with skip=100]"
    )
    context.result_limit = 600
    page = await context.told(search_text, pattern="hit")
    assert len(page) <= 600
    assert "go on with skip=" in page


@pytest.mark.rules("A5.T2")
@pytest.mark.parametrize(
    ("pattern", "literal", "told"),
    [
        ("", "false", "pattern is empty"),
        ("a\\nb", "true", "can't hold a line break"),
        ("a\\\\nb", "false", "can't hold a line break"),
        ("a\\u0000", "false", "holds a NUL"),
    ],
)
async def test_a_pattern_that_can_not_be_meant_is_told(
    pattern: str, literal: str, told: str
) -> None:
    with pytest.raises(ToolInputInvalid, match=told):
        search_text.check(f'{{"pattern": "{pattern}", "literal": {literal}}}')


@pytest.mark.rules("A5.9")
async def test_an_invalid_regex_offers_literal(make: Make) -> None:
    with pytest.raises(ToolInputInvalid, match=r"is no regex: .*Set literal"):
        await make(FILES).use(search_text, pattern="find(")


@pytest.mark.rules("A5.67")
async def test_a_file_with_secrets_is_searched_only_by_its_name(make: Make) -> None:
    context = make({".env": "KEY=hit\n", "conf/.env": "KEY=hit\n", "a.txt": "hit\n"})
    assert await context.told(search_text, pattern="hit") == "a.txt\n1: hit"
    assert await context.told(search_text, pattern="hit", path="conf/.env") == "1: KEY=hit"
    (part,) = (await context.look(search_text, pattern="hit", path="conf/.env")).parts
    assert part.caution is not None


@pytest.mark.rules("A5.2", "A5.3")
async def test_a_search_stays_inside(tmp_path: Path) -> None:
    root, out = tmp_path / "root", tmp_path / "out"
    root.mkdir()
    out.mkdir()
    (out / "plain.txt").write_text("hit\n")
    (root / "a.txt").write_text("hit\n")
    (root / "link").symlink_to(out)
    (root / "file").symlink_to(out / "plain.txt")
    os.mkfifo(root / "pipe")
    context = MemoryContext(LocalWorkspace(root))
    assert await context.told(search_text, pattern="hit") == "a.txt\n1: hit"
    for path in ("link", "file", "..", str(out), "../out/plain.txt"):
        with pytest.raises(ToolDenied):
            await context.run(search_text, pattern="hit", path=path)
        (part,) = (await context.look(search_text, pattern="hit", path=path)).parts
        assert part.caution is not None
    assert await context.told(search_text, pattern="hit", path="link") == "plain.txt\n1: hit"
    with pytest.raises(ToolError, match="no ordinary file"):
        await context.run(search_text, pattern="hit", path="pipe")
    with pytest.raises(ToolError, match="There is no file or folder 'none'"):
        await context.run(search_text, pattern="hit", path="none")


@pytest.mark.rules("A5.8")
async def test_the_data_folder_is_not_searched(tmp_path: Path) -> None:
    for name in ("data/a.txt", "b.txt", "data2/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("hit\n")
    context = MemoryContext(LocalWorkspace(tmp_path, hidden=[tmp_path / "data"]))
    assert await context.told(search_text, pattern="hit") == "b.txt\n1: hit\ndata2/c.txt\n1: hit"


@pytest.mark.rules("A5.5", "A5.9")
async def test_a_memory_workspace_is_searched_too() -> None:
    context = MemoryContext(MemoryWorkspace({"a": "grün\n".encode("utf-16")}))
    assert await context.told(search_text, pattern="gr.n") == "a\n1: grün"


IGNORING: dict[str, str | bytes] = {
    ".gitignore": "*.log\nbuild/\n/only_root.txt\n!keep.log\n",
    "src/.gitignore": "local.txt\n/here.txt\ndeep/*.tmp\n",
    "src/deep/.gitignore": "!back.tmp\n",
    **dict.fromkeys(
        [
            *("a.txt", "a.log", "keep.log", "build/a.txt", "only_root.txt", "local.txt"),
            *("src/a.txt", "src/a.log", "src/local.txt", "src/here.txt", "src/only_root.txt"),
            *("src/deep/a.tmp", "src/deep/back.tmp", "src/deep/here.txt", "src/deep/local.txt"),
            *("src/build/a.txt", ".hidden/a.txt", ".git/a.txt", "src/build.txt"),
        ],
        "hit\n",
    ),
}


@pytest.mark.rules("A5.4", "A5.9")
@pytest.mark.parametrize("path", [".", "src", "src/deep", "src/build", "build"])
@pytest.mark.parametrize("ignored", [False, True])
async def test_what_gitignore_leaves_out_is_left_out_alike(
    tmp_path: Path, path: str, ignored: bool
) -> None:
    for name, data in IGNORING.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(str(data))
    context = MemoryContext(LocalWorkspace(tmp_path))
    told = await context.told(search_text, pattern="^hit", path=path, ignored=ignored)
    found = {line for line in told.split("\n") if line in IGNORING or f"{path}/{line}" in IGNORING}
    walk = await context.workspace.walk(path, ignored=ignored)
    files = {entry.name for entry in walk.entries if entry.kind == "file"}
    assert found == {name for name in files if not name.endswith(".gitignore")}
    if path == ".":
        assert ("a.log" in found) is ignored
        assert "src/deep/back.tmp" in found


@pytest.mark.rules("A5.T2")
def test_a_pattern_has_a_length() -> None:
    with pytest.raises(ToolInputInvalid, match="5000 characters"):
        search_text.check('{"pattern": "' + "x" * 5000 + '"}')

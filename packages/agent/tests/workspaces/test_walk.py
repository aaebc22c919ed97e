"""What folders hold: on disk and in memory, without what `.gitignore` files leave out."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from towline_agent.errors import ToolDenied
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace


def _workspace(kind: str, root: Path, files: Mapping[str, str]) -> Workspace:
    if kind == "memory":
        return MemoryWorkspace(dict(files), root=str(root))
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return LocalWorkspace(root)


async def _files(workspace: Workspace, path: str = ".", *, ignored: bool = False) -> str:
    entries = (await workspace.walk(path, ignored=ignored)).entries
    names = [entry.name for entry in entries if entry.kind == "file"]
    return " ".join(name for name in names if not name.endswith(".gitignore"))


# what git leaves out of `git ls-files --others --exclude-standard` in the same trees
IGNORED = [
    ("*.pyc", "a.pyc x/b.pyc c.py", "c.py"),
    ("build/", "build/a x/build/b y/build", "y/build"),
    ("/build", "build/a x/build", "x/build"),
    ("x/build", "build x/build y/x/build", "build y/x/build"),
    ("*\n!*/\n!*.py", "a.py x/b.py x/c.txt", "a.py x/b.py"),
    ("x/*\n!x/keep", "x/a x/keep y", "x/keep y"),
    ("x/\n!x/keep", "x/a x/keep y", "y"),
    ("x/**\n!x/keep", "x/a x/keep y", "x/keep y"),
    ("x/**\n!x/y/", "x/a x/y/b", ""),
    ("**/y", "y x/y x/z/y/a b", "b"),
    ("x/**/y", "x/y x/a/y x/a/b/y y", "y"),
    ("x/**/a/**/z", "x/a/z x/q/a/q/z x/z", "x/z"),
    ("**", "a x/b", ""),
    ("/**", "a x/b", ""),
    ("a**c", "abc a/b/c ac", "a/b/c"),
    ("a?c", "abc a/c ac", "a/c ac"),
    ("[ab].txt", "a.txt b.txt c.txt", "c.txt"),
    ("[!ab].txt", "a.txt c.txt", "a.txt"),
    ("[^ab].txt", "a.txt c.txt", "a.txt"),
    ("[a-c]x\n[z-a]y", "bx dx by", "by dx"),
    ("[[:digit:]]", "1 a", "a"),
    ("[]]", "] a", "a"),
    ("[a\\]]", "] a b", "b"),
    ("[a", "[a a", "[a a"),
    ("[[:none:]]", ": n", ": n"),
    ("#a\n\\#b", "#a #b", "#a"),
    ("\\!a", "!a a", "a"),
    ("a \nb\\ ", "a b", "b"),
    ("a\\*", "a* ab", "ab"),
    ("a\\", "a", "a"),
    ("a\r\nb\r\n", "a b c", "c"),
    ("\n\n  \n", "a", "a"),
    ("!a", "a", "a"),
    ("a\n!a", "a", "a"),
    ("!a\na", "a", ""),
    ("a//b\n/", "a/b", "a/b"),
]


@pytest.mark.rules("A5.4")
@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize(("patterns", "names", "left"), IGNORED)
async def test_what_a_pattern_fits_is_left_out(
    tmp_path: Path, kind: str, patterns: str, names: str, left: str
) -> None:
    files = {".gitignore": patterns, **dict.fromkeys(names.split(), "")}
    workspace = _workspace(kind, tmp_path, files)
    assert (await _files(workspace)).split() == sorted(left.split())
    assert (await _files(workspace, ignored=True)).split() == sorted(names.split())


@pytest.mark.rules("A5.4")
@pytest.mark.parametrize("kind", ["local", "memory"])
async def test_deeper_patterns_win_and_those_above_hold_below(tmp_path: Path, kind: str) -> None:
    files = {
        ".gitignore": "*.log\nout/\nsrc/top",
        ".git/info/exclude": "*.own\n!a.log",
        "src/.gitignore": "!keep.log\n/only",
        "src/keep.log": "",
        "src/other.log": "",
        "src/only": "",
        "src/deep/only": "",
        "src/deep/keep.log": "",
        "src/top": "",
        "src/a.own": "",
        "src/.git/config": "",
        "a.log": "",
        "out/made": "",
        "out/made.log": "",
    }
    workspace = _workspace(kind, tmp_path, files)
    assert await _files(workspace) == "src/deep/keep.log src/deep/only src/keep.log"
    assert await _files(workspace, "src") == "deep/keep.log deep/only keep.log"
    assert await _files(workspace, "src/deep") == "keep.log only"
    # who names a folder that is left out wants to see it
    assert await _files(workspace, "out") == "made made.log"
    shallow = [entry.name for entry in (await workspace.walk(".", deep=False)).entries]
    assert shallow == [".git", ".gitignore", "src"]
    every = [entry.name for entry in (await workspace.walk(".", ignored=True)).entries]
    assert not [name for name in every if name.endswith(".git") or "/.git/" in name]


@pytest.mark.rules("A5.4")
async def test_patterns_made_to_be_slow_are_not(tmp_path: Path) -> None:
    name = "a" * 200
    patterns = ("*a" * 40 + "b", "**/a" * 40 + "/b", "x/" + "*a" * 40 + "b", "a" * 200 + "[" * 200)
    deep = "/".join("a" * 100)
    files = {".gitignore": "\n".join(patterns), name: "", f"x/{name}": "", f"{deep}/c": ""}
    memory = MemoryWorkspace(files, root=str(tmp_path))
    assert await _files(memory) == f"{deep}/c {name} x/{name}"


async def test_links_are_told_and_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").touch()
    (root / "sub" / "up").symlink_to("..")
    (root / "out").symlink_to("../out")
    os.mkfifo(root / "pipe")
    walk = await LocalWorkspace(root).walk(".")
    assert [(entry.name, entry.kind) for entry in walk.entries] == [
        ("out", "link"),
        ("pipe", "other"),
        ("sub", "dir"),
        ("sub/up", "link"),
    ]


async def test_a_file_of_patterns_that_is_none_is_not_heeded(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("pipe", "link", "large", "folder"):
        (root / folder).mkdir(parents=True)
        (root / folder / "a").touch()
    (tmp_path / "patterns").write_text("a")
    os.mkfifo(root / "pipe" / ".gitignore")
    (root / "link" / ".gitignore").symlink_to(tmp_path / "patterns")
    (root / "large" / ".gitignore").write_text("a\n" * 200_000)
    (root / "folder" / ".gitignore").mkdir()
    assert await _files(LocalWorkspace(root)) == "folder/a large/a link/a pipe/a"


@pytest.mark.rules("A5.8")
async def test_a_hidden_folder_is_in_no_walk(tmp_path: Path) -> None:
    (tmp_path / "data" / "keys").mkdir(parents=True)
    (tmp_path / "sub" / "data").mkdir(parents=True)
    workspace = LocalWorkspace(tmp_path, hidden=(tmp_path / "data",))
    for deep in (True, False):
        walk = await workspace.walk(".", deep=deep, ignored=True)
        assert [entry.name for entry in walk.entries] == ["sub", "sub/data"][: 1 + deep]
    with pytest.raises(ToolDenied):
        await workspace.walk("data/keys")


async def test_a_folder_that_may_not_be_listed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "closed" / "in").mkdir(parents=True)
    real = os.open

    def refuse(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    walk = await LocalWorkspace(tmp_path).walk(".")
    assert [entry.name for entry in walk.entries] == ["closed", "open"]

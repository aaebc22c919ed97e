"""Walking: all names of a large folder, and those that its `.gitignore` leaves."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from figure import Goal, compare, show, show_note

from towline_agent.workspaces.local import LocalWorkspace
from workspace.tree import make_tree

__all__ = ["show_walks"]


def show_walks(*, quick: bool) -> None:
    """Walk the tree in the ways there are; what others do not do is said."""
    turns = 5 if quick else 15
    with make_tree() as root:
        subprocess.run(["git", "init", "-q", str(root)], check=False, capture_output=True)
        every = _timed(lambda: _walk(root, ignored=True))
        some = _timed(lambda: _walk(root, ignored=False))
        figures = compare(turns, every, _timed(lambda: _walk_bare(root)))
        _show("walk, all names and sizes / os.walk", *figures, Goal(8))
        figures = compare(turns, every, _timed(lambda: _walk_with_sizes(root)))
        _show("walk, all names and sizes / os.walk + stat", *figures, Goal(3))
        for name, argv in _programs():
            figures = compare(turns, some, _timed(lambda argv=argv: _run(argv, root)))
            _show(f"walk, .gitignore heeded / {name}", *figures, None)
        if shutil.which("rg") is None:
            show_note("rg is not on the path, so walks are not compared with `rg --files`")


def _programs() -> list[tuple[str, list[str]]]:
    known = [
        ("git ls-files", ["git", "ls-files", "--others", "--exclude-standard"]),
        ("rg --files", ["rg", "--files", "--hidden", "--no-require-git"]),
    ]
    return [(name, argv) for name, argv in known if shutil.which(argv[0]) is not None]


def _timed(work: Callable[[], int]) -> Callable[[], float]:
    """Milliseconds of a piece of work, which says how many files it found."""

    def run() -> float:
        begin = time.perf_counter()
        found = work()
        took = (time.perf_counter() - begin) * 1000
        assert found > 1000
        return took

    return run


def _walk(root: Path, *, ignored: bool) -> int:
    return len(asyncio.run(LocalWorkspace(root).walk(".", ignored=ignored)).entries)


def _walk_bare(root: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(root))


def _walk_with_sizes(root: Path) -> int:
    sizes = [
        os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - the floor is bare
        for folder, _, files in os.walk(root)
        for name in files
    ]
    return len(sizes)


def _run(argv: list[str], root: Path) -> int:
    done = subprocess.run(argv, cwd=root, check=True, capture_output=True)
    return done.stdout.count(b"\n")


def _show(label: str, ours: float, floor: float, ratio: float, goal: Goal | None) -> None:
    show(label, "ms", ours, floor=floor, ratio=ratio, goal=goal)

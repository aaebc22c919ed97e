"""Searching a tree of 20,000 files: `search_text` against bare `rg`, and Python against `rg`.

Goals: through `rg` at most 30 ms more than `rg` alone; without it at most 20 times as long.
"""

import argparse
import asyncio
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from towline_agent.tools.builtin import search
from towline_agent.tools.builtin.search import search_text
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.search.engine import find_rg
from towline_agent.workspaces.local import LocalWorkspace

FILES = 20_000
OVER_MS = 30
TIMES = 20
WORDS = ("return", "value", "self", "import", "index", "for", "while", "name", "def", "class")
PATTERNS = {
    "a word in 20 files": "needle_[0-9]+",
    "a word in no file": "nothing_like_this",
    "a word in 2,000 files": "sometimes",
}


def lay(root: Path) -> None:
    """Write the tree: 200 folders of 100 files of about 2 KB, and some that are ignored."""
    chance = random.Random(7)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    for folder in range(FILES // 100):
        place = root / f"pkg{folder // 20}" / f"mod{folder}"
        place.mkdir(parents=True)
        for number in range(100):
            lines = [" ".join(chance.choices(WORDS, k=7)) for _ in range(40)]
            if number % 10 == 0:
                lines[20] = "sometimes"
            if folder % 10 == 0 and number == 50:
                lines[30] = f"needle_{folder}"
            (place / f"f{number}.py").write_text("\n".join(lines))
    (root / "build").mkdir()
    for number in range(200):
        (root / "build" / f"{number}.py").write_text("needle_1 sometimes\n")


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that something takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Print a line for each pattern."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=15)
    turns: int = parser.parse_args().turns
    rg = find_rg()
    if rg is None:
        raise SystemExit("There is no rg; install the wheel `ripgrep` to compare with it.")
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        root = Path(folder) / "root"
        root.mkdir()
        lay(root)
        context = MemoryContext(LocalWorkspace(root))
        for name, pattern in PATTERNS.items():
            bare = [rg, "--no-config", "--json", "--hidden", "--no-require-git", "-e", pattern, "."]

            def alone(argv: list[str] = bare) -> None:
                subprocess.run(argv, cwd=root, stdout=subprocess.PIPE, check=False)

            def ours(pattern: str = pattern) -> None:
                runner.run(context.use(search_text, pattern=pattern))

            rows: dict[str, list[float]] = {"rg": [], "ours": [], "python": []}
            alone()
            ours()
            for turn in range(turns):
                rows["rg"].append(timed(alone))
                rows["ours"].append(timed(ours))
                if turn < 3:
                    with mock.patch.object(search, "find_rg", return_value=None):
                        rows["python"].append(timed(ours))
            # the best of each: what else the machine does can only make a turn longer
            floor, with_rg, with_python = (min(took) for took in rows.values())
            over, times = with_rg - floor, with_python / floor
            print(
                f"{name:24} rg {floor:6.0f} ms, ours {with_rg:6.0f} ms: {over:+5.0f} ms "
                f"({'ok' if over <= OVER_MS else 'TOO SLOW'}, goal {OVER_MS}); "
                f"Python {with_python:6.0f} ms: {times:4.1f} times "
                f"({'ok' if times <= TIMES else 'TOO SLOW'}, goal {TIMES})"
            )


if __name__ == "__main__":
    main()

"""Searching a tree of 20,000 files: `search_text` against bare `rg`, and Python against `rg`.

Goals: through `rg` at most 30 ms more than `rg` alone; without it at most 20 times as long.
"""

import asyncio
import random
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
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


class Cost(NamedTuple):
    """What something takes, in milliseconds."""

    wall: float
    """By the clock."""
    cpu: float
    """Of all cores, this process and its children together."""


def measure(work: Callable[[], object]) -> Cost:
    """What something takes."""
    began, used = time.perf_counter(), cpu_s()
    work()
    return Cost((time.perf_counter() - began) * 1000, (cpu_s() - used) * 1000)


def cpu_s() -> float:
    """Seconds of computing until now."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def best(costs: list[Cost]) -> Cost:
    """The least of each: what else the machine does can only add to it."""
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def show(name: str, rg: Cost, ours: Cost, python: Cost) -> None:
    """Print a line for each way to measure."""
    for way in Cost._fields:
        floor, with_rg, with_python = (getattr(cost, way) for cost in (rg, ours, python))
        over, times = with_rg - floor, with_python / floor
        print(
            f"{name:22} {way:4} rg {floor:5.0f} ms, ours {over:+5.0f} ms "
            f"({'ok' if over <= OVER_MS else 'TOO SLOW'}, goal {OVER_MS}); "
            f"Python {with_python:5.0f} ms: {times:4.1f} times "
            f"({'ok' if times <= TIMES else 'TOO SLOW'}, goal {TIMES})"
        )


def show_searches(*, quick: bool) -> None:
    """Print a line for each pattern."""
    turns = 5 if quick else 15
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

            rows: dict[str, list[Cost]] = {"rg": [], "ours": [], "python": []}
            alone()
            ours()
            for turn in range(turns):
                rows["rg"].append(measure(alone))
                rows["ours"].append(measure(ours))
                if turn < 3:
                    with mock.patch.object(search, "find_rg", return_value=None):
                        rows["python"].append(measure(ours))
            show(name, *(best(costs) for costs in rows.values()))

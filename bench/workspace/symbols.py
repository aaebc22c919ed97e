"""Looking symbols up in a tree of source files, against bare tree-sitter parsing of the same bytes.

Cold is the first look of a conversation, warm a later one, and one changed file lies between. The
bare side parses in this process and looks at nothing; ours reads through the workspace, parses in
processes of its own, walks the trees and ranks.

Goals: cold at most 4 times the bare parse, warm below 300 ms.
"""

import asyncio
import random
import resource
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from towline_agent.tools.builtin.find_symbol import find_symbol
from towline_agent.tools.code.languages import GRAMMARS, SUFFIXES
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.local import LocalWorkspace

FILES = 3000
COLD_TIMES = 4.0
WARM_MS = 300.0
SHAPES = {
    ".py": (
        "class Store{n}:\n    def load_{n}(self, key: str) -> int:\n        total = 0\n"
        "        for item in self.items(key):\n            total += item.size * {n}\n"
        "        return total\n\n\ndef make_{n}(a, b=2):\n    return [a, b, {n}]\n\n\n"
    ),
    ".ts": (
        "export class Store{n} {{\n  private size = {n};\n  load{n}(key: string): number {{\n"
        "    return this.items(key).reduce((sum, item) => sum + item.size, 0);\n  }}\n}}\n"
        "export const make{n} = (a: number) => [a, {n}];\n\n"
    ),
    ".go": (
        "type Store{n} struct {{ size int }}\n\nfunc (s *Store{n}) Load{n}(key string) int {{\n"
        "\ttotal := 0\n\tfor _, item := range s.items(key) {{ total += item.size }}\n"
        "\treturn total\n}}\n\n"
    ),
}


def lay(root: Path, files: int) -> list[Path]:
    """Write the tree: folders of 100 files, 4 to 5 KB each."""
    chance = random.Random(7)
    laid: list[Path] = []
    for number in range(files):
        suffix = (".py", ".py", ".ts", ".go")[number % 4]
        head = "package main\n\n" if suffix == ".go" else ""
        text = "".join(SHAPES[suffix].format(n=chance.randrange(10**6)) for _ in range(16))
        path = root / f"d{number // 100}" / f"f{number}{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(head + text)
        laid.append(path)
    return laid


def parse_bare(laid: list[Path]) -> tuple[float, int]:
    """Seconds to parse them all and nothing more, and their bytes."""
    tree_sitter = import_module("tree_sitter")
    parsers = {
        suffix: tree_sitter.Parser(
            tree_sitter.Language(getattr(import_module(grammar.module), grammar.maker)())
        )
        for suffix in SHAPES
        for grammar in [GRAMMARS[SUFFIXES[suffix]]]
    }
    texts = [(path.suffix, path.read_bytes()) for path in laid]
    began = time.perf_counter()
    for suffix, text in texts:
        parsers[suffix].parse(text)
    return time.perf_counter() - began, sum(len(text) for _, text in texts)


async def look_up(context: MemoryContext, name: str) -> float:
    """Seconds of one look-up."""
    began = time.perf_counter()
    await find_symbol.run(context, {"name": name, "kind": None, "path": "."})
    return time.perf_counter() - began


async def measure(root: Path, files: int) -> bool:
    """Print a line for each look, and tell whether the goals are met."""
    laid = lay(root, files)
    bare, size = parse_bare(laid)
    context = MemoryContext(LocalWorkspace(root))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cold = await look_up(context, "Store1")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    warm = min([await look_up(context, "Store2") for _ in range(5)])
    laid[0].write_text(laid[0].read_text() + "\n\ndef added(): pass\n")
    changed = await look_up(context, "added")
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    print(f"{files} files, {size / 1e6:.1f} MB; bare parse {bare * 1000:.0f} ms")
    print(f"cold     {cold * 1000:7.0f} ms  {cold / bare:5.2f} x bare (goal {COLD_TIMES:g})")
    print(f"warm     {warm * 1000:7.0f} ms  {warm / bare:5.2f} x bare (goal {WARM_MS:g} ms)")
    print(f"changed  {changed * 1000:7.0f} ms  one file of them")
    print(f"kept     {(after - before) / unit:7.0f} MB  more at the peak of the first look")
    return cold <= COLD_TIMES * bare and warm * 1000 <= WARM_MS


def show_symbols(*, quick: bool) -> None:
    """Measure in a folder of its own."""
    files = FILES // 10 if quick else FILES
    with tempfile.TemporaryDirectory() as folder:
        met = asyncio.run(measure(Path(folder), files))
    print("goals met" if met else "goals missed")

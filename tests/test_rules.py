"""Rules and tests, tied both ways: each rule of `docs/rules.md` has a test, each test a rule there.

A Python test names the rules it holds with `@pytest.mark.rules("C1.3", "S01")`, a golden vector in
its `rules`, and a TypeScript test in a line `// rules: C1.11 W25`.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "rules.md"

NUMBER = re.compile(r"[AC]\d+(\.T?\d+)?|W\d\d|[SR]\d\d|D\d+")
"""How a rule is numbered: contract, agent, web; reliability and reported cases; decisions."""


def _rows() -> dict[str, str]:
    """Number to words, as the table has them."""
    found = re.findall(r"^\| *(\S+) *\| *(.+?) *\|$", TABLE.read_text("utf-8"), re.MULTILINE)
    return {number: words for number, words in found if NUMBER.fullmatch(number)}


@cache
def _named() -> dict[str, list[str]]:
    """Number to the places that name it."""
    places: dict[str, list[str]] = {}
    for number, place in [*_python(), *_vectors(), *_typescript()]:
        places.setdefault(number, []).append(place)
    return places


def _python() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.glob("**/tests/**/*.py")):
        if {".venv", "node_modules"} & set(path.parts):
            continue
        if path.is_relative_to(ROOT / "tests" / "tasks") and "project" in path.parts:
            continue  # what an agent is to mend need not even be Python
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _is_marker(node.func):
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                for number in node.args:  # a starred one names the rules of a file read below
                    if isinstance(number, ast.Constant):
                        yield str(number.value), place


def _is_marker(func: ast.expr) -> bool:
    named_so = isinstance(func, ast.Attribute) and func.attr == "rules"
    return named_so and ast.unparse(func) == "pytest.mark.rules"


def _vectors() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.glob("packages/protocol/vectors/**/*.json")):
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        for vector in cast("list[dict[str, Any]]", found if isinstance(found, list) else [found]):
            for number in vector.get("rules", ()):
                yield number, str(path.relative_to(ROOT))


def _typescript() -> Iterator[tuple[str, str]]:
    for path in sorted([*ROOT.glob("web/test/**/*.ts"), *ROOT.glob("web/test/**/*.tsx")]):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = re.fullmatch(r"\s*// rules: (.+)", text)
            for number in re.split(r"[\s,]+", found.group(1).strip()) if found else ():
                yield number, f"{path.relative_to(ROOT)}:{line}"


def test_each_number_that_a_test_names_stands_in_the_table() -> None:
    rows = _rows()
    missing = {number: places for number, places in _named().items() if number not in rows}
    assert missing == {}, f"add to docs/rules.md: {_listed(missing)}"


def test_each_rule_of_the_table_has_a_test() -> None:
    missing = _rows().keys() - _named().keys()
    assert missing == set(), f"no test names {sorted(missing)}: write one, or take the row out"


def test_the_table_is_in_order_and_each_number_stands_once() -> None:
    text = TABLE.read_text(encoding="utf-8")
    numbers = [n for n in re.findall(r"^\| *(\S+) *\|", text, re.MULTILINE) if NUMBER.fullmatch(n)]
    assert numbers == sorted(set(numbers), key=_order)


def _order(number: str) -> tuple[str, list[int], bool]:
    return number[0], [int(part) for part in re.findall(r"\d+", number)], "T" in number


def _listed(missing: dict[str, list[str]]) -> str:
    return "".join(f"\n{number}  {missing[number][0]}" for number in sorted(missing))

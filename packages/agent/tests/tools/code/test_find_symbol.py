"""The tool `find_symbol` and the index behind it."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.tools.builtin.find_symbol import HITS_SHOWN, find_symbol
from towline_agent.tools.code import symbol_index
from towline_agent.tools.code.child import ChildEnd, run_child
from towline_agent.tools.code.symbol_index import (
    FILE_BYTES,
    Answer,
    SymbolIndex,
    ask_worker,
    rank,
)
from towline_agent.tools.code.symbols import Symbol
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace

PROJECT = {
    "src/store.py": "class Store:\n    def load(self):\n        pass\n\ndef load_all(): pass\n",
    "src/deep/reload.py": "def reload(): pass\nLOAD = 1\n",
    "web/app.ts": "export function load(): void {}\n",
    "notes.md": "load",
}


@pytest.mark.rules("A5.T3")
async def test_a_symbol_is_told_with_its_place_kind_container_and_line(
    make_context: Any, ask: Any
) -> None:
    text = await ask(make_context(PROJECT), find_symbol, name="Store")
    assert text == "src/store.py:1-3 class Store | class Store:"


@pytest.mark.rules("A5.T3")
async def test_the_exact_name_comes_before_its_beginning_and_that_before_its_middle(
    make_context: Any, ask: Any
) -> None:
    lines = (await ask(make_context(PROJECT), find_symbol, name="load")).splitlines()
    assert [line.partition(" |")[0] for line in lines] == [
        "src/store.py:2-3 method Store.load",
        "web/app.ts:1-1 function load",
        "src/deep/reload.py:2-2 variable LOAD",
        "src/store.py:5-5 function load_all",
        "src/deep/reload.py:1-1 function reload",
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"name": "Store.load"}, ["src/store.py:2-3"]),
        ({"name": "Store::load"}, ["src/store.py:2-3"]),
        ({"name": "lo?d*", "kind": "variable"}, ["src/deep/reload.py:2-2"]),
        ({"name": "load*", "path": "src/store.py"}, ["src/store.py:2-3", "src/store.py:5-5"]),
        ({"name": "load", "path": "web"}, ["web/app.ts:1-1"]),
        ({"name": "load", "path": "web/app.ts"}, ["web/app.ts:1-1"]),
        ({"name": "load", "kind": "variable"}, ["src/deep/reload.py:2-2"]),
        ({"name": "o", "kind": "class"}, ["src/store.py:1-3"]),
    ],
)
async def test_a_search_is_narrowed_by_pattern_container_kind_and_path(
    make_context: Any, ask: Any, arguments: dict[str, str], found: list[str]
) -> None:
    text = await ask(make_context(PROJECT), find_symbol, **arguments)
    assert [line.partition(" ")[0] for line in text.splitlines()] == found


async def test_nothing_found_says_what_was_looked_at(make_context: Any, ask: Any) -> None:
    text = await ask(make_context(PROJECT), find_symbol, name="absent")
    assert text.startswith("No symbol matches 'absent' in the files here (2 python, 1 typescript).")
    assert "search_text" in text


async def test_a_folder_without_source_says_so(make_context: Any, ask: Any) -> None:
    text = await ask(make_context({"a.md": "x"}), find_symbol, name="absent")
    assert "no source files" in text


async def test_more_than_a_page_says_how_to_narrow(ask: Any) -> None:
    text = "\n".join(f"def load_{n}(): pass" for n in range(300))
    context = MemoryContext(MemoryWorkspace({"a.py": text}))
    lines = (await ask(context, find_symbol, name="load")).splitlines()
    assert len(lines) == HITS_SHOWN + 1
    assert lines[-1].startswith(f"[{HITS_SHOWN} of 300 symbols shown")
    small = MemoryContext(MemoryWorkspace({"a.py": text}), result_limit=1500)
    assert len(await ask(small, find_symbol, name="load")) <= 1500


async def test_a_star_lists_all_that_stands_in_a_file_in_its_order(ask: Any) -> None:
    files: dict[str, str | bytes] = {
        "a.py": "def second_long(): pass\n\nclass A:\n    def go(self): pass\n",
        "b.py": "def other(): pass\n",
    }
    context = MemoryContext(MemoryWorkspace(files))
    lines = (await ask(context, find_symbol, name="*", path="a.py")).splitlines()
    assert [line.split("-")[0] for line in lines] == ["a.py:1", "a.py:3", "a.py:4"]
    everywhere = await ask(context, find_symbol, name="*")
    assert everywhere.splitlines()[:3] == lines
    assert "b.py:1" in everywhere
    inside = await ask(context, find_symbol, name="A.*")
    assert inside.splitlines() == lines[2:]


@pytest.mark.parametrize("name", ["", " ", "..", "x" * 300])
def test_a_name_that_names_nothing_is_refused(name: str) -> None:
    with pytest.raises(ToolInputInvalid, match="names no symbol"):
        find_symbol.check(f'{{"name": "{name}"}}')


async def test_a_file_of_another_kind_and_a_missing_one_are_told(
    make_context: Any, ask: Any
) -> None:
    context = make_context(PROJECT)
    with pytest.raises(ToolError, match="no language whose symbols are known"):
        await ask(context, find_symbol, name="load", path="notes.md")
    with pytest.raises(ToolError, match="absent"):
        await ask(context, find_symbol, name="load", path="absent")


async def test_a_folder_outside_is_refused(make_disk: Any, ask: Any, tmp_path: Path) -> None:
    with pytest.raises(ToolDenied):
        await ask(make_disk(PROJECT), find_symbol, name="load", path=str(tmp_path.parent))


@pytest.mark.rules("A5.T3")
async def test_only_changed_files_are_parsed_again(
    make_disk: Any, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[bytes]] = []

    async def count(texts: Sequence[tuple[str, bytes]]) -> list[Answer]:
        asked.append([text for _, text in texts])
        return await ask_worker(texts)

    monkeypatch.setattr(symbol_index, "ask_worker", count)
    context = make_disk(PROJECT)
    await ask(context, find_symbol, name="load")
    await ask(context, find_symbol, name="Store")
    assert [len(texts) for texts in asked] == [3]
    (tmp_path / "web/app.ts").write_text("export function send(): void {}\n")
    os.utime(tmp_path / "web/app.ts", ns=(1, 1))
    (tmp_path / "src/deep/reload.py").unlink()
    assert "web/app.ts:1-1" in await ask(context, find_symbol, name="send")
    assert "No symbol" in await ask(context, find_symbol, name="reload")
    assert asked[1:] == [[b"export function send(): void {}\n"]]


async def test_a_text_that_ends_the_parser_is_left_out_and_the_others_are_found(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die_over_it(argv: tuple[str, ...], *, stdin: bytes, timeout_s: float) -> ChildEnd:
        head, deadly, _ = stdin.partition(b"python 6\ndeadly")
        end = await run_child(argv, stdin=head, timeout_s=timeout_s)
        return end._replace(code=-11) if deadly else end

    monkeypatch.setattr(f"{symbol_index.__name__}.run_child", die_over_it)
    files = {"a.py": "def a1(): pass\n", "b.py": "deadly", "c.py": "def c1(): pass\n"}
    text = await ask(MemoryContext(MemoryWorkspace(files)), find_symbol, name="?1")
    assert [line.partition(" ")[0] for line in text.splitlines()] == ["a.py:1-1", "c.py:1-1", "[1"]
    assert "too slow to parse: b.py]" in text


@pytest.mark.slow
async def test_a_text_that_the_parser_never_ends_is_left_out_and_the_others_are_found(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int | None] = []

    async def watched(argv: tuple[str, ...], *, stdin: bytes, timeout_s: float) -> ChildEnd:
        end = await run_child(argv, stdin=stdin, timeout_s=timeout_s)
        codes.append(end.code)
        return end

    monkeypatch.setattr(f"{symbol_index.__name__}.run_child", watched)
    endless = "a<" * 60_000  # after 0.2 s the grammar asks nobody any more whether it is late
    files = {"a.py": "def a1(): pass\n", "B.java": endless, "c.py": "def c1(): pass\n"}
    text = await ask(MemoryContext(MemoryWorkspace(files)), find_symbol, name="?1")
    found = {line.partition(" ")[0] for line in text.splitlines()}
    assert {"a.py:1-1", "c.py:1-1"} <= found
    assert "too slow to parse: B.java]" in text
    assert -signal.SIGALRM in codes  # by itself, long before its batch is given up


async def test_files_over_the_bound_are_named_and_not_read(ask: Any) -> None:
    files = {"big.py": "#" * (FILE_BYTES + 1), "a.py": "def small(): pass\n"}
    text = await ask(MemoryContext(MemoryWorkspace(files)), find_symbol, name="small")
    assert "[1 files left out, unreadable, over 1 MiB or too slow to parse: big.py]" in text


async def test_what_is_not_reached_in_time_is_told_and_found_by_the_next_call() -> None:
    workspace = MemoryWorkspace({"a.py": "def a(): pass\n"})
    index = SymbolIndex()
    first = await index.survey(workspace, ".", budget_s=-1.0)
    assert (first.files, first.left) == ((), 1)
    second = await index.survey(workspace, ".", budget_s=60.0)
    assert [symbol.name for _, symbols in second.files for symbol in symbols] == ["a"]
    assert second.left == 0


async def test_a_missing_grammar_is_told_with_what_to_install(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(texts: Sequence[tuple[str, bytes]]) -> list[Answer]:
        return ["missing" for _ in texts]

    monkeypatch.setattr(symbol_index, "ask_worker", missing)
    context = MemoryContext(MemoryWorkspace({"a.go": "package main"}))
    text = await ask(context, find_symbol, name="main")
    assert "[1 go files were not looked into" in text
    assert "towline-agent[coding]" in text


async def test_a_text_in_utf_16_is_read(tmp_path: Path, ask: Any) -> None:
    (tmp_path / "a.py").write_bytes("def café(): pass\n".encode("utf-16"))
    context = MemoryContext(LocalWorkspace(tmp_path))
    assert "function café" in await ask(context, find_symbol, name="café")


def test_ranking_knows_no_case_but_to_tell_equals_apart() -> None:
    names = ("xload", "LOAD", "loads", "load")
    files = [("a.py", [Symbol(name, "function", 1, 1, "") for name in names])]
    found = [hit.symbol.name for hit in rank(files, "load")]
    assert found == ["load", "LOAD", "loads", "xload"]
    assert rank(files, "[l]oad*") == []

"""The same hits from `rg` and from Python."""

import asyncio
import os
import stat
import sys
import sysconfig
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.search import engine
from towline_agent.tools.search.engine import (
    Found,
    Query,
    find_rg,
    search_with_python,
    search_with_rg,
)
from towline_agent.tools.search.hits import LINE_CHARS

RG = find_rg() or ""


def _all(_: str) -> bool:
    return True


def _query(
    pattern: str,
    *,
    literal: bool = False,
    ignore_case: bool = False,
    context: int = 0,
    needed: int = 100,
    wants: Callable[[str], bool] = _all,
    names: tuple[str, ...] = (),
) -> Query:
    return Query(
        pattern=pattern,
        literal=literal,
        ignore_case=ignore_case,
        context=context,
        needed=needed,
        wants=wants,
        names=names,
    )


@contextmanager
def _opened(folder: Path) -> Generator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def _lay(folder: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


async def _both(folder: Path, files: dict[str, bytes], query: Query) -> tuple[Found, Found]:
    with _opened(folder) as fd:
        by_rg = await search_with_rg(RG, query, folder=fd)
        by_python = await search_with_python(query, folder=fd, files=[(p, None) for p in files])
    assert by_rg is not None
    in_memory = await search_with_python(query, folder=None, files=list(files.items()))
    assert in_memory == by_python
    return by_rg, by_python


def _told(found: Found) -> list[tuple[str, int, str, bool]]:
    return [(f.path, line.number, line.text, line.is_hit) for f in found.files for line in f.lines]


_NAME = st.text(alphabet="aB.-_ä ", min_size=1, max_size=5).filter(lambda n: n.strip("."))
_LINE = st.text(alphabet="abAB ._1ß\t", max_size=8)


def _text(lines: list[str], end: str, last: int, encoding: str) -> bytes:
    return (end.join(lines) + last * end).encode(encoding)


_DATA = st.one_of(
    st.builds(
        _text,
        st.lists(_LINE, max_size=8),
        st.sampled_from(["\n", "\r\n"]),
        st.integers(0, 1),
        st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    ),
    st.sampled_from([b"ab\0ab\n", b"ab \xff\nab\n", b"LATE"]),
)
"""Texts and binary files; `LATE` stands for a large one whose NUL comes late."""
_PATTERN = st.sampled_from(
    ["ab", "a", "^a", "b$", "^$", "a.b", r"\bab\b", "[aB]+", "(a|b)1", r"\s", "ß", "a*", r"\d", "."]
)


@pytest.mark.slow
@pytest.mark.rules("A5.9", "A5.T2")
@settings(max_examples=40)
@given(
    files=st.dictionaries(st.lists(_NAME, min_size=1, max_size=3).map("/".join), _DATA, max_size=5),
    pattern=_PATTERN,
    literal=st.booleans(),
    ignore_case=st.booleans(),
    context=st.integers(0, 3),
)
def test_rg_and_python_find_the_same(
    files: dict[str, bytes], pattern: str, literal: bool, ignore_case: bool, context: int
) -> None:
    files = {
        path: b"ab\n" * 30_000 + b"\0" if data == b"LATE" else data
        for path, data in files.items()
        if not any(other != path and other.startswith(f"{path}/") for other in files)
    }
    query = _query(pattern, literal=literal, ignore_case=ignore_case, context=context)
    with TemporaryDirectory() as folder:
        _lay(Path(folder), files)
        by_rg, by_python = asyncio.run(_both(Path(folder), files, query))
    assert _told(by_rg) == _told(by_python)
    assert by_rg.is_whole
    assert by_rg.skipped == by_python.skipped == 0


@pytest.mark.rules("A5.9")
async def test_many_hits_are_those_that_come_first(tmp_path: Path) -> None:
    files = {f"{n % 7}/{n % 3}.d/{n}.txt": b"hit\n" * 20 for n in range(600)}
    files |= {f"{n % 7}/{n % 3}/{n}.txt": b"hit\n" * 20 for n in range(30)}
    _lay(tmp_path, files)
    by_rg, by_python = await _both(tmp_path, files, _query("hit", needed=250))
    assert not by_rg.is_whole
    assert not by_python.is_whole
    assert _told(by_rg)[:250] == _told(by_python)[:250]
    assert len(_told(by_rg)) < 400, "it stops soon behind what is shown"


@pytest.mark.rules("A5.9")
async def test_only_files_that_count_are_searched(tmp_path: Path) -> None:
    files = {"a.py": b"hit\n", "b.txt": b"hit\n", "c/a.py": b"hit\n", "c/d.pyi": b"hit\n"}
    _lay(tmp_path, files)
    query = _query("hit", wants=lambda path: path.startswith("c/"), names=("*.py", "*.pyi"))
    by_rg, by_python = await _both(tmp_path, files, query)
    assert [file.path for file in by_rg.files] == ["c/a.py", "c/d.pyi"]
    assert _told(by_rg) == _told(by_python)


@pytest.mark.rules("A5.2", "A5.9")
async def test_no_link_is_followed_and_no_settings_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lay(tmp_path, {"out/secret.txt": b"hit\n", "root/a.txt": b"hit\n", "rc": b"--follow\n"})
    root = tmp_path / "root"
    (root / "file").symlink_to(tmp_path / "out" / "secret.txt")
    (root / "folder").symlink_to(tmp_path / "out")
    os.mkfifo(root / "pipe")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    files = ["a.txt", "file", "folder/secret.txt", "pipe", "../out/secret.txt", "missing"]
    with _opened(root) as fd:
        by_rg = await search_with_rg(RG, _query("hit"), folder=fd)
        by_python = await search_with_python(
            _query("hit", wants=lambda path: not path.startswith("..")),
            folder=fd,
            files=[(path, None) for path in files],
        )
    assert by_rg is not None
    assert [file.path for file in by_rg.files] == ["a.txt"]
    assert [file.path for file in by_python.files] == ["a.txt"]
    assert by_python.skipped == 4


@pytest.mark.rules("A5.4", "A5.9")
async def test_of_files_that_leave_out_others_only_gitignore_counts(tmp_path: Path) -> None:
    names = {".gitignore": b"no.txt\n", ".ignore": b"yes.txt\n", ".rgignore": b"yes.txt\n"}
    _lay(tmp_path, {f"root/{name}": data for name, data in names.items()})
    _lay(tmp_path, {".gitignore": b"yes.txt\n", "root/.git/info/exclude": b"yes.txt\n"})
    _lay(tmp_path, {f"root/{name}": b"hit\n" for name in ("yes.txt", "no.txt", ".hid", ".git/x")})
    with _opened(tmp_path / "root") as fd:
        found = await search_with_rg(RG, _query("hit"), folder=fd)
        assert found is not None
        assert [file.path for file in found.files] == [".hid", "yes.txt"]
        found = await search_with_rg(RG, _query("hit"), folder=fd, above=True)
        assert found is not None
        assert [file.path for file in found.files] == [".hid"]


@pytest.mark.rules("A5.9")
@pytest.mark.parametrize("pattern", ["def f(", "[a", "*", "a{2,1}", "(?P<x"])
async def test_a_pattern_that_is_no_regex_is_told_and_literal_offered(
    tmp_path: Path, pattern: str
) -> None:
    _lay(tmp_path, {"a.txt": f"say {pattern} here\n".encode()})
    with _opened(tmp_path) as fd:
        with pytest.raises(ToolInputInvalid, match=r"is no regex: .*Set literal") as by_rg:
            await search_with_rg(RG, _query(pattern), folder=fd)
        with pytest.raises(ToolInputInvalid, match=r"is no regex: .*Set literal"):
            await search_with_python(_query(pattern), folder=fd, files=[("a.txt", None)])
        assert "\n" not in by_rg.value.message
    by_rg_, by_python = await _both(
        tmp_path, {"a.txt": f"say {pattern} here\n".encode()}, _query(pattern, literal=True)
    )
    assert len(_told(by_rg_)) == len(_told(by_python)) == 1


@pytest.mark.rules("A5.9")
async def test_a_pattern_is_never_an_option(tmp_path: Path) -> None:
    files = {"--files": b"--files -e --pre=sh\n"}
    _lay(tmp_path, files)
    for pattern in ("--files", "-e", "--pre=sh"):
        by_rg, by_python = await _both(tmp_path, files, _query(pattern, literal=True))
        assert len(_told(by_rg)) == len(_told(by_python)) == 1


async def test_a_long_line_is_shown_round_its_hit(tmp_path: Path) -> None:
    files = {"a.js": ("ä" * 5000 + "needle" + "y" * 5000 + "\n").encode()}
    _lay(tmp_path, files)
    by_rg, by_python = await _both(tmp_path, files, _query("needle"))
    ((_, _, text, _),) = _told(by_rg)
    assert "needle" in text
    assert len(text) < LINE_CHARS + 100
    assert text.startswith("[4920 characters] …")
    assert text.endswith("… [4786 more characters]")
    assert _told(by_python) == _told(by_rg)


@pytest.mark.slow
@pytest.mark.rules("A5.9")
async def test_a_regex_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lay(tmp_path, {"a.txt": b"a" * 200 + b"!\n"})
    monkeypatch.setattr(engine, "TIMEOUT_S", 1.0)
    began = time.monotonic()
    with _opened(tmp_path) as fd, pytest.raises(ToolError, match="took longer than 1 s"):
        await search_with_python(_query("^(a+)+$"), folder=fd, files=[("a.txt", None)])
    assert time.monotonic() - began < 10


@pytest.mark.rules("A5.9")
@pytest.mark.parametrize("pattern", ["(a+)+$b", "^(a+)+$", "(a|aa)+$", "(.*a){30}x"])
async def test_a_regex_that_repeats_repeats_is_ended_on_its_first_file_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    files = {"a.txt": b"words\n", "b.txt": b"a" * 200 + b"!\n", "c.txt": b"words\n"}
    _lay(tmp_path, files)
    monkeypatch.setattr(engine, "FILE_S", 0.2)
    with _opened(tmp_path) as fd, pytest.raises(ToolInputInvalid) as failed:
        await search_with_python(_query(pattern), folder=fd, files=[(name, None) for name in files])
    assert "'b.txt'" in failed.value.message
    assert "literal" in failed.value.message


async def test_a_cancel_ends_the_search(tmp_path: Path) -> None:
    data = b"a" * 200 + b"!\n"
    work = search_with_python(_query("^(a+)+$"), folder=None, files=[("a.txt", data)])
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.rules("A5.9")
async def test_an_rg_that_can_not_be_used_is_told_apart(tmp_path: Path) -> None:
    old = tmp_path / "rg"
    old.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "sys.stderr.write(\"error: unrecognized flag '--crlf'\")\nsys.exit(2)\n"
    )
    old.chmod(0o755)
    empty = tmp_path / "empty"
    empty.write_text("#!/bin/sh\nexit 2\n")
    empty.chmod(0o755)
    with _opened(tmp_path) as fd:
        for rg in (str(old), str(empty), str(tmp_path / "none")):
            assert await search_with_rg(rg, _query("x"), folder=fd) is None


async def test_the_bytes_of_one_file_are_searched_without_its_path() -> None:
    found = await search_with_rg(RG, _query("hit", context=1), folder=None, data=b"a\nhit\nb\nc\n")
    assert found is not None
    assert _told(found) == [
        ("<stdin>", 1, "a", False), ("<stdin>", 2, "hit", True), ("<stdin>", 3, "b", False),
    ]  # fmt: skip


@pytest.mark.rules("A5.9")
def test_the_rg_of_the_wheel_comes_first_then_the_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rg").touch(stat.S_IRWXU)

    def get_path(name: str) -> str:
        return str(tmp_path / "none")

    monkeypatch.setattr(sysconfig, "get_path", get_path)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    for folder, wanted in (("bin", "bin/rg"), ("none", "path/rg")):
        monkeypatch.setattr(sys, "executable", str(tmp_path / folder / "python"))
        find_rg.cache_clear()
        assert find_rg() == str(tmp_path / wanted)
    monkeypatch.setenv("PATH", str(tmp_path))
    find_rg.cache_clear()
    assert find_rg() is None
    find_rg.cache_clear()

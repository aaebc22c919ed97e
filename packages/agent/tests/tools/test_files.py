"""The tools `read_file` and `list_dir`."""

import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.tools.builtin import files
from towline_agent.tools.builtin.files import (
    ENTRIES_SHOWN,
    LINE_CHARS,
    PAGE_BYTES,
    PAGE_LINES,
    list_dir,
    read_file,
    show_page,
)
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import Tool
from towline_agent.workspaces.base import hash_bytes
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_agent.workspaces.seen import Seen
from towline_agent.workspaces.text import decode_text
from towline_protocol import Preview, Text


async def _call(
    made: Tool, files: dict[str, str | bytes], text: str, *, result_limit: int = 50_000
) -> str:
    context = MemoryContext(MemoryWorkspace(files), result_limit=result_limit)
    (block,) = (await made.run(context, made.check(text))).content
    assert isinstance(block, Text)
    return block.text


@pytest.mark.rules("A5.T1")
async def test_each_line_is_shown_with_its_number() -> None:
    files: dict[str, str | bytes] = {"a.txt": "one\ntwo\r\nthree\rfour"}
    assert await _call(read_file, files, '{"path": "a.txt"}') == "1\tone\n2\ttwo\n3\tthree\n4\tfour"


@pytest.mark.rules("A5.T1")
async def test_a_range_of_lines_says_how_to_go_on() -> None:
    files: dict[str, str | bytes] = {"a.txt": "".join(f"line {n}\n" for n in range(1, 11))}
    page = await _call(read_file, files, '{"path": "a.txt", "start": 3, "lines": 2}')
    assert page == "3\tline 3\n4\tline 4\n[lines 3-4 of 10; go on with start=5]"
    page = await _call(read_file, files, '{"path": "a.txt", "start": 10}')
    assert page == "10\tline 10\n[lines 10-10 of 10; this is the end]"
    with pytest.raises(ToolInputInvalid, match="has 10 lines, so none at start=11"):
        await _call(read_file, files, '{"path": "a.txt", "start": 11}')
    with pytest.raises(ToolInputInvalid):
        read_file.check('{"path": "a.txt", "start": 0}')


@pytest.mark.rules("A5.T1")
def test_a_page_ends_at_its_bounds() -> None:
    many = show_page("a", b"x\n" * (PAGE_LINES + 1), 1, 10**9, 10**9)
    assert f"[lines 1-{PAGE_LINES} of {PAGE_LINES + 1}; go on with start=" in many
    wide = show_page("a", ("ä" * 999 + "\n").encode() * 100, 1, 10**9, 10**9)
    assert PAGE_BYTES - 2100 < len(wide.encode()) <= PAGE_BYTES + 100


@pytest.mark.rules("A5.T1")
@given(text=st.text(alphabet="ab\r\n", max_size=40), start=st.integers(1, 8))
def test_a_line_ends_at_each_of_the_three_ends_wherever_the_scan_is_cut(
    text: str, start: int
) -> None:
    lines = re.split(r"\r\n|\n|\r", text)
    if not lines[-1]:
        lines.pop()
    wanted = [f"{number}\t{line}" for number, line in enumerate(lines, 1)][start - 1 :]
    for size in (1, 2, 7):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_SCAN_SIZE", size)
            if wanted:
                page = show_page("a", text.encode(), start, 100, 10**6).split("\n")
                assert page[: len(wanted)] == wanted
                end = [f"[lines {start}-{len(lines)} of {len(lines)}; this is the end]"]
                assert page[len(wanted) :] == (end if start > 1 else [])
            elif lines:
                with pytest.raises(ToolInputInvalid, match=f"has {len(lines)} lines"):
                    show_page("a", text.encode(), start, 100, 10**6)


@pytest.mark.rules("A5.T1")
@pytest.mark.parametrize("start", [1, 2**20])
def test_a_page_of_a_file_of_many_lines_makes_no_list_of_them(start: int) -> None:
    raw = b"\r\n" * 2**20
    tracemalloc.start()
    try:
        page = show_page("a", raw, start, 3, 10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page.startswith(f"{start}\t\n")
    assert f"of {2**20};" in page
    assert peak < 2 * len(raw), "its text, and no object for each line"


@pytest.mark.rules("A4.20")
@given(
    lines=st.lists(st.integers(min_value=0, max_value=3000), min_size=1, max_size=40),
    limit=st.integers(min_value=400, max_value=6000),
)
def test_the_pages_of_a_file_keep_to_the_limit_and_miss_no_line(
    lines: list[int], limit: int
) -> None:
    raw = "\n".join(["x" * size + "|" for size in lines]).encode()
    seen: list[int] = []
    while len(seen) < len(lines):
        page = show_page("a", raw, len(seen) + 1, 2000, limit)
        assert len(page) <= limit
        numbers = [int(line.split("\t")[0]) for line in page.splitlines() if "\t" in line]
        assert numbers == list(range(len(seen) + 1, len(seen) + 1 + len(numbers)))
        assert numbers
        seen += numbers


@pytest.mark.rules("A4.20")
async def test_a_small_window_gets_a_smaller_page() -> None:
    files: dict[str, str | bytes] = {"a.txt": "word\n" * 1000}
    page = await _call(read_file, files, '{"path": "a.txt"}', result_limit=1000)
    assert len(page) <= 1000
    assert "go on with start=" in page


async def test_a_line_without_an_end_is_cut_and_says_so() -> None:
    page = await _call(read_file, {"a.js": "x" * 60_000 + "\nend"}, '{"path": "a.js"}')
    assert f"… [{60_000 - LINE_CHARS} more characters in this line]" in page
    assert page.endswith("2\tend")


@pytest.mark.rules("A5.7")
async def test_a_binary_file_is_told_and_not_dumped() -> None:
    page = await _call(read_file, {"a.png": b"\x89PNG\0\0\1"}, '{"path": "a.png"}')
    assert page == "'a.png' is a binary file of 7 bytes; it is not shown."


async def test_an_empty_file_is_told() -> None:
    assert await _call(read_file, {"a": ""}, '{"path": "a"}') == "'a' is empty."


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        ("grün".encode(), "grün", "utf-8"),
        ("grün".encode("utf-8-sig"), "grün", "utf-8-sig"),
        ("grün".encode("utf-16"), "grün", "utf-16"),
        ("grün".encode("utf-32"), "grün", "utf-32"),
        ("grün".encode("cp1252"), "grün", "cp1252"),
    ],
)
async def test_text_of_other_encodings_is_read(raw: bytes, text: str, encoding: str) -> None:
    assert decode_text(raw) == (text, encoding)
    page = await _call(read_file, {"a": raw}, '{"path": "a"}')
    assert page.startswith(f"1\t{text}")
    assert ("[encoding: " in page) is not encoding.startswith("utf-8")


@pytest.mark.rules("A5.T2")
async def test_a_folder_is_listed_folders_first() -> None:
    files: dict[str, str | bytes] = {"b.txt": "12345", "src/a.py": "", "a\nb": "", "zoo/x/y": ""}
    assert await _call(list_dir, files, "") == "src/\nzoo/\na\\nb (0 bytes)\nb.txt (5 bytes)"
    assert await _call(list_dir, files, '{"path": "zoo/"}') == "x/"
    assert await _call(list_dir, {}, "{}") == "'.' is empty."


@pytest.mark.rules("A4.20")
async def test_a_large_folder_says_how_many_are_left() -> None:
    files: dict[str, str | bytes] = {f"{n:05}": "" for n in range(ENTRIES_SHOWN + 5)}
    whole = await _call(list_dir, files, "", result_limit=10**6)
    assert whole.endswith("[5 more; list a subfolder, or use find_files]")
    short = await _call(list_dir, files, "", result_limit=500)
    assert len(short) <= 500
    assert "more; list a subfolder" in short


@pytest.mark.rules("A5.3")
@pytest.mark.parametrize("made", [read_file, list_dir])
async def test_what_leads_outside_is_denied(made: Tool) -> None:
    for path in ("..", "../x", "/etc", "src/../../x"):
        with pytest.raises(ToolDenied, match="leads outside"):
            await _call(made, {"src/a": ""}, f'{{"path": "{path}"}}')


async def test_a_missing_file_is_told_with_a_next_step() -> None:
    with pytest.raises(ToolError, match="There is no file or folder 'b'; list its folder"):
        await _call(read_file, {"a": ""}, '{"path": "b"}')


def test_a_rule_sees_one_way_of_writing_a_path() -> None:
    for made in (read_file, list_dir):
        assert made.effect == "read"
        assert made.subject is not None
        assert made.title is not None
        subjects = {made.subject({"path": path}) for path in ("a/b", "./a/b", "a//b", "a/x/../b/")}
        assert subjects == {"a/b"}
        assert "a/b" in made.title({"path": "a/b"})


@pytest.mark.rules("A5.T1", "R49")
async def test_the_end_of_a_build_log_is_read_by_a_negative_start() -> None:
    lines = ["x" * 10_000] * 19 + ["error: build failed"]
    files: dict[str, str | bytes] = {"build.log": "\n".join(lines)}
    page = await _call(read_file, files, '{"path": "build.log", "start": -2}')
    assert page.endswith("\n20\terror: build failed\n[lines 19-20 of 20; this is the end]")
    whole = await _call(read_file, files, '{"path": "build.log", "start": -99}')
    assert whole.startswith("1\txx")
    assert whole.endswith("\n20\terror: build failed"), "long lines are cut, the last one is there"


@pytest.mark.rules("A5.15")
async def test_what_was_read_counts_as_seen() -> None:
    context = MemoryContext(MemoryWorkspace({"src/a": "1"}))
    await context.use(read_file, path="./src/../src/a")
    seen = context.state.get(Seen).get("src/a")
    assert seen is not None
    assert seen.hash == hash_bytes(b"1")
    with pytest.raises(ToolError):
        await context.use(read_file, path="none")
    assert context.state.get(Seen).get("none") is None


@pytest.mark.rules("A5.2", "A5.67")
@pytest.mark.parametrize("made", [read_file, list_dir])
async def test_a_look_names_the_real_path(made: Tool, tmp_path: Path) -> None:
    (tmp_path / "root" / "real").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to("real")
    (tmp_path / "root" / "out").symlink_to(tmp_path)
    context = MemoryContext(LocalWorkspace(tmp_path / "root"))
    for path, subject, grave in (
        ("link/x", "real/x", False),
        ("real/./.env", "real/.env", True),
        ("out/x", str(tmp_path / "x"), True),
        ("/etc/passwd", "/etc/passwd", True),
    ):
        (part,) = (await context.look(made, path=path)).parts
        assert (part.subject, part.effect, part.kind) == (subject, "read", "path")
        assert (part.caution is not None) is grave
        assert part.grants == ((subject,) if subject.startswith("/") else ())


@pytest.mark.rules("A5.59")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"path": ".env"}, "Read .env\nlines 1 to 2000"),
        ({"path": "notes", "start": 5, "lines": 40},
         "Read .env\nasked for as notes, which leads there\nlines 5 to 44"),
        ({"path": ".env", "start": -50}, "Read .env\nthe last 50 lines"),
        ({"path": ".env", "start": -50, "lines": 2},
         "Read .env\nthe first 2 of the last 50 lines"),
    ],
)  # fmt: skip
async def test_who_is_asked_about_a_file_sees_which_and_which_lines(
    tmp_path: Path, arguments: dict[str, object], shown: str
) -> None:
    (tmp_path / ".env").write_text("KEY=1\n")
    (tmp_path / "notes").symlink_to(".env")
    looked = await MemoryContext(LocalWorkspace(tmp_path)).look(read_file, **arguments)
    assert looked.preview == Preview(kind="text", text=shown)
    assert looked.parts[0].caution == "'.env' may hold secrets."

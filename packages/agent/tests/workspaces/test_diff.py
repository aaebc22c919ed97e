"""The unified diff of a file's two versions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.workspaces import diff, lines
from towline_agent.workspaces.diff import diff_bytes

_TEXTS = st.text("abc\n", max_size=60)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")


def _patch(old: bytes, text: str) -> bytes:
    """What a program that applies diffs makes of a file."""
    text = text.replace("\n\\ No newline at end of file\n", "\0")
    left = old.decode().splitlines(keepends=True)
    made: list[str] = []
    at = 0
    _, *hunks = re.split(r"^(?=@@ )", text, flags=re.MULTILINE)
    for hunk in hunks:
        head = _HUNK.match(hunk)
        assert head is not None
        start, count, _, new_count = (1 if part is None else int(part) for part in head.groups())
        first = start - 1 if count else start
        made += left[at:first]
        at = first
        rows = [row for row in re.split(r"(?<=[\n\0])", hunk[head.end() :]) if row]
        old_rows = [row[1:].rstrip("\0") for row in rows if row[0] in " -"]
        new_rows = [row[1:].rstrip("\0") for row in rows if row[0] in " +"]
        assert left[at : at + count] == old_rows
        assert len(new_rows) == new_count
        made += new_rows
        at += count
    return "".join([*made, *left[at:]]).encode()


@given(_TEXTS, _TEXTS)
def test_a_diff_makes_the_new_version_of_the_old_one(old: str, new: str) -> None:
    made = diff_bytes(old.encode(), new.encode(), "f")
    assert made is not None
    assert not made.truncated
    assert _patch(old.encode(), made.text) == new.encode()
    assert (made.text == "") is (old == new)


@given(_TEXTS, _TEXTS)
def test_what_is_too_long_to_be_compared_is_taken_out_and_put_in(old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "COMPARED_MAX", 3)
        made = diff_bytes(old.encode(), new.encode(), "f")
    assert made is not None
    assert _patch(old.encode(), made.text) == new.encode()


def test_new_gone_and_moved_files_are_named() -> None:
    for before, after, source, head in (
        (None, b"a\n", None, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"),
        (b"a\n", None, None, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (
            b"a\n",
            b"b",
            "g",
            "--- a/g\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n",
        ),
    ):
        made = diff_bytes(before, after, "f", source=source)
        assert made is not None
        assert made.text == head


def test_line_ends_that_change_are_seen() -> None:
    made = diff_bytes(b"a\r\nb\r\n", b"a\nb\r\n", "f")
    assert made is not None
    assert "-a\r\n+a\n b\r\n" in made.text
    made = diff_bytes(b"a\rb\r", b"a\rc\r", "f")
    assert made is not None
    assert made.text.endswith(" a\n-b\n+c\n")


@pytest.mark.rules("A5.7")
def test_what_is_no_text_has_no_diff() -> None:
    assert diff_bytes(b"\0", b"a", "f") is None
    assert diff_bytes(b"a", b"\0", "f") is None
    assert diff_bytes(None, b"\0", "f") is None


def test_a_long_diff_is_cut_and_says_so() -> None:
    made = diff_bytes(None, b"x" * 100 + b"\n" * diff.DIFF_MAX_CHARS, "f")
    assert made is not None
    assert made.truncated
    assert len(made.text) < diff.DIFF_MAX_CHARS + 100


def test_a_name_with_a_line_end_adds_no_line_of_its_own() -> None:
    found = diff_bytes(None, b"x\n", "a\n-b\rc")
    assert found is not None
    assert found.text == "--- /dev/null\n+++ b/a\\n-b\\rc\n@@ -0,0 +1 @@\n+x\n"

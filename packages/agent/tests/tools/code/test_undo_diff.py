"""The text before a diff."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.tools.code.undo_diff import text_before
from towline_agent.workspaces.diff import diff_bytes

TEXTS = st.lists(st.sampled_from(["a", "b", "", "-x", "+y", "@@ -1 +1 @@", "\\ No", "ü\f"])).map(
    "\n".join
)


@pytest.mark.rules("A5.11")
@given(before=TEXTS, after=TEXTS)
def test_the_text_before_is_found_from_the_text_after(before: str, after: str) -> None:
    diff = diff_bytes(before.encode(), after.encode(), "a.txt")
    assert diff is not None
    assert text_before(after, diff.text) == before


def test_the_text_before_a_new_file_is_empty() -> None:
    diff = diff_bytes(None, b"a\nb", "a.txt")
    assert diff is not None
    assert text_before("a\nb", diff.text) == ""


def test_line_ends_are_kept() -> None:
    before, after = "a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"
    diff = diff_bytes(before.encode(), after.encode(), "a.txt")
    assert diff is not None
    assert text_before(after, diff.text) == before


def test_a_diff_that_led_elsewhere_tells_nothing() -> None:
    assert text_before("a\nc\n", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+b\n") is None

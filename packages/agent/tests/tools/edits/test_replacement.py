"""Exact replacements, and what is told of those that do not fit."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.edits.replacement import Place, TextEdit, replace_texts

TEXT = "def one():\n    return 1\n\n\ndef two():\n\treturn 'zwei'\n"


def _miss(text: str, old: str, new: str = "new", *, replace_all: bool = False) -> str:
    with pytest.raises(ToolInputInvalid) as caught:
        replace_texts(text, [TextEdit(old, new, replace_all)])
    return caught.value.message


@pytest.mark.rules("A5.13")
def test_a_text_that_stands_once_is_replaced() -> None:
    made = replace_texts(TEXT, [TextEdit("return 1", "return 10")])
    assert made.text == TEXT.replace("return 1", "return 10")
    assert made.places == (Place(2, 2),)


@pytest.mark.rules("A5.13")
def test_a_text_that_stands_more_than_once_is_refused_unless_all_are_meant() -> None:
    told = _miss("a\nb\na\n", "a")
    assert told == (
        "old_text is not unique: it stands at lines 1, 3. Add lines round it, or set replace_all."
    )
    assert "lines 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 and more" in _miss("a" * 50, "a")
    assert "not unique" in _miss("aaa", "aa"), "two that lie over each other are two"
    made = replace_texts("a\nb\na\n", [TextEdit("a", "c", True)])
    assert made.text == "c\nb\nc\n"
    assert made.places == (Place(1, 1), Place(3, 3))


@pytest.mark.rules("A5.13")
def test_edits_are_made_in_order_each_in_what_the_one_before_left() -> None:
    edits = [TextEdit("one", "two", False), TextEdit("two two", "done", False)]
    assert replace_texts("one two\n", edits).text == "done\n"
    with pytest.raises(ToolInputInvalid, match="Edit 2 of 2: old_text is not in the file"):
        replace_texts("one two\n", [edits[0], edits[0]])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "x", "old_text is empty"),
        ("one", "one", "are the same"),
        ("one\r\n", "one\n", "are the same"),
    ],
)
def test_an_edit_that_can_not_be_meant_is_refused(old: str, new: str, told: str) -> None:
    assert told in _miss(TEXT, old, new)
    with pytest.raises(ToolInputInvalid, match="edits is empty"):
        replace_texts(TEXT, [])


@pytest.mark.rules("A5.13")
def test_line_ends_of_an_edit_are_no_part_of_the_comparison() -> None:
    made = replace_texts("a\nb\nc\n", [TextEdit("a\r\nb", "a\rx\r\nb")])
    assert made.text == "a\nx\nb\nc\n"


@pytest.mark.rules("A5.14")
@pytest.mark.parametrize(
    ("old", "told"),
    [
        (
            "def one():\n  return 1",
            "Lines 1-2 differ only in indentation. The file has:\n1\tdef one",
        ),
        ("def two():\n    return 'zwei'", "indentation (the file has tabs)"),
        ("def one():\n\treturn 1", "indentation (the file has spaces, no tabs)"),
        ("def one():   \n    return 1", "Lines 1-2 differ only in white space at line ends"),
        ("return  1", "Line 2 differs only in white space. The file has:\n2\t    return 1"),
        ("return \u2018zwei\u2019", "Line 6 differs only in quotes or dashes"),
        ('return "zwei"', "Line 6 differs only in quotes or dashes"),
        ("Def One", "Line 1 differs only in upper and lower case"),
        ("1\tdef one():\n2\t    return 1", "the numbers that read_file shows; leave them out"),
        ("def one():\\n    return 1", "It is escaped once too often"),
        ("def one():\n    return 2\n", "- yours\t    return 2\n+ 2\t    return 1"),
        ("def won():", "- yours\tdef won():\n+ 1\tdef one():"),
        ("import os", "Nothing like it stands in the file; read it again."),
        ("\n\n\n\n\n", "Nothing like it stands"),
    ],
)
def test_a_near_miss_is_told_with_the_closest_lines(old: str, told: str) -> None:
    assert told in _miss(TEXT, old)


@pytest.mark.rules("A5.14")
def test_an_edit_that_was_made_before_is_told_as_such() -> None:
    assert "stands there already, at line 2" in _miss(TEXT, "return one", "return 1")


@pytest.mark.rules("A5.14")
def test_a_miss_in_a_huge_file_is_told_soon_and_briefly() -> None:
    line = "the quick brown fox jumps over {} lazy dogs and then some more of it\n"
    text = "".join(line.format(number) for number in range(200_000))
    began = time.process_time()
    told = _miss(text, "something quite different from\nall of it" * 300)
    assert time.process_time() - began < 10
    assert len(told) < 6000


@st.composite
def _edited(draw: st.DrawFn) -> tuple[str, list[TextEdit]]:
    part = st.text(alphabet="ab\n", max_size=12)
    edit = st.builds(TextEdit, part, part, st.booleans())
    return draw(part), draw(st.lists(edit, min_size=1, max_size=4))


@pytest.mark.rules("A5.13")
@given(case=_edited())
def test_edits_do_what_replacing_does_or_nothing(case: tuple[str, list[TextEdit]]) -> None:
    text, edits = case
    wanted = text
    try:
        made = replace_texts(text, edits)
    except ToolInputInvalid:
        return
    for edit in edits:
        assert edit.replace_all or wanted.count(edit.old_text) == 1
        wanted = wanted.replace(edit.old_text, edit.new_text)
    assert made.text == wanted
    lines = made.text.split("\n")
    assert all(1 <= place.first <= place.last <= len(lines) for place in made.places)


@given(count=st.integers(1, 50))
def test_places_are_lines_of_the_new_text(count: int) -> None:
    text = "".join(f"{number:03}: old\n" for number in range(count))
    made = replace_texts(text, [TextEdit("old", "new\nnew", True), TextEdit("000: new", "000: x")])
    found = [number for place in made.places for number in range(place.first, place.last + 1)]
    lines = made.text.split("\n")
    assert {lines[number - 1] for number in found} <= {"000: x", *lines}
    assert sorted(found) == list(range(1, 2 * count + 1))

"""Files that a prompt mentions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.project.mention import MENTIONS_MAX, Mention, cut_lines, find_mentions


def _one(path: str, plain: str | None = None, **lines: int) -> tuple[Mention, ...]:
    return (Mention(path=path, plain=path if plain is None else plain, **lines),)


@pytest.mark.rules("A5.79")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("look at @src/a.py", _one("src/a.py")),
        ("@README.md says what?", _one("README.md")),
        ("Is it (@a.py)?", _one("a.py")),
        ("Read @a.py, please", _one("a.py")),
        ("Read @a.py.", _one("a.py")),
        ("@a.py:3", _one("a.py", "a.py:3", first=3, last=3)),
        ("@a.py:3-9 is odd", _one("a.py", "a.py:3-9", first=3, last=9)),
        ("@a.py#L3-L9", _one("a.py", "a.py#L3-L9", first=3, last=9)),
        ("@a.py:9-3", _one("a.py", "a.py:9-3", first=9, last=9)),
        ('@"a name.txt" too', _one("a name.txt")),
        ("@src/", _one("src/")),
        ("@a.py and @a.py again", _one("a.py")),
        ("write to ann@example.com", ()),
        ("npm i @", ()),
        ("`@a.py` is code", ()),
        ("a@b @@c", ()),
        ("", ()),
    ],
)
def test_a_word_that_begins_with_an_at_sign_is_a_mention(
    text: str, found: tuple[Mention, ...]
) -> None:
    assert find_mentions(text) == found


def test_mentions_are_bounded() -> None:
    assert len(find_mentions(" ".join(f"@f{n}" for n in range(99)))) == MENTIONS_MAX
    assert len(find_mentions(" ".join(f"@f{n}" for n in range(99)), most=50)) == 50


@given(st.text(alphabet='@ab./:-#L3"\n ,(', max_size=60))
def test_any_text_can_be_looked_through(text: str) -> None:
    for mention in find_mentions(text):
        assert mention.path
        assert mention.path in text
        assert mention.plain in text
        assert mention.first is None or 1 <= mention.first <= (mention.last or 0)


def test_lines_are_cut_out_with_their_ends() -> None:
    assert cut_lines("a\nb\r\nc", 2, 3) == "b\r\nc"
    assert cut_lines("a\nb", 5, 9) == ""


def test_lines_are_written_as_one_or_from_to() -> None:
    assert [m.lines for m in find_mentions("@a @a:2 @a:2-3")] == [None, "2", "2-3"]

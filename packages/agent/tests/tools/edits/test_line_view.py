"""A text with plain line ends over one with any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.tools.edits.line_view import LineView, Span, plain_ends

RAW = st.text(alphabet="ab\r\n", max_size=40)


@st.composite
def _spliced(draw: st.DrawFn) -> tuple[str, list[Span]]:
    raw = draw(RAW)
    size = len(plain_ends(raw))
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=6)))
    new = st.text(alphabet="x\n", max_size=4)
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return raw, [Span(start, end, draw(new)) for start, end in pairs]


@pytest.mark.rules("A5.5")
@given(case=_spliced())
def test_a_splice_is_one_of_the_plain_text(case: tuple[str, list[Span]]) -> None:
    raw, spans = case
    view = LineView(raw)
    wanted = view.text
    for span in reversed(spans):
        wanted = wanted[: span.start] + span.new + wanted[span.end :]
    made = view.splice(spans)
    if "\r" not in raw or raw.count("\r\n") == raw.count("\r") == raw.count("\n"):
        assert plain_ends(made) == wanted
    assert view.splice([]) == raw


@pytest.mark.rules("A5.5")
@pytest.mark.parametrize(
    ("raw", "start", "end", "made"),
    [
        ("a\r\nb\r\nc\r\n", 2, 4, "a\r\nX\r\nY\r\nc\r\n"),
        ("a\rb\rc", 2, 4, "a\rX\rY\rc"),
        ("a\nb\r\nc\n", 2, 4, "a\nX\r\nY\r\nc\n"),
        ("a\r\nb\nc\n", 2, 4, "a\r\nX\nY\nc\n"),
        ("a\nb\nc\n", 2, 4, "a\nX\nY\nc\n"),
        ("a\nb\r\n", 0, 0, "X\nY\na\nb\r\n"),
        ("ab\r\n", 1, 1, "aX\r\nY\r\nb\r\n"),
    ],
)
def test_new_lines_end_as_those_round_them(raw: str, start: int, end: int, made: str) -> None:
    assert LineView(raw).splice([Span(start, end, "X\nY\n")]) == made


@given(raw=st.text(alphabet="ab\n\r\f\u2028", max_size=30))
def test_a_line_starts_behind_each_line_end_and_nowhere_else(raw: str) -> None:
    view = LineView(raw)
    places = [0, *(at + 1 for at, char in enumerate(view.text) if char == "\n")]
    assert view.line_starts() == [at for at in places if at < len(view.text)]

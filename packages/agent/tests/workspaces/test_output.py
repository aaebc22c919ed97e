"""Output that is cut in the middle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.workspaces.output import OUTPUT_MAX_CHARS, OutputCut, StreamCut, TextCut


def _ignore(text: str) -> None: ...


_PLAIN = st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.just("\n"), max_size=40)


@given(pieces=st.lists(_PLAIN, max_size=20), often=st.integers(1, 3))
def test_short_output_is_kept_and_shown_whatever_its_pieces(pieces: list[str], often: int) -> None:
    shown: list[str] = []
    cut = OutputCut(shown.append)
    for number, piece in enumerate(pieces):
        cut.feed(piece.encode())
        if number % often == 0:
            cut.show(number)
    cut.feed(b"", final=True)
    cut.show(99)
    assert cut.text == "".join(shown) == "".join(pieces)
    assert not cut.truncated


@pytest.mark.rules("R49")
@given(size=st.integers(min_value=0, max_value=2000), piece=st.integers(min_value=1, max_value=700))
def test_long_output_keeps_its_head_and_its_tail(size: int, piece: int) -> None:
    text = "".join(chr(0x100 + n) for n in range(size))
    raw = text.encode()
    cut = OutputCut(_ignore, limit=300)
    for start in range(0, len(raw), piece):
        cut.feed(raw[start : start + piece])
    cut.feed(b"", final=True)
    assert cut.truncated is (size > 300)
    assert len(cut.text) <= 300
    if cut.truncated:
        assert cut.text.startswith(text[:118])
        assert cut.text.endswith(text[-118:])
        assert f"[… {size - 236} characters left out …]" in cut.text
    else:
        assert cut.text == text


@pytest.mark.rules("R49")
def test_the_error_at_the_end_of_a_build_is_kept() -> None:
    cut = OutputCut(_ignore)
    for number in range(19):
        cut.feed(f"line {number} ".encode() + b"x" * 10_000 + b"\n")
    cut.feed(b"error: build failed\n", final=True)
    assert cut.truncated
    assert cut.text.startswith("line 0 ")
    assert cut.text.endswith("error: build failed\n")
    assert len(cut.text) <= OUTPUT_MAX_CHARS


def test_who_watches_is_told_of_no_more_than_the_bound() -> None:
    shown: list[str] = []
    stream = StreamCut(shown.append, limit=10)
    for _ in range(5):
        stream.add("abcd")
    text = "".join(shown)
    assert text.startswith("abcdabcdab\n[… more output")
    assert text.count("more output") == 1


def test_endless_output_keeps_little_in_memory() -> None:
    cut = TextCut(1000)
    for _ in range(1000):
        cut.add("x" * 997)
    cut.add("y" * 100_000)
    assert sum(len(piece) for piece in cut._tail) < 3000  # pyright: ignore[reportPrivateUsage]
    assert len(cut.cut()) <= 1000
    assert cut.is_cut()
    assert cut.cut("the end").endswith("the end")


@pytest.mark.rules("A5.18")
def test_a_bar_that_moves_is_shown_once_a_second_and_kept_once() -> None:
    shown: list[str] = []
    cut = OutputCut(shown.append)
    for number in range(1000):
        cut.feed(f"\r{number} of 1000".encode())
        cut.show(number / 100)
    cut.feed(b"\rall done\nnext\n", final=True)
    cut.show(10.0)
    assert cut.text == "all done\nnext\n"
    text = "".join(shown)
    assert text.startswith("0 of 1000")
    assert text.endswith("\nall done\nnext\n")
    assert 8 <= text.count("of 1000") <= 12


def test_a_line_is_shown_before_its_end() -> None:
    shown: list[str] = []
    cut = OutputCut(shown.append)
    for piece in (b"Proceed", b"? ", b"[y]\n", b"ok"):
        cut.feed(piece)
        cut.show(0.0)
    assert shown == ["Proceed", "? ", "[y]\n", "ok"]
    assert cut.text == "Proceed? [y]\nok"

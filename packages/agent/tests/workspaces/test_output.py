"""Output that is cut in the middle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.workspaces.output import OUTPUT_MAX_CHARS, OutputCut


def _ignore(text: str) -> None: ...


@given(pieces=st.lists(st.binary(max_size=40), max_size=20))
def test_short_output_is_kept_whatever_its_pieces(pieces: list[bytes]) -> None:
    shown: list[str] = []
    cut = OutputCut(shown.append)
    for piece in pieces:
        cut.feed(piece)
    cut.feed(b"", final=True)
    assert cut.text == "".join(shown) == b"".join(pieces).decode("utf-8", "replace")
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
    cut = OutputCut(shown.append, stream_max=10)
    for _ in range(5):
        cut.feed(b"abcd")
    text = "".join(shown)
    assert text.startswith("abcdabcdab\n[… more output")
    assert text.count("more output") == 1
    assert cut.text == "abcd" * 5


def test_endless_output_keeps_little_in_memory() -> None:
    cut = OutputCut(_ignore, limit=1000)
    for _ in range(1000):
        cut.feed(b"x" * 997)
    assert sum(len(piece) for piece in cut._tail) < 2000  # pyright: ignore[reportPrivateUsage]
    assert len(cut.text) <= 1000

"""What is written for a terminal, as plain text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from towline_agent.workspaces.terminal import LINE_CHARS, TerminalText


def _read(*pieces: bytes) -> str:
    terminal = TerminalText()
    return "".join(map(terminal.feed, pieces)) + terminal.feed(b"", final=True)


def _read_bytewise(data: bytes) -> str:
    return _read(*(data[n : n + 1] for n in range(len(data))))


@pytest.mark.rules("A5.18")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"10%\r20%\r100%\ndone\n", "100%\ndone\n"),
        (b"a\r\nb\r\r\nc", "a\nb\nc"),
        (b"working\r", "working"),
        (b"a\rb\r", "b"),
        (b"|\b/\b-\b done\n", " done\n"),
        (b"\b\bx\n", "x\n"),
        (b"N\bNA\bAM\bME\bE\n", "NAME\n"),
        (b"\x1b[1;31merror\x1b[0m: no\n", "error: no\n"),
        (b"\x1b[2K\x1b[1Gnew\n", "new\n"),
        (b"old\x1b[Gnew\n", "new\n"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "alink\n"),
        (b"\x1bP1$r0m\x1b\\a\x1b(Bb\x1b=c\n", "abc\n"),
        (b"\xc2\x9b31mred\n", "red\n"),
        (b"bell\x07 form\x0c shift\x0e\x7f\n", "bell form shift\n"),
        (b"a\0b\0", "a\ufffdb\ufffd"),
        (b"bad \xff\xfe utf\n", "bad \ufffd\ufffd utf\n"),
        ("grüße 😀\n".encode(), "grüße 😀\n"),
        (b"cut off \xe2\x82", "cut off \ufffd"),
        (b"\x1b[12\nkept\n", "12\nkept\n"),
        (b"\x1b]no end\nkept\n", "no end\nkept\n"),
        (b"end\x1b", "end"),
        (b"end\x1b[3", "end3"),
        (b"\ttab\n", "\ttab\n"),
    ],
)
def test_it_reads_as_on_a_screen_whatever_the_pieces(written: bytes, read: str) -> None:
    assert _read(written) == read
    assert _read_bytewise(written) == read


_PIECES = st.lists(
    st.sampled_from(
        [
            b"a",
            b"\r",
            b"\n",
            b"\b",
            b"\x1b",
            b"[",
            b"3",
            b"m",
            b"]",
            b"\x07",
            b"\\",
            b"\xc3",
            b"\xa4",
        ]
    ),
    max_size=40,
)


@given(pieces=_PIECES)
@example(pieces=[b"\x1b", b"]", b"a", b"\x1b", b"\\", b"b"])
def test_how_it_is_cut_into_pieces_makes_no_difference(pieces: list[bytes]) -> None:
    whole = _read(b"".join(pieces))
    assert _read(*pieces) == whole
    assert not set(whole) & {"\x1b", "\r", "\b", "\0", "\x07"}


@given(text=st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\t")))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert _read(text.encode()) == text


def test_the_line_that_is_open_can_be_seen() -> None:
    terminal = TerminalText()
    assert terminal.feed(b"one\n10%\r20") == "one\n"
    assert terminal.line == "20"
    assert terminal.feed(b"%\r") == ""
    assert terminal.line == "20%"
    assert terminal.feed(b"30%") == ""
    assert terminal.line == "30%"


@pytest.mark.rules("R49")
def test_a_line_or_a_sequence_without_an_end_is_not_kept_for_ever() -> None:
    terminal = TerminalText()
    given = "".join(terminal.feed(b"x" * 1000) for _ in range(1000))
    assert len(given) + len(terminal.line) == 1_000_000
    assert len(terminal.line) <= LINE_CHARS
    terminal = TerminalText()
    terminal.feed(b"\x1b]")
    given = "".join(terminal.feed(b"y" * 1000) for _ in range(1000))
    assert given.count("y") + terminal.line.count("y") > 990_000

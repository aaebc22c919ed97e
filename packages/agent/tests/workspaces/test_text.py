"""A file's text and the way back to its bytes."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import ToolError
from towline_agent.workspaces.text import decode

LINES = st.lists(
    st.tuples(
        st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"])),
        st.sampled_from(["\n", "\r\n", "\r"]),
    )
)
ENCODINGS = [
    ("utf-8", b""),
    ("utf-8", codecs.BOM_UTF8),
    ("utf-16-le", codecs.BOM_UTF16_LE),
    ("utf-16-be", codecs.BOM_UTF16_BE),
    ("utf-32-le", codecs.BOM_UTF32_LE),
    ("utf-32-be", codecs.BOM_UTF32_BE),
]


@pytest.mark.rules("A5.5")
@given(st.binary())
def test_any_file_that_is_a_text_can_be_written_back_byte_for_byte(raw: bytes) -> None:
    file = decode(raw)
    if file is not None and file.exact:
        assert file.encode() == raw
        assert file.encode(file.text) == raw
        assert "\r" not in file.text


@pytest.mark.rules("A5.5")
@given(LINES, st.sampled_from(ENCODINGS))
def test_encoding_mark_and_every_line_end_are_kept(
    lines: list[tuple[str, str]], form: tuple[str, bytes]
) -> None:
    encoding, mark = form
    raw = mark + "".join(line + end for line, end in lines).encode(encoding)
    file = decode(raw)
    assert file is not None
    assert file.exact
    assert file.encode() == raw


@pytest.mark.rules("A5.5")
@given(LINES, st.sampled_from(ENCODINGS), st.text("ab\n", max_size=40))
def test_what_is_written_is_read_again(
    lines: list[tuple[str, str]], form: tuple[str, bytes], text: str
) -> None:
    encoding, mark = form
    file = decode(mark + "".join(line + end for line, end in lines).encode(encoding))
    assert file is not None
    again = decode(file.encode(text))
    assert again is not None
    assert again.text == text


@pytest.mark.rules("A5.5")
@given(LINES, LINES, LINES)
def test_lines_round_an_edit_keep_their_ends(
    head: list[tuple[str, str]], middle: list[tuple[str, str]], tail: list[tuple[str, str]]
) -> None:
    def join(lines: list[tuple[str, str]]) -> str:
        return "".join(line + end for line, end in lines)

    # every second `\r` here could begin a `\r\n` of the next line
    whole = [(f"{line}.", end) for line, end in (*head, *middle, *tail)]
    file = decode(b"\xef\xbb\xbf" + join(whole).encode())
    assert file is not None
    lines = file.text.split("\n")
    lines[len(head) : len(head) + len(middle)] = ["new one", "new two"]
    changed = file.encode("\n".join(lines)).removeprefix(codecs.BOM_UTF8).decode()
    assert changed.startswith(join(whole[: len(head)]))
    assert changed.endswith(join(whole[len(head) + len(middle) :]))


@pytest.mark.rules("A5.5")
@pytest.mark.parametrize(
    ("raw", "text", "newline"),
    [
        (b"a\nb", "a\nb", "\n"),
        (b"a\r\nb\r\n", "a\nb\n", "\r\n"),
        (b"a\rb\r", "a\nb\n", "\r"),
        (b"a\r\nb\nc\r\n", "a\nb\nc\n", "\r\n"),
        (b"a\r\r\n", "a\n\n", "\r\n"),
        (b"", "", "\n"),
        (b"a", "a", "\n"),
    ],
)
def test_a_new_line_ends_as_most_others_do(raw: bytes, text: str, newline: str) -> None:
    file = decode(raw)
    assert file is not None
    assert file.text == text
    if raw != b"a\r\r\n":
        assert file.newline == newline
    assert file.encode(f"{text}x\ny").endswith(f"x{file.newline}y".encode())
    assert file.encode(f"{text}x\r\ny") == file.encode(f"{text}x\ny")


@pytest.mark.rules("A5.5")
def test_a_file_in_an_old_encoding_stays_in_it() -> None:
    file = decode(b"caf\xe9 \x81 \x80\r\n")
    assert file is not None
    assert (file.text, file.encoding) == ("café \x81 €\n", "cp1252")
    assert file.encode("caf€ é\n") == b"caf\x80 \xe9\r\n"
    with pytest.raises(ToolError, match=r"cp1252 has no sign for '☕' \(U\+2615\); leave it out"):
        file.encode("a ☕\n")


def test_half_a_character_is_told() -> None:
    file = decode(b"a")
    assert file is not None
    with pytest.raises(ToolError, match=r"utf-8 has no sign for '\\ud800' \(U\+D800\)"):
        file.encode("\ud800")


@pytest.mark.rules("A5.7")
def test_a_file_that_is_no_text_is_none() -> None:
    assert decode(b"\x89PNG\0\0") is None
    assert decode(b"a" * 9000 + b"\0") is not None


@pytest.mark.parametrize(
    "raw", [codecs.BOM_UTF8 + b"\xff", codecs.BOM_UTF16_LE + b"a", codecs.BOM_UTF16_BE + b"\xd8\0"]
)
def test_a_file_with_bytes_that_are_none_of_its_encoding_is_not_written(raw: bytes) -> None:
    file = decode(raw)
    assert file is not None
    assert not file.exact
    with pytest.raises(ToolError, match="can't be written back without losing them"):
        file.encode()

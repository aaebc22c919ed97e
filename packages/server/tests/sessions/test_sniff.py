"""What bytes are is told by the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_server.sessions.sniff import BINARY, PDF, TEXT, Sniffer, sniff


@pytest.mark.rules("C1.10")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\nrest", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"RIFF\x10\x00\x00\x00AVI ", BINARY),
        (b"%PDF-1.7\n", PDF),
        (b"<html><script>alert(1)</script>", TEXT),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", TEXT),
        ("gr\u00fc\u00dfe\r\n\t\u001b[31mred".encode(), TEXT),
        (b"\xef\xbb\xbfwith a mark", TEXT),
        ("gr\u00fc\u00dfe".encode("latin-1"), BINARY),
        ("words".encode("utf-16"), BINARY),
        (b"half \xe2\x82", BINARY),
        (b"a\x00b", BINARY),
        (b"\x7fELF", BINARY),
        (b"PK\x03\x04", "application/zip"),
    ],
)
def test_a_kind_is_known_by_its_bytes_alone(data: bytes, kind: str) -> None:
    assert sniff(data) == kind


@given(st.binary(max_size=60), st.integers(1, 7))
def test_how_the_bytes_come_changes_nothing(data: bytes, size: int) -> None:
    sniffer = Sniffer()
    for start in range(0, len(data), size):
        sniffer.feed(data[start : start + size])
    assert sniffer.media_type() == sniff(data)


@given(st.text(st.characters(exclude_categories=["C"])))
def test_words_in_any_writing_are_text(words: str) -> None:
    assert sniff(b"\n" + words.encode()) == TEXT

"""The reader and writer of server-sent events."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_protocol import (
    MAX_EVENT_BYTES,
    ProtocolError,
    SseDecoder,
    SseEvent,
    encode_comment,
    encode_event,
)

STREAM = (
    b"\xef\xbb\xbf: hi\r\n"
    b"retry: 3000\r"
    b"event: hello\r\ndata: {}\r\r\n"
    b'id: 1\ndata: {"t": "\xe4\xbd\xa0 \xf0\x9f\x98\x80"}\n\n'
    b"data: one\rdata:two\r\ndata:  three\n\r\n"
    b"data\n\n"
    b": keep-alive\n\n"
    b"event: nothing\n\n"
    b"id: 7\n\n"
    b"unknown: field\ndata: end\r\r"
)
EVENTS = [
    SseEvent(b"{}", "hello"),
    SseEvent(b'{"t": "\xe4\xbd\xa0 \xf0\x9f\x98\x80"}', "", "1"),
    SseEvent(b"one\ntwo\n three"),
    SseEvent(b""),
    SseEvent(b"end"),
]


def read(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    decoder.close()
    return events


@pytest.mark.rules("S09", "R03")
@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_a_stream_reads_the_same_wherever_it_is_cut(cut: int) -> None:
    assert read(STREAM[:cut], STREAM[cut:]) == EVENTS


@pytest.mark.rules("S09")
def test_a_stream_reads_the_same_byte_by_byte() -> None:
    assert read(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == EVENTS


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_a_stream_reads_the_same_in_any_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[a:b] for a, b in itertools.pairwise(places))) == EVENTS


@pytest.mark.rules("R01")
@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e"])
def test_only_lf_cr_and_crlf_end_a_line(char: str) -> None:
    text = json.dumps({"text": f"Hello{char}World"}, ensure_ascii=False)
    data = f"event: message\ndata: {text}\n\n".encode()
    for cut in range(len(data)):
        (event,) = read(data[:cut], data[cut:])
        assert event == SseEvent(text.encode(), "message")


@pytest.mark.rules("R03")
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_character_cut_by_the_network_is_put_together(cut: int) -> None:
    grin = "\N{GRINNING FACE}".encode()
    assert read(b"data: " + grin[:cut], grin[cut:] + b"\n\n") == [SseEvent(grin)]


@pytest.mark.rules("R03")
@pytest.mark.parametrize("rest", [b"data: \xe4\xbd", b"data: a\ndata: \xf0\x9f", b"data: \xf0\n"])
def test_a_stream_that_ends_inside_a_character_is_an_error(rest: bytes) -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: whole\n\n" + rest) == [SseEvent(b"whole")]
    with pytest.raises(ProtocolError, match="inside a character"):
        decoder.close()


@pytest.mark.rules("R05")
def test_an_event_needs_a_data_line_and_an_empty_one_will_do() -> None:
    assert read(b"data:\n\n") == [SseEvent(b"")]
    assert read(b"data\n\n") == [SseEvent(b"")]
    assert read(b": keep-alive\n\n") == []
    assert read(b"event: x\n\n") == []


@pytest.mark.rules("S09")
def test_an_id_belongs_to_its_own_event_alone() -> None:
    stream = b"id: 5\ndata: a\n\ndata: b\n\nid: 6\n\ndata: c\n\nid: 7\0\ndata: d\n\n"
    assert [(e.data, e.id) for e in read(stream)] == [
        (b"a", "5"),
        (b"b", None),
        (b"c", None),
        (b"d", None),
    ]


def test_an_event_that_was_not_completed_is_dropped() -> None:
    assert read(b"data: a\n\ndata: b\n") == [SseEvent(b"a")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_lf_after_a_cr_belongs_to_it_even_in_the_next_chunk(end: bytes) -> None:
    decoder = SseDecoder()
    events = decoder.feed(b"data: a\r")
    events += decoder.feed(b"\ndata: b" + end)
    events += decoder.feed(b"")
    events += decoder.feed(end)
    assert events == [SseEvent(b"a\nb")]


def test_an_event_goes_out_as_soon_as_its_blank_line_is_read() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n") == []
    assert decoder.feed(b"\r") == [SseEvent(b"a")]
    assert decoder.feed(b"\ndata: b\n\n") == [SseEvent(b"b")]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    assert read(b"\xef\xbb", b"\xbfdata: a\n\n") == [SseEvent(b"a")]
    assert read(b"\n\xef\xbb\xbfdata: a\n\n") == []


@pytest.mark.parametrize(
    ("line", "retry"), [(b"retry: 3000", 3000), (b"retry: soon", None), (b"retry:", None)]
)
def test_retry_is_kept_when_it_is_a_number(line: bytes, retry: int | None) -> None:
    decoder = SseDecoder()
    decoder.feed(line + b"\n")
    assert decoder.retry == retry


@pytest.mark.parametrize(
    "chunks",
    [
        (b"data: " + b"x" * 100,),
        (b"data: xxxxxxxx\n",) * 10,
        (b"x" * 10,) * 10,
    ],
    ids=["one line", "many lines", "a line that never ends"],
)
def test_an_event_larger_than_the_bound_is_an_error(chunks: tuple[bytes, ...]) -> None:
    decoder = SseDecoder(max_event_bytes=64)
    with pytest.raises(ProtocolError, match="larger than 64 bytes"):
        [decoder.feed(chunk) for chunk in chunks]


def test_the_bound_is_for_one_event_not_for_the_stream() -> None:
    decoder = SseDecoder(max_event_bytes=64)
    assert len(decoder.feed(b"data: 0123456789\n\n" * 100)) == 100
    for _ in range(100):
        assert decoder.feed(b"data: 01234") == []
        assert decoder.feed(b"56789\n\n") == [SseEvent(b"0123456789")]


def test_the_largest_event_passes() -> None:
    data = b"x" * (MAX_EVENT_BYTES - 16)
    assert read(b"data: " + data + b"\n\n") == [SseEvent(data)]


@pytest.mark.rules("C3.4")
def test_a_number_stands_in_the_id_line_and_a_name_in_the_event_line() -> None:
    assert encode_event(b"{}") == b"data: {}\n\n"
    assert encode_event(b"{}", id=12) == b"id: 12\ndata: {}\n\n"
    assert encode_event(b"{}", event="hello") == b"event: hello\ndata: {}\n\n"


@given(
    data=st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])),
    number=st.none() | st.integers(1, 2**40),
    name=st.none() | st.sampled_from(["hello", "partial", "gap"]),
)
def test_what_is_written_is_read(data: str, number: int | None, name: str | None) -> None:
    written = encode_comment("keep-alive") + encode_event(data.encode(), id=number, event=name)
    expected = SseEvent(data.encode(), name or "", None if number is None else str(number))
    assert read(written) == [expected]


def test_a_comment_means_nothing() -> None:
    assert read(encode_comment(), encode_comment("still here")) == []

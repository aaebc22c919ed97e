"""The reader and writer of server-sent events."""

import itertools
import json
import re
from pathlib import Path

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

RECORDINGS = Path(__file__).parents[2] / "agent/tests/recordings"
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


ENDS = (b"\n", b"\r", b"\r\n")


def reference(stream: bytes) -> list[SseEvent]:
    """The rules of the HTML standard in their plainest form, on the whole stream at once."""
    events: list[SseEvent] = []
    data: list[bytes] = []
    name = ""
    number: str | None = None
    *lines, _ = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    for line in lines:
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if not line:
            if data:
                events.append(SseEvent(b"\n".join(data), name, number))
            data, name, number = [], "", None
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            number = value.decode(errors="replace")
    return events


def feed(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(places)]


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
    assert read(*pieces(STREAM, cuts)) == EVENTS


@pytest.mark.rules("S09")
def test_two_cuts_anywhere_change_nothing_either() -> None:
    for one, two in itertools.combinations(range(len(STREAM) + 1), 2):
        assert feed(*pieces(STREAM, [one, two])) == EVENTS


_LINES = st.lists(
    st.sampled_from(
        [b"data: a", b"data:b", b"data:  c ", b"data", b"data:", b"", b"", b": hi", b":",
         b"event: x", b"event", b"id: 1", b"id", b"id: \0", b"other: y", b"data : z", b"Data: z",
         b" data: z",
         "data: \u4f60\u2028\u0085\v\f\x1c".encode(), b"\xef\xbb\xbfdata: m",
         b"data: \xff", b"[DONE]"]
    ),
    max_size=12,
)  # fmt: skip


@pytest.mark.rules("S09", "R01", "R05")
@given(
    lines=_LINES,
    ends=st.lists(st.sampled_from(ENDS), min_size=12, max_size=12),
    mark=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_any_lines_with_any_ends_in_any_pieces_read_as_the_standard_says(
    lines: list[bytes], ends: list[bytes], mark: bool, cuts: list[int]
) -> None:
    stream = b"\xef\xbb\xbf" * mark + b"".join(
        line + end for line, end in zip(lines, ends, strict=False)
    )
    assert feed(*pieces(stream, cuts)) == reference(stream)


@given(
    stream=st.lists(st.sampled_from(list(b"data: \r\n\r\nx:\xe4"))).map(bytes),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_any_bytes_in_any_pieces_read_as_the_standard_says(stream: bytes, cuts: list[int]) -> None:
    assert feed(*pieces(stream, cuts)) == reference(stream)


@pytest.mark.rules("S09", "R03")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1021])
def test_every_recorded_stream_reads_the_same_however_it_is_cut(size: int) -> None:
    paths = sorted(RECORDINGS.rglob("*.sse"))
    assert len(paths) > 80
    for path in paths:
        stream = path.read_bytes() + b"\n\n"
        if len(stream) < size * 10_000:  # the long ones byte by byte would take too long
            cuts = [stream[at : at + size] for at in range(0, len(stream), size)]
            assert read(*cuts) == reference(stream), path.name


def test_line_ends_may_be_mixed() -> None:
    for one, two, three, four in itertools.product(ENDS, repeat=4):
        stream = b"event: x" + one + b"data: a" + two + b"data: b" + three + four
        if three + four == b"\r\n":
            continue  # together they are one end, and the blank line is missing
        for cut in range(len(stream) + 1):
            assert feed(stream[:cut], stream[cut:]) == [SseEvent(b"a\nb", "x")]


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
@pytest.mark.parametrize(
    "text", ["\u4f60", "\N{GRINNING FACE}", "e\u0301", "\N{FAMILY}\u200d\u2640"]
)
@pytest.mark.parametrize("plain", [True, False], ids=["escaped", "as it is"])
def test_no_cut_spoils_a_character_in_json(text: str, plain: bool) -> None:
    """An escaped one outside the first plane is two halves, `\\ud83d\\ude00`."""
    data = json.dumps({"t": text}, ensure_ascii=plain).encode()
    stream = b"data: " + data + b"\r\n\r\n"
    for cut in range(len(stream) + 1):
        (event,) = read(stream[:cut], stream[cut:])
        assert json.loads(event.data) == {"t": text}


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


@pytest.mark.rules("R05")
def test_one_space_after_the_colon_is_no_part_of_the_data() -> None:
    lines = (b"data:a", b"data: a", b"data:  a", b"data:\ta", b"data: ", b"data:", b"data")
    found = [event.data for line in lines for event in read(line + b"\n\n")]
    assert found == [b"a", b"a", b" a", b"\ta", b"", b"", b""]


@pytest.mark.rules("R05")
def test_a_comment_in_the_middle_of_an_event_breaks_nothing() -> None:
    assert read(b": one\ndata: a\n:\n: data: no\ndata: b\n\n: OPENROUTER PROCESSING\n\n") == [
        SseEvent(b"a\nb")
    ]


def test_a_stream_needs_no_word_for_its_end() -> None:
    assert read(b'data: {"a":1}\n\n') == [SseEvent(b'{"a":1}')]
    assert feed(b'data: {"a":1}', b"\n\n") == [SseEvent(b'{"a":1}')]


def test_what_comes_after_the_end_is_read_all_the_same() -> None:
    stream = b"data: [DONE]\n\ndata: {}\n\n: bye\n\nrubbish\ndata: [DONE]\r\n\r\n"
    for cut in range(len(stream) + 1):
        found = [event.data for event in feed(stream[:cut], stream[cut:])]
        assert found == [b"[DONE]", b"{}", b"[DONE]"]


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


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("end", ENDS)
def test_an_event_as_large_as_the_bound_passes_and_one_byte_more_does_not(
    size: int, end: bytes
) -> None:
    def fed(data: bytes) -> list[SseEvent]:
        decoder = SseDecoder(max_event_bytes=64)
        stream = b"data:" + data + end * 2
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        return [event for chunk in chunks for event in decoder.feed(chunk)]

    largest = b"x" * (64 - len(b"data:"))  # the line counts while it is open
    assert fed(largest) == [SseEvent(largest)]
    with pytest.raises(ProtocolError, match="larger than 64 bytes"):
        fed(b"x" * 65)


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

"""JSON values out of a stream: arrays in pieces and one value a line."""

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.json_stream import JsonSplitter
from towline_protocol import MAX_EVENT_BYTES, ProtocolError

RECORDINGS = Path(__file__).parents[1] / "recordings"
VALUES: list[Any] = [
    {"text": 'brackets ]}[{ and "quotes" \\ ', "deep": [[{"a": []}], {}]},
    {"text": "你 \N{GRINNING FACE} \u2028\u2029\u0085"},
    {},
    "a, string ] with \\ ends\\",
    12.5,
    None,
    {"last": True},
]
ARRAY = "[{},\r\n{},\n{} , {},{},\r\n{}\n,{}\r\n]\r\n".format(
    *(json.dumps(value, ensure_ascii=False) for value in VALUES)
).encode()
LINES = b"".join(json.dumps(value).encode() + b"\n" for value in VALUES)


def read(*chunks: bytes) -> list[Any]:
    splitter = JsonSplitter()
    found = [value for chunk in chunks for value in splitter.feed(chunk)]
    return [json.loads(value) for value in [*found, *splitter.close()]]


@pytest.mark.rules("R03")
@pytest.mark.parametrize("stream", [ARRAY, LINES], ids=["array", "lines"])
def test_a_stream_reads_the_same_wherever_it_is_cut(stream: bytes) -> None:
    for cut in range(len(stream) + 1):
        assert read(stream[:cut], stream[cut:]) == VALUES
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == VALUES


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    values=st.lists(st.dictionaries(st.text(), _JSON, max_size=3) | st.text() | st.integers()),
    lines=st.booleans(),
    indent=st.none() | st.just(1),
    plain=st.booleans(),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_any_values_in_any_pieces_come_out_as_they_went_in(
    values: list[Any], lines: bool, indent: int | None, plain: bool, cuts: list[int]
) -> None:
    texts = [json.dumps(value, indent=indent, ensure_ascii=plain) for value in values]
    text = "\n".join(texts) if lines else f"[{','.join(texts)}]"
    stream = text.encode("utf-8", "surrogatepass")
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert read(*(stream[a:b] for a, b in itertools.pairwise(places))) == values


def test_a_value_goes_out_as_soon_as_it_is_whole() -> None:
    splitter = JsonSplitter()
    assert splitter.feed(b'[{"a": 1') == []
    assert splitter.feed(b"}") == [b'{"a": 1}']
    assert splitter.feed(b",\r\n") == []
    assert splitter.feed(b"[") == []
    assert splitter.feed(b'{"b": 2}, {"c":') == [b'{"b": 2}']
    assert splitter.feed(b'"}"}]]') == [b'{"c":"}"}']
    assert splitter.close() == []


@pytest.mark.parametrize(
    ("stream", "values"),
    [
        (b"", []),
        (b" \r\n ", []),
        (b"[]", []),
        (b"[][ ]\n[1,2]3 4", [1, 2, 3, 4]),
        (b'{"a":1}{"b":2}', [{"a": 1}, {"b": 2}]),
        (b"\xef\xbb\xbf[1]", [1]),
        (b"true\nfalse\nnull", [True, False, None]),
        (b'"\\ud83d\\ude00" "\\\\"', ["\N{GRINNING FACE}", "\\"]),
    ],
)
def test_odd_streams(stream: bytes, values: list[Any]) -> None:
    assert read(stream) == values
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == values


@pytest.mark.parametrize(
    "stream", [b"[", b'[{"a":1},', b'{"a":', b'"abc', b'"abc\\', b'[{"t":"\xe4\xbd', b"\xef\xbb"]
)
def test_a_stream_without_its_end_is_an_error_after_what_was_whole(stream: bytes) -> None:
    splitter = JsonSplitter()
    assert splitter.feed(b'{"whole": 1}' if stream != b"\xef\xbb" else b"") in (
        [b'{"whole": 1}'],
        [],
    )
    splitter.feed(stream)
    with pytest.raises(ProtocolError, match="ended in the middle"):
        splitter.close()


@pytest.mark.parametrize("stream", [b"]", b"}", b"[1]]", b'{"a":1}}'])
def test_an_end_of_nothing_is_an_error(stream: bytes) -> None:
    with pytest.raises(ProtocolError, match="where nothing is open"):
        read(stream)


@pytest.mark.parametrize(
    "chunks",
    [
        (b'{"a":"' + b"x" * 100 + b'"}',),
        (b'{"a":"', *(b"xxxxxxxx",) * 10),
        (b"1" * 100,),
        (b"[", b"{", *(b"[",) * 100),
    ],
    ids=["one piece", "many pieces", "a number", "brackets"],
)
def test_a_value_larger_than_the_bound_is_an_error(chunks: tuple[bytes, ...]) -> None:
    splitter = JsonSplitter(max_value_bytes=64)
    with pytest.raises(ProtocolError, match="larger than 64 bytes"):
        [splitter.feed(chunk) for chunk in chunks]


def test_the_bound_is_for_one_value_not_for_the_stream() -> None:
    splitter = JsonSplitter(max_value_bytes=16)
    assert len(splitter.feed(b"[" + b'{"a": "0123"}, ' * 100)) == 100
    splitter = JsonSplitter()
    large = b'"' + b"x" * (MAX_EVENT_BYTES - 2) + b'"'
    assert splitter.feed(large) == [large]


def test_every_recorded_json_stream_splits_into_its_values() -> None:
    with (RECORDINGS / "index.csv").open(newline="") as file:
        providers = {row["provider"] for row in csv.DictReader(file)}
    names = [
        path
        for provider in sorted(providers)
        for pattern in ("*.json.txt", "*.ndjson")
        for path in sorted((RECORDINGS / provider).glob(pattern))
    ]
    assert len(names) >= 3
    for path in names:
        body = path.read_bytes()
        if body.lstrip().startswith(b"["):
            expected = json.loads(body)
        else:
            expected = [json.loads(line) for line in body.split(b"\n") if line.strip()]
        assert expected
        for size in (1, 7, 64, 1021, len(body)):
            cuts = [body[at : at + size] for at in range(0, len(body), size)]
            assert read(*cuts) == expected, path.name

"""Halves of characters, wrong types and rubbish: nothing raises, nothing bad leaves (R55)."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.base import Piece, StepAnswer, StepResult
from towline_agent.providers.errors import Peer
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import Opaque, SseEvent, Text, Thinking, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1beta")
HIGH, LOW = "\ud83d", "\ude00"
UNITS = st.text(st.sampled_from([HIGH, LOW, "a", "é", "😀", "\ud800", "\udfff"]), max_size=8)
_Json = dict[str, Any]


def _decode(*values: Any) -> tuple[StepResult, list[Piece]]:
    pieces: list[Piece] = []
    decoder = GeminiDecoder(PEER, GeminiFlags(), pieces.append)
    for value in values:
        decoder.feed(SseEvent(json.dumps(value).encode()))
    return decoder.finish(), pieces


def _parts(*parts: _Json) -> tuple[StepAnswer, list[Piece]]:
    values = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    result, pieces = _decode(*values, {"candidates": [{"finishReason": "STOP"}]})
    assert isinstance(result, StepAnswer)
    return result, pieces


@pytest.mark.rules("A2.22", "A2.24", "R55")
@pytest.mark.parametrize("thought", [True, False])
def test_two_halves_in_one_block_become_one_character(thought: bool) -> None:
    result, pieces = _parts(
        {"text": "a" + HIGH, "thought": thought}, {"text": LOW + "b", "thought": thought}
    )
    (block,) = result.content
    assert isinstance(block, Text | Thinking)
    assert block.text == "a😀b"
    assert [piece.text for piece in pieces] == ["a", "😀b"]


@pytest.mark.rules("A2.22", "A2.49", "R55")
def test_halves_in_names_and_arguments_are_joined() -> None:
    halves = [
        {"jsonPath": "$.a", "stringValue": "x" + HIGH, "willContinue": True},
        {"jsonPath": "$.a", "stringValue": LOW + "y"},
    ]
    result, _ = _parts(
        {"functionCall": {"name": "f" + HIGH + LOW, "args": {"k" + HIGH: [HIGH + LOW]}}},
        {"functionCall": {"name": "g", "partialArgs": halves}},
    )
    found = [(b.name, json.loads(b.arguments)) for b in result.content if isinstance(b, ToolCall)]
    assert found == [("f😀", {"k\ufffd": ["😀"]}), ("g", {"a": "x😀y"})]


@pytest.mark.rules("A2.23", "R55")
@pytest.mark.parametrize(
    ("parts", "texts"),
    [
        ([{"text": HIGH}], ["\ufffd"]),
        ([{"text": LOW}], ["\ufffd"]),
        ([{"text": HIGH, "thought": True}, {"text": LOW}], ["\ufffd", "\ufffd"]),
        (
            [{"text": "a" + HIGH}, {"functionCall": {"name": "f"}}, {"text": LOW}],
            ["a\ufffd", "\ufffd"],
        ),
        ([{"text": "a" + HIGH}, {"toolCall": {"id": "1"}}, {"text": LOW}], ["a\ufffd", "\ufffd"]),
    ],
)
def test_a_half_that_never_meets_its_other_half_is_replaced(
    parts: list[_Json], texts: list[str]
) -> None:
    result, pieces = _parts(*parts)
    found = [block.text for block in result.content if isinstance(block, Text | Thinking)]
    assert found == texts
    told: dict[int, str] = {}
    for piece in pieces:
        told[piece.block] = told.get(piece.block, "") + piece.text
    assert [text for text in told.values() if text != "{}"] == texts


def _is_utf8(result: StepResult, pieces: list[Piece]) -> None:
    assert str(result).encode()
    assert all(piece.text.encode() for piece in pieces)


_CALL = st.fixed_dictionaries(
    {"name": UNITS, "id": UNITS, "args": st.dictionaries(UNITS, UNITS, max_size=2)}
)
_PART = st.one_of(
    st.fixed_dictionaries(
        {"text": UNITS}, optional={"thought": st.booleans(), "thoughtSignature": UNITS}
    ),
    st.fixed_dictionaries({"functionCall": _CALL}),
    st.fixed_dictionaries({"executableCode": st.fixed_dictionaries({"code": UNITS})}),
)


@pytest.mark.rules("A2.23", "A2.25", "R55")
@given(st.lists(_PART, max_size=6), UNITS)
def test_whatever_comes_all_that_leaves_is_utf8(parts: list[_Json], message: str) -> None:
    result, pieces = _decode(
        *({"candidates": [{"content": {"parts": [part]}}]} for part in parts),
        {
            "candidates": [
                {
                    "finishReason": "SAFETY" + message,
                    "finishMessage": message,
                    "groundingMetadata": {
                        "webSearchQueries": [message],
                        "groundingChunks": [
                            {"web": {"uri": "https://" + message, "title": message}}
                        ],
                    },
                }
            ]
        },
    )
    assert str(result).encode()
    assert all(piece.text.encode() for piece in pieces)


@pytest.mark.rules("A2.25", "R55")
def test_errors_refusals_and_kept_parts_are_utf8_too() -> None:
    result, pieces = _decode(
        {"candidates": [{"content": {"parts": [{"new" + LOW: [HIGH]}]}}]},
        {"candidates": [{"finishReason": "SAFETY", "finishMessage": "no" + HIGH}]},
    )
    _is_utf8(result, pieces)
    assert isinstance(result, StepAnswer)
    assert result.content == (Opaque(dialect="gemini", raw={"new\ufffd": ["\ufffd"]}),)
    _is_utf8(*_decode({"promptFeedback": {"blockReason": LOW, "blockReasonMessage": HIGH}}))
    _is_utf8(*_decode({"error": {"message": "no" + HIGH, "status": LOW}}))


_NAME = st.one_of(st.text(max_size=3), st.sampled_from(["text", "name", "web"]))
_JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.sampled_from(["STOP", "$.a[0]", "text", "1"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAME, inner, max_size=3)),
    max_leaves=6,
)

_WHOLE: _Json = {
    "candidates": [
        {
            "index": 0,
            "content": {
                "role": "model",
                "parts": [
                    {"text": "a", "thought": True, "thoughtSignature": "s"},
                    {
                        "functionCall": {
                            "name": "f",
                            "id": "1",
                            "args": {"a": 1},
                            "partialArgs": [
                                {"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True}
                            ],
                            "willContinue": True,
                        },
                        "thoughtSignature": "s",
                    },
                    {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
                ],
            },
            "finishReason": "STOP",
            "finishMessage": "m",
            "groundingMetadata": {
                "webSearchQueries": ["q"],
                "groundingChunks": [{"web": {"uri": "https://a.test", "title": "t"}}],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "cachedContentTokenCount": 1},
    "promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "m"},
    "error": {"code": 1, "message": "m", "details": [{"retryDelay": "1s"}]},
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in cast("_Json", value).items():
            found += _places(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(cast("list[Any]", value)):
            found += _places(inner, (*path, place))
    return found


def _with(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    step, *rest = path
    if isinstance(value, dict):
        known = cast("_Json", value)
        return {**known, step: _with(known[step], tuple(rest), odd)}
    return [_with(v, tuple(rest), odd) if n == step else v for n, v in enumerate(value)]


_PLACES = _places(_WHOLE)


@pytest.mark.rules("A1.24", "A2.24")
@given(st.sampled_from(_PLACES), _JSON, st.booleans())
def test_any_value_in_any_place_raises_nothing(
    place: tuple[Any, ...], odd: Any, array: bool
) -> None:
    value = _with(_WHOLE, place, odd)
    if place and place[0] != "error":
        del value["error"]  # it would end the reading
    result, pieces = _decode([value] if array else value)
    _is_utf8(result, pieces)
    decoder = GeminiDecoder(PEER, GeminiFlags(vertex=True), lambda _: None)
    decoder.read(json.dumps([value] if array else value).encode())
    _is_utf8(decoder.finish(), [])


@pytest.mark.rules("A1.24")
@given(st.binary(max_size=60), st.sampled_from([b"", b"[", b"{", b'[{"candidates":[', b"[DONE]"]))
def test_any_bytes_raise_nothing(tail: bytes, head: bytes) -> None:
    for method in ("feed", "read"):
        decoder = GeminiDecoder(PEER, GeminiFlags(), lambda _: None)
        if method == "feed":
            decoder.feed(SseEvent(head + tail))
        else:
            decoder.read(head + tail)
        assert str(decoder.finish()).encode()


@pytest.mark.rules("A1.24")
def test_json_that_nests_without_end_raises_nothing() -> None:
    for depth in (300, 900, 5000):
        deep = '{"a":' * depth + "1" + "}" * depth
        for part in (f'{{"toolCall":{deep}}}', f'{{"functionCall":{{"name":"f","args":{deep}}}}}'):
            body = f'{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}'
            decoder = GeminiDecoder(PEER, GeminiFlags(), lambda _: None)
            decoder.feed(SseEvent(body.encode()))
            assert isinstance(decoder.finish(), StepResult)

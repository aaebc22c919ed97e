"""Bytes to values and back, and what becomes of what a reader does not know."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_protocol import (
    CONTROL_FRAMES,
    Broken,
    Envelope,
    Event,
    HttpArtifact,
    MessageEnded,
    MessageId,
    Notice,
    Partial,
    SessionId,
    Text,
    TextDelta,
    ToolEnded,
    ToolResult,
    Unknown,
    UnknownArtifact,
    ViewAnswer,
    decode_answer,
    decode_blocks,
    decode_envelope,
    decode_frame,
    encode,
)

TIME = "2026-01-31T09:00:00.000Z"


def envelope(event: Any, **extra: Any) -> bytes:
    return json.dumps(
        {"seq": 1, "session": "ses_1", "turn": "trn_1", "time": TIME, "event": event, **extra}
    ).encode()


def read(data: bytes | str) -> Envelope:
    found = decode_envelope(data)
    assert isinstance(found, Envelope), found
    return found


# Text that can be on the wire: everything but lone surrogates, which no UTF-8 holds.
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(_text, _json, max_size=3)


def _strategy(info: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Values of a type as JSON can carry them."""
    inspect = msgspec.inspect
    match info:
        case inspect.StructType():
            return st.deferred(lambda: _struct(info))
        case inspect.UnionType():
            return st.one_of([_strategy(part) for part in info.types])
        case inspect.VarTupleType():
            return st.lists(_strategy(info.item_type), max_size=3).map(tuple)
        case inspect.DictType():
            return st.dictionaries(_text, _strategy(info.value_type), max_size=3)
        case _:
            return _PLAIN[type(info)]


_PLAIN: dict[type[msgspec.inspect.Type], st.SearchStrategy[Any]] = {
    msgspec.inspect.AnyType: _json,
    msgspec.inspect.BoolType: st.booleans(),
    msgspec.inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
    msgspec.inspect.IntType: st.integers(-(2**53), 2**53),
    msgspec.inspect.NoneType: st.none(),
    msgspec.inspect.StrType: _text,
}


def _struct(info: msgspec.inspect.StructType) -> st.SearchStrategy[Any]:
    return st.builds(info.cls, **{field.name: _strategy(field.type) for field in info.fields})


_envelopes = _strategy(msgspec.inspect.type_info(Envelope))


@given(value=_envelopes)
def test_every_envelope_survives_the_wire(value: Envelope) -> None:
    data = encode(value)
    assert b"\n" not in data
    assert decode_envelope(data) == value


@given(data=st.binary(max_size=80) | _text.map(str.encode) | _json.map(json.dumps))
def test_no_bytes_at_all_raise(data: bytes | str) -> None:
    assert isinstance(decode_envelope(data), Envelope | Broken)
    for name in ("", "message", *CONTROL_FRAMES, "eclipse"):
        known = (Envelope, Broken, *CONTROL_FRAMES.values())
        assert isinstance(decode_frame(name, data), known)


@pytest.mark.rules("C1.11")
@given(raw=_objects, name=_text)
def test_an_event_of_any_unknown_kind_is_kept_whole(raw: dict[str, Any], name: str) -> None:
    event = {**raw, "type": f"new_{name}"}
    assert read(envelope(event)).event == Unknown(name=f"new_{name}", raw=event)


@pytest.mark.rules("C1.2")
def test_an_envelope_says_where_and_when() -> None:
    event = {"type": "text_delta", "message": "msg_1", "block": 0, "at": 4, "text": "a"}
    found = read(envelope(event))
    assert (found.seq, found.session, found.turn, found.time) == (1, "ses_1", "trn_1", TIME)
    assert json.loads(encode(found)) == json.loads(envelope(event))


def test_unset_fields_stay_off_the_wire() -> None:
    assert json.loads(encode(Notice(code="c", message="m"))) == {
        "type": "notice",
        "code": "c",
        "message": "m",
    }


@pytest.mark.rules("C1.11", "A1.9")
def test_unknown_fields_are_passed_over_and_open_words_kept() -> None:
    found = read(
        envelope(
            {"type": "notice", "code": "odd", "message": "m", "scope": "galaxy", "new": [1]},
            extra={"more": True},
        )
    )
    assert json.loads(encode(found))["event"] == {
        "type": "notice",
        "code": "odd",
        "message": "m",
        "scope": "galaxy",
    }


@pytest.mark.rules("C1.11", "A1.10", "A1.2")
def test_an_unknown_block_keeps_its_place_among_known_ones() -> None:
    found = read(
        envelope(
            {
                "type": "message_ended",
                "message": "msg_1",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "hologram", "depth": 2},
                    {"type": "text", "text": "b"},
                    "not even an object",
                ],
            }
        )
    ).event
    assert isinstance(found, MessageEnded)
    assert found.content == (
        Text(text="a"),
        Unknown(name="hologram", raw={"type": "hologram", "depth": 2}),
        Text(text="b"),
        Unknown(name="", raw={"value": "not even an object"}),
    )


@pytest.mark.rules("C1.11")
def test_an_unknown_block_inside_a_result_is_kept() -> None:
    smell = {"type": "smell", "note": "roses"}
    (found,) = decode_blocks(
        json.dumps([{"type": "tool_result", "call": "call_1", "content": [smell]}]).encode()
    )
    assert isinstance(found, ToolResult)
    assert found.content == (Unknown(name="smell", raw=smell),)


@pytest.mark.rules("C1.11")
def test_an_unknown_artifact_is_kept_and_the_others_stay_typed() -> None:
    odd = {"kind": "hologram", "depth": 2}
    found = read(
        envelope(
            {
                "type": "tool_ended",
                "call": "call_1",
                "status": "completed",
                "content": [],
                "artifacts": [odd, {"kind": "http", "url": "u", "status": 200}, 7],
            }
        )
    ).event
    assert isinstance(found, ToolEnded)
    assert found.artifacts == (
        UnknownArtifact(name="hologram", raw=odd),
        HttpArtifact(url="u", status=200),
        UnknownArtifact(name="", raw={"value": 7}),
    )


@pytest.mark.rules("C1.11")
@pytest.mark.parametrize(
    "event",
    [
        {"type": "turn_started", "prompt": 5},
        {"type": "tool_ended", "call": "call_1", "content": 3},
        {"type": 7},
        {"no": "type"},
    ],
)
def test_a_known_kind_in_an_unknown_shape_is_unknown(event: dict[str, Any]) -> None:
    found = read(envelope(event)).event
    assert isinstance(found, Unknown)
    assert found.raw == event


@pytest.mark.rules("C1.11")
def test_an_unknown_event_survives_a_second_trip() -> None:
    found = read(envelope({"type": "moon_phase_changed", "phase": 3}))
    assert decode_envelope(encode(found)) == found


@pytest.mark.rules("S09")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"nonsense",
        b"[1, 2]",
        b"null",
        b'{"seq": 1}',
        b'{"event": []}',
        b'{"seq": "one", "session": "s", "time": "t", "event": {"type": "notice"}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_what_is_no_envelope_is_broken(data: bytes) -> None:
    assert isinstance(decode_envelope(data), Broken)


def test_a_broken_frame_says_nothing_of_its_content() -> None:
    found = decode_envelope(b'{"secret": "hunter2"}')
    assert isinstance(found, Broken)
    assert "hunter2" not in found.reason


@given(data=st.data())
def test_every_control_frame_survives_the_wire(data: st.DataObject) -> None:
    for name, kind in CONTROL_FRAMES.items():
        value = data.draw(_strategy(msgspec.inspect.type_info(kind)))
        assert decode_frame(name, encode(value)) == value


@pytest.mark.parametrize("name", [*CONTROL_FRAMES, "eclipse"])
def test_a_malformed_or_unknown_control_frame_is_broken(name: str) -> None:
    assert isinstance(decode_frame(name, b'{"last_seq": "x", "at": "x"}'), Broken)
    assert isinstance(decode_frame(name, b"{"), Broken)


def test_a_message_event_is_an_envelope() -> None:
    data = envelope({"type": "notice", "code": "c", "message": "m"})
    assert decode_frame("message", data) == decode_frame("", data) == decode_envelope(data)


@pytest.mark.rules("C1.11")
def test_a_view_with_unknown_blocks_and_artifacts_can_be_read() -> None:
    odd = {"type": "hologram", "depth": 2, "content": [{"type": "smell"}]}
    sent = {
        "log": "log_1",
        "seq": 9,
        "view": {
            "session": "ses_1",
            "messages": [{"seq": 9, "role": "user", "time": TIME, "content": [odd]}],
            "calls": [
                {
                    "call": "call_1",
                    "tool": "look",
                    "title": "Look",
                    "effect": "read",
                    "arguments": "{}",
                    "status": "completed",
                    "artifacts": [{"kind": "hologram"}],
                }
            ],
            "colour": "blue",
        },
    }
    view = decode_answer(json.dumps(sent).encode(), ViewAnswer).view
    assert view.messages[0].content == (Unknown(name="hologram", raw=odd),)
    assert view.calls[0].artifacts == (UnknownArtifact(name="hologram", raw={"kind": "hologram"}),)


@pytest.mark.rules("C1.11")
def test_a_partial_with_an_unknown_block_can_be_read() -> None:
    odd = {"type": "hologram", "depth": 2}
    sent = {"message": "msg_1", "content": [{"type": "text", "text": "a"}, odd]}
    found = decode_frame("partial", json.dumps(sent))
    assert isinstance(found, Partial)
    assert found.content == (Text(text="a"), Unknown(name="hologram", raw=odd))


@pytest.mark.parametrize("data", [b"", b"[", b"[]", b'{"seq": "x"}'])
def test_an_answer_of_another_kind_is_an_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_answer(data, ViewAnswer)


def test_blocks_that_are_no_list_of_objects_are_an_error() -> None:
    for data in (b"{}", b"[1]", b"[", b'"x"'):
        with pytest.raises(msgspec.DecodeError):
            decode_blocks(data)


def test_every_event_has_a_tag_of_its_own() -> None:
    infos = msgspec.inspect.multi_type_info(Event.__args__)
    tags = [info.tag for info in infos if isinstance(info, msgspec.inspect.StructType)]
    assert len(tags) == len(set(tags)) == len(infos)


def test_an_envelope_without_a_number_has_no_seq_on_the_wire() -> None:
    event = TextDelta(message=MessageId("msg_1"), block=0, at=0, text="a")
    value = Envelope(session=SessionId("ses_1"), time=TIME, event=event)
    assert set(json.loads(encode(value))) == {"session", "time", "event"}


@pytest.mark.rules("C1.11")
@pytest.mark.parametrize("depth", [100, 300, 330, 360, 500, 900, 20_000])
def test_blocks_nested_as_deep_as_a_peer_likes_break_nothing(depth: int) -> None:
    block = '{"type": "tool_result", "call": "c", "content": [' * depth + "]}" * depth
    message = f'"message": "msg_1", "content": [{block}]'
    event = f'{{"type": "message_ended", {message}}}'
    data = f'{{"seq": 1, "session": "ses_1", "time": "t", "event": {event}}}'
    assert isinstance(decode_envelope(data), Envelope | Broken)
    assert isinstance(decode_frame("partial", f"{{{message}}}"), Partial | Broken)

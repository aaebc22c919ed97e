"""Which call a piece belongs to, and what its arguments are, whatever a gateway sends."""

from typing import Any

import pytest

from towline_agent.providers.base import ArgumentsPiece, Piece, StepAnswer
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.testing import event_stream
from towline_protocol import Block, SseDecoder, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1")


def decode(body: bytes) -> tuple[StepAnswer, list[Piece]]:
    pieces: list[Piece] = []
    decoder = ChatDecoder(PEER, ChatFlags(), pieces.append)
    for event in SseDecoder().feed(body):
        decoder.feed(event)
    result = decoder.finish()
    assert isinstance(result, StepAnswer), result
    return result, pieces


def answer(body: bytes) -> StepAnswer:
    return decode(body)[0]


def piece(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    """A piece of one call."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    part: dict[str, Any] = {**fields, "function": function}
    if index is not None:
        part["index"] = index
    return {"tool_calls": [part]}


def stream(*deltas: dict[str, Any], finish: str | None = "stop") -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return event_stream(*chunks, {"choices": [{"index": 0, "finish_reason": finish}]})


def calls(blocks: tuple[Block, ...]) -> list[tuple[str, str, str | None]]:
    return [(b.name, b.arguments, b.wire_id) for b in blocks if isinstance(b, ToolCall)]


@pytest.mark.rules("A2.8", "R13")
def test_a_piece_without_index_and_id_belongs_to_the_newest_call() -> None:
    body = stream(
        piece(None, id="c1", type="function", name="f", arguments='{"a"'),
        piece(None, arguments=":1}"),
    )
    assert calls(answer(body).content) == [("f", '{"a":1}', "c1")]


@pytest.mark.rules("A2.8", "A2.9", "R15")
def test_an_id_wins_over_an_index() -> None:
    body = stream(
        piece(0, id="A", name="f", arguments='{"x":1}'),
        piece(0, id="B", name="g", arguments='{"y"'),
        piece(1, arguments=":2}"),
    )
    assert calls(answer(body).content) == [("f", '{"x":1}', "A"), ("g", '{"y":2}', "B")]


@pytest.mark.rules("A2.8")
def test_indices_need_not_begin_at_zero_nor_come_in_order() -> None:
    body = stream(
        piece(7, id="A", name="f", arguments="{"),
        piece(3, id="B", name="g", arguments="{"),
        piece(7, arguments='"x":1}'),
        piece(3, arguments='"y":2}'),
    )
    assert calls(answer(body).content) == [("f", '{"x":1}', "A"), ("g", '{"y":2}', "B")]


@pytest.mark.rules("A2.9")
@pytest.mark.parametrize("later", [{"id": ""}, {"id": None}, {}, {"id": "A"}])
def test_ids_may_be_empty_missing_or_repeated_on_later_pieces(later: dict[str, Any]) -> None:
    body = stream(piece(0, id="A", name="f", arguments='{"x"'), piece(0, arguments=":1}", **later))
    assert calls(answer(body).content) == [("f", '{"x":1}', "A")]


@pytest.mark.rules("A2.9")
def test_an_id_may_come_late_or_never() -> None:
    late = stream(piece(0, name="f", arguments="{"), piece(0, id="A", arguments="}"))
    assert calls(answer(late).content) == [("f", "{}", "A")]
    never = stream(piece(0, name="f", arguments="{}"), piece(1, name="g", arguments="{}"))
    assert calls(answer(never).content) == [("f", "{}", None), ("g", "{}", None)]


@pytest.mark.rules("A2.8", "A2.9")
def test_whole_calls_with_one_index_and_without_ids_stay_apart() -> None:
    body = stream(piece(0, name="f", arguments='{"a":1}'), piece(0, name="f", arguments='{"a":2}'))
    assert calls(answer(body).content) == [("f", '{"a":1}', None), ("f", '{"a":2}', None)]
    broken = stream(piece(0, name="f", arguments='{"a":}'), piece(0, name="f", arguments="x}"))
    assert calls(answer(broken).content) == [("f", '{"a":}x}', None)]
    loose = stream(
        piece(None, name="f", arguments='{"a":1}'), piece(None, name="f", arguments='{"a":2}')
    )
    assert calls(answer(loose).content) == [("f", '{"a":1}', None), ("f", '{"a":2}', None)]
    bare = stream(
        piece(None, name="now", arguments=""), piece(None, name="today", arguments=""),
        finish="tool_calls",
    )  # fmt: skip
    assert calls(answer(bare).content) == [("now", "{}", None), ("today", "{}", None)]


@pytest.mark.rules("A2.9")
def test_one_id_for_two_calls_gives_two_calls() -> None:
    body = stream(
        piece(0, id="x", name="f", arguments='{"a":1}'),
        piece(1, id="x", name="f", arguments='{"a":2}'),
        piece(1, id="x", arguments=""),
    )
    assert calls(answer(body).content) == [("f", '{"a":1}', "x"), ("f", '{"a":2}', "x")]


@pytest.mark.rules("A2.10")
def test_a_new_id_at_the_same_index_is_a_new_call() -> None:
    body = stream(
        piece(0, id="A", name="f", arguments='{"a":1}'),
        piece(0, id="B", name="f", arguments='{"a":'),
        piece(0, arguments="2}"),
    )
    assert calls(answer(body).content) == [("f", '{"a":1}', "A"), ("f", '{"a":2}', "B")]


@pytest.mark.rules("A2.11")
def test_a_name_may_come_in_pieces_or_whole_every_time() -> None:
    split = stream(
        piece(0, id="A", name="get_"), piece(0, name="weather"), piece(0, arguments="{}")
    )
    assert calls(answer(split).content) == [("get_weather", "{}", "A")]
    again = stream(
        piece(0, id="A", name="f", arguments='{"a"'),
        piece(0, id="A", name="f", arguments=":1"),
        piece(0, id="A", name="f", arguments="}"),
    )
    assert calls(answer(again).content) == [("f", '{"a":1}', "A")]


@pytest.mark.rules("A2.12")
def test_arguments_may_come_whole_or_as_an_object() -> None:
    body = stream(piece(0, id="A", name="f", arguments={"city": "Köln", "n": [1, 2]}))
    result, pieces = decode(body)
    assert calls(result.content) == [("f", '{"city":"Köln","n":[1,2]}', "A")]
    assert pieces == [ArgumentsPiece(0, '{"city":"Köln","n":[1,2]}')]


@pytest.mark.rules("A2.13", "R19")
@pytest.mark.parametrize("fields", [{"arguments": None}, {}, {"arguments": ""}])
def test_a_call_whose_arguments_are_null_or_missing_has_none(fields: dict[str, Any]) -> None:
    body = stream(
        piece(0, id="c", type=None, name="now", **fields),
        piece(0, id=None, type=None, name=None, arguments=None),
        finish="tool_calls",
    )
    assert calls(answer(body).content) == [("now", "{}", "c")]


@pytest.mark.rules("A2.21")
@pytest.mark.parametrize("arguments", ["", '{"note": "The', None])
def test_arguments_cut_by_length_stay_as_broken_as_they_came(arguments: str | None) -> None:
    got = answer(stream(piece(0, id="A", name="f", arguments=arguments), finish="length"))
    assert got.stop_reason == "max_tokens"
    assert calls(got.content) == [("f", arguments or "", "A")]


@pytest.mark.rules("A1.6", "R17")
def test_arguments_of_two_calls_in_one_are_not_touched() -> None:
    text = '{"date":"2026-06-11"}{"date":"2026-06-12"}'
    got = answer(stream(piece(0, id="A", name="f", arguments=text)))
    assert calls(got.content) == [("f", text, "A")]


@pytest.mark.rules("A1.6")
def test_a_signature_on_a_call_is_kept() -> None:
    extra = {"google": {"thought_signature": "proof"}}
    got = answer(stream(piece(0, id="A", name="f", arguments="{}", extra_content=extra)))
    (block,) = got.content
    assert isinstance(block, ToolCall)
    assert block.signature == "proof"

"""How a message of the model is written into the log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.message import MessageWriter
from towline_agent.providers.base import (
    ArgumentsPiece,
    Piece,
    StepAnswer,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.testing import ScriptedHost, counted_ids
from towline_protocol import (
    Block,
    CallId,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Opaque,
    Private,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
)

ONE = MessageId("msg_1")


def write() -> tuple[ScriptedHost, MessageWriter]:
    host = ScriptedHost()
    host.log.clear()
    return host, MessageWriter(host, counted_ids())


def answer(*blocks: Block) -> StepAnswer:
    return StepAnswer(content=blocks, stop_reason="end_turn")


def wanted(wire_id: str = "w") -> ToolCall:
    return ToolCall(id=CallId(""), name="look", arguments="{}", wire_id=wire_id, signature="s")


@pytest.mark.rules("C1.5", "C1.12")
def test_pieces_become_deltas_that_say_where_they_stand_in_code_points() -> None:
    host, writer = write()
    for piece in (
        ThinkingPiece(0, "hm"),
        TextPiece(1, "a😀"),
        ArgumentsPiece(2, "{"),
        TextPiece(1, "b"),
        ArgumentsPiece(2, "}"),
        ThinkingPiece(0, "!"),
    ):
        writer.piece(piece)
    assert host.events == [
        MessageStarted(message=ONE, role="assistant"),
        ThinkingDelta(message=ONE, block=0, at=0, text="hm"),
        TextDelta(message=ONE, block=1, at=0, text="a😀"),
        ToolCallDelta(message=ONE, block=2, at=0, text="{"),
        TextDelta(message=ONE, block=1, at=2, text="b"),
        ToolCallDelta(message=ONE, block=2, at=1, text="}"),
        ThinkingDelta(message=ONE, block=0, at=2, text="!"),
    ]


@pytest.mark.rules("C1.8")
def test_the_end_carries_the_whole_message() -> None:
    host, writer = write()
    writer.piece(TextPiece(0, "Hel"))
    writer.end(answer(Text(text="Hello.")), calls=None)
    assert host.events[-1] == MessageEnded(message=ONE, content=(Text(text="Hello."),))


def test_an_answer_that_told_no_pieces_is_a_message_all_the_same() -> None:
    host, writer = write()
    writer.end(answer(Text(text="Hello.")), calls=None)
    assert [type(event) for event in host.events] == [MessageStarted, MessageEnded]


def test_an_answer_of_nothing_is_no_message() -> None:
    host, writer = write()
    assert writer.end(answer(), calls=None) == 0
    assert host.events == []


@pytest.mark.rules("C1.1", "C1.9", "A1.11")
def test_calls_get_ids_of_ours_and_what_is_private_stands_beside_the_event() -> None:
    host, writer = write()
    blocks = (Thinking(text="hm", signature="p"), wanted(), wanted(), Opaque(dialect="d", raw=[1]))
    writer.end(answer(*blocks), calls=None)
    event, private = host.log[-1]
    assert isinstance(event, MessageEnded)
    calls = [block for block in event.content if isinstance(block, ToolCall)]
    assert len({call.id for call in calls}) == 2
    assert all(call.id.startswith("call_") for call in calls)
    assert all(call.wire_id is None and call.signature is None for call in calls)
    assert event.content[0] == Thinking(text="hm")
    assert private == (
        Private(block=0, signature="p"),
        Private(block=1, signature="s", wire_id="w"),
        Private(block=2, signature="s", wire_id="w"),
        Private(block=3, raw=[1]),
    )


@pytest.mark.parametrize(("keep", "kept", "cut"), [(None, 3, 0), (1, 1, 2), (0, 0, 3), (5, 3, 0)])
def test_calls_beyond_the_bound_are_cut_and_counted(keep: int | None, kept: int, cut: int) -> None:
    host, writer = write()
    assert writer.end(answer(Text(text="a"), *[wanted()] * 3), calls=keep) == cut
    event = host.events[-1]
    assert isinstance(event, MessageEnded)
    assert sum(isinstance(block, ToolCall) for block in event.content) == kept


@pytest.mark.rules("A4.24")
def test_a_message_that_breaks_off_keeps_its_words_and_says_why() -> None:
    host, writer = write()
    for piece in (ArgumentsPiece(2, "{"), TextPiece(1, "Hel"), ThinkingPiece(0, "hm")):
        writer.piece(piece)
    writer.piece(TextPiece(1, "lo"))
    writer.cut("cancelled")
    assert host.events[-1] == MessageEnded(
        message=ONE, content=(Thinking(text="hm"), Text(text="Hello")), cut="cancelled"
    )


@pytest.mark.rules("A4.24")
@pytest.mark.parametrize("piece", [ThinkingPiece(0, "hm"), ArgumentsPiece(0, "{")])
def test_a_message_that_breaks_off_before_a_word_is_given_up(piece: Piece) -> None:
    host, writer = write()
    writer.piece(piece)
    writer.cut("failed")
    assert host.events[-1] == MessageDiscarded(message=ONE, reason="failed")
    writer.cut("failed")
    assert len(host.events) == 3


def test_what_never_began_is_not_cut() -> None:
    host, writer = write()
    writer.cut("failed")
    assert host.events == []


@pytest.mark.rules("C1.5", "C1.8")
@given(pieces=st.lists(st.tuples(st.integers(0, 3), st.text(min_size=1)), min_size=1, max_size=20))
def test_deltas_put_together_are_the_text_of_their_blocks(pieces: list[tuple[int, str]]) -> None:
    host, writer = write()
    for block, text in pieces:
        writer.piece(TextPiece(block, text))
    found: dict[int, str] = {}
    for event in host.events[1:]:
        assert isinstance(event, TextDelta)
        assert event.at == len(found.get(event.block, ""))
        found[event.block] = found.get(event.block, "") + event.text
    assert found == {
        block: "".join(text for other, text in pieces if other == block) for block, _ in pieces
    }


@pytest.mark.rules("A4.24")
def test_words_that_nobody_follows_are_kept_when_they_are_cut() -> None:
    host = ScriptedHost()
    host.log.clear()
    writer = MessageWriter(host, counted_ids(), live=False)
    for piece in (TextPiece(1, "Hel"), ThinkingPiece(0, "hm"), TextPiece(1, "lo")):
        writer.piece(piece)
    assert host.events == []
    for _ in range(2):
        writer.cut("cancelled")
    assert host.events == [
        MessageStarted(message=ONE, role="assistant"),
        MessageEnded(
            message=ONE, content=(Thinking(text="hm"), Text(text="Hello")), cut="cancelled"
        ),
    ]


def test_what_nobody_follows_and_has_no_words_leaves_nothing_when_it_is_cut() -> None:
    host = ScriptedHost()
    host.log.clear()
    writer = MessageWriter(host, counted_ids(), live=False)
    writer.piece(ArgumentsPiece(0, "{"))
    writer.cut("failed")
    assert host.events == []

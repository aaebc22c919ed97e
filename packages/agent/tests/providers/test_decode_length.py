"""Answers without an end: what is taken of them, and what is told."""

import json
from typing import Any

import pytest

from towline_agent.errors import ResponseMalformed
from towline_agent.providers.answer import ANSWER_MAX_CHARS
from towline_agent.providers.base import (
    Piece,
    StepAnswer,
    StepFailed,
    StepResult,
)
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_chat.decode import DETAILS, ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_protocol import SseEvent, Text, Thinking

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
HALF = "x" * (ANSWER_MAX_CHARS // 2)


class _Reading:
    """A decoder, what it told, and after how many events it had enough."""

    def __init__(self, flags: ChatFlags | None = None) -> None:
        self.pieces: list[Piece] = []
        self.decoder = ChatDecoder(PEER, flags or ChatFlags(), self.pieces.append)
        self.enough_after: int | None = None
        self._count = 0

    def take(self, finish: str | None = None, **delta: Any) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        data = json.dumps({"choices": [choice]}).encode()
        self._count += 1
        if self.decoder.feed(SseEvent(data=data)) and self.enough_after is None:
            self.enough_after = self._count

    def told(self) -> int:
        """Characters that were told."""
        return sum(len(piece.text) for piece in self.pieces)

    def failure(self) -> StepFailed:
        return _failed(self.decoder.finish())


def _failed(result: StepResult) -> StepFailed:
    assert isinstance(result, StepFailed), result
    return result


def _call(name: str = "", arguments: str = "", id_: str | None = None) -> list[dict[str, Any]]:
    return [{"index": 0, "id": id_, "function": {"name": name, "arguments": arguments}}]


def test_an_answer_of_the_greatest_length_is_taken() -> None:
    reading = _Reading()
    reading.take(content=HALF)
    reading.take(content=HALF)
    reading.take(finish="stop")
    result = reading.decoder.finish()
    assert isinstance(result, StepAnswer)
    assert result.content == (Text(text=HALF + HALF),)


@pytest.mark.rules("R11", "A1.22")
def test_an_answer_without_an_end_fails_and_keeps_what_came_before() -> None:
    reading = _Reading()
    reading.take(reasoning_content=HALF)
    reading.take(content=HALF)
    reading.take(content="more")
    for _ in range(9):
        reading.take(content=HALF, reasoning_content=HALF, tool_calls=_call("f", HALF, "id"))
    assert reading.enough_after == 3, "the connection is closed soon"
    assert reading.told() == ANSWER_MAX_CHARS
    failure = reading.failure()
    assert failure.content == (Thinking(text=HALF), Text(text=HALF))
    assert failure.streamed
    assert isinstance(failure.error, ResponseMalformed)
    assert not failure.error.retryable
    assert failure.error.reason == "too_long"
    assert failure.error.message == (
        "'m' of 'p' sent an answer of more than 262144 characters, the most that is taken; the "
        "words before that are kept. Ask for less at once or take another model."
    )


@pytest.mark.parametrize(
    "delta",
    [
        {"content": HALF},
        {"content": [{"type": "text", "text": HALF}]},
        {"reasoning_content": HALF},
        {"refusal": HALF},
        {"tool_calls": _call("", HALF)},
        {"tool_calls": _call(HALF)},
        {"tool_calls": _call("g", id_=HALF)},
    ],
)
def test_whatever_it_is_that_does_not_end_is_counted(delta: dict[str, Any]) -> None:
    reading = _Reading()
    reading.take(tool_calls=_call("f", id_="id"))
    for number in range(9):
        text = json.dumps(delta).replace(HALF, f"{number}{HALF}")
        reading.take(**json.loads(text))
    assert reading.enough_after == 3
    assert reading.told() <= ANSWER_MAX_CHARS
    assert reading.failure().error.reason == "too_long"


@pytest.mark.rules("A2.11")
def test_a_name_that_stands_in_every_piece_is_counted_once() -> None:
    reading = _Reading()
    for _ in range(10):
        reading.take(tool_calls=_call(HALF, "1", "id"))
    reading.take(finish="tool_calls")
    assert isinstance(reading.decoder.finish(), StepAnswer)


def test_details_that_would_go_back_are_counted_too() -> None:
    reading = _Reading(ChatFlags(replay=DETAILS))
    for _ in range(9):
        reading.take(reasoning_details=[{"type": "reasoning.encrypted", "data": HALF}])
    assert reading.enough_after == 2
    assert reading.failure().error.reason == "too_long"


def test_white_space_is_not_held_back_for_a_tag_without_an_end() -> None:
    reading = _Reading(ChatFlags(think_tags=True))
    for _ in range(9):
        reading.take(content=" " * len(HALF))
    assert reading.enough_after == 3
    assert reading.told() == ANSWER_MAX_CHARS


def test_an_answer_that_was_whole_before_is_not_spoilt() -> None:
    reading = _Reading(ChatFlags(one_call=True))
    reading.take(tool_calls=_call("f", "{}", "1"))
    reading.take(tool_calls=[{"index": 1, "id": "2", "function": {"name": "f"}}])
    for _ in range(3):
        reading.take(reasoning_content=HALF)
    result = reading.decoder.finish()
    assert isinstance(result, StepAnswer)


def test_a_document_that_is_too_long_is_not_taken() -> None:
    reading = _Reading()
    message = {"content": HALF * 3}
    document = {"choices": [{"message": message, "finish_reason": "stop"}]}
    reading.decoder.read(json.dumps(document).encode())
    assert reading.pieces == []
    assert reading.failure().error.reason == "too_long"

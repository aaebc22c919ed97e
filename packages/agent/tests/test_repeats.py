"""Telling when a model goes round in a circle."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import LimitReached
from towline_agent.repeats import Repeat, find_repeat
from towline_protocol import CallId, Message, Text, ToolCall, ToolResult, Transcript

Call = tuple[str, str, str]
"""A tool, its arguments, and what it answers."""


def person(text: str = "go on") -> Message:
    return Message("user", (Text(text=text),))


def step(number: int, *calls: Call, words: str = "") -> tuple[Message, ...]:
    """A step of the model with the results of its calls."""
    named = [(CallId(f"call_{number}_{place}"), *call) for place, call in enumerate(calls)]
    asked = (ToolCall(id=id_, name=name, arguments=text) for id_, name, text, _ in named)
    told = (ToolResult(call=id_, content=(Text(text=text),)) for id_, _, _, text in named)
    said = (Text(text=words),) if words else ()
    assistant = Message("assistant", (*said, *asked))
    return (assistant, Message("tool", tuple(told))) if calls else (assistant,)


def steps(*rounds: Sequence[Call]) -> tuple[Message, ...]:
    """A prompt, and a step for each round."""
    made = (message for number, calls in enumerate(rounds) for message in step(number, *calls))
    return (person(), *made)


def found(messages: tuple[Message, ...]) -> Repeat:
    repeat = find_repeat(messages)
    assert repeat is not None
    return repeat


LOOK: Call = ("look", '{"at": "a", "far": true}', "nothing")


@pytest.mark.rules("A4.21")
@pytest.mark.parametrize(("times", "noticed"), [(1, False), (2, False), (3, True), (4, True)])
def test_three_times_in_a_row_earn_a_notice(times: int, *, noticed: bool) -> None:
    repeat = found(steps(*([LOOK],) * times))
    assert (repeat.tools, repeat.times, repeat.same) == ("look", times, times)
    assert bool(repeat.notice) == noticed
    assert repeat.error is None
    if noticed:
        assert f"look with the same arguments {times} times" in repeat.notice


@pytest.mark.rules("A4.22", "D17")
def test_five_times_in_a_row_with_the_same_results_end_the_turn() -> None:
    error = found(steps(*([LOOK],) * 5)).error
    assert isinstance(error, LimitReached)
    assert "'look'" in error.message
    assert "5 times" in error.message


@pytest.mark.rules("A4.22", "D17")
def test_polling_is_never_ended_but_noticed() -> None:
    polls = [[("status", "{}", f"{number} %")] for number in range(9)]
    repeat = found(steps(*polls))
    assert (repeat.times, repeat.same, repeat.error) == (9, 1, None)
    assert "waiting" in repeat.notice
    flips = found(steps(*([("status", "{}", text)] for text in "xyxxyxx")))
    assert (flips.times, flips.same) == (7, 2)
    stuck = found(steps(*polls, *(polls[-1:] * 4)))
    assert (stuck.times, stuck.same) == (13, 5)
    assert stuck.error is not None


@pytest.mark.rules("A4.21")
def test_arguments_are_compared_as_json_and_else_as_text() -> None:
    same = ("look", '{ "far":true,"at":"\\u0061" }', "nothing")
    other = ("look", '{"at": "a", "far": "true"}', "nothing")
    assert found(steps([LOOK], [same], [LOOK])).times == 3
    assert found(steps([LOOK], [other], [LOOK])).times == 1
    assert found(steps([("look", "{oops", "no")], [("look", "{oops", "no")])).times == 2
    assert found(steps([("look", "{oops", "no")], [("look", "{oops ", "no")])).times == 1
    assert found(steps([("now", "", "t")], [("now", "{}", "t")])).times == 2


def test_another_tool_or_another_call_beside_it_begins_a_new_row() -> None:
    write: Call = ("write", '{"at": "a"}', "nothing")
    assert found(steps([LOOK], [LOOK], [write], [LOOK])).times == 1
    assert found(steps([LOOK], [LOOK, write], [LOOK, write])).times == 2
    assert found(steps([LOOK, write], [write, LOOK])).tools == "look, write"


def test_the_same_call_twice_in_a_step_counts_once() -> None:
    assert found(steps([LOOK] * 5)).times == 1
    repeat = found(steps([LOOK] * 3, [LOOK], [LOOK] * 2))
    assert (repeat.times, repeat.same) == (3, 3)


@pytest.mark.rules("R51")
def test_words_of_our_own_never_begin_a_new_row_and_a_persons_do() -> None:
    nudge = person("<system-reminder>\nGo on.\n</system-reminder>")
    again = (*steps([LOOK], [LOOK]), nudge, *step(7, LOOK), nudge)
    assert found(again).times == 3
    assert found((*steps([LOOK], [LOOK]), person(), *step(7, LOOK))).times == 1
    assert find_repeat((*steps([LOOK], [LOOK]), person())) is None


def test_words_without_a_call_do_not_hide_a_row() -> None:
    talk = step(8, words="Let me look again.")
    assert found((*steps([LOOK], [LOOK]), *talk, *step(9, LOOK, words="So."))).times == 3


def test_nothing_called_is_no_repeat() -> None:
    assert find_repeat(()) is None
    assert find_repeat((person(), *step(1, words="Hello."))) is None


def test_a_failed_result_is_not_the_same_as_one_that_is_none() -> None:
    messages = list(steps([LOOK], [LOOK]))
    (result,) = messages[-1].content
    assert isinstance(result, ToolResult)
    failed = ToolResult(call=result.call, content=result.content, is_error=True)
    messages[-1] = Message("tool", (failed,))
    assert found(tuple(messages)).same == 1


CALLS = st.tuples(st.sampled_from("ab"), st.sampled_from(["{}", '{"n": 1}']), st.sampled_from("xy"))


@pytest.mark.rules("A4.21", "A4.22")
@given(
    rounds=st.lists(CALLS, min_size=1, max_size=12),
    spaces=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_a_row_is_as_long_as_its_calls_are_the_same(rounds: list[Call], spaces: list[bool]) -> None:
    written = [
        (name, f" {text} " if wide else text, came)
        for (name, text, came), wide in zip(rounds, spaces, strict=False)
    ]
    transcript = Transcript(steps(*([one] for one in written)))
    times = same = 0
    for name, text, came in reversed(rounds):
        if (name, json.loads(text)) != (rounds[-1][0], json.loads(rounds[-1][1])):
            break
        if same == times and came == rounds[-1][2]:
            same += 1
        times += 1
    repeat = found(transcript.messages())
    assert (repeat.times, repeat.same) == (times, same)
    assert (repeat.error is not None) == (same >= 5)

"""Letting the model sum up the past of a conversation."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.context.assemble import estimate_tokens
from towline_agent.context.cut import Fill
from towline_agent.context.summary import SUMMARY_HEADING, Span, plan_summary, sum_up
from towline_agent.plan import Plan
from towline_agent.providers.base import Model, StepAnswer
from towline_agent.testing import ScriptedProvider, say, scripted_plan
from towline_agent.tools.function import tool
from towline_protocol import (
    CallId,
    Compacted,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    block_text,
)

WINDOW = 10_000
ASK_CHARS = 400


@tool(effect="read")
async def look() -> str:
    """Look."""
    return ""


def plan_of(window: int | None = WINDOW, *, none_without_tools: bool = False) -> Plan:
    model = Model(
        provider="scripted", id="small", window=window, none_without_tools=none_without_tools
    )
    return scripted_plan(ScriptedProvider(model=model), look)


def person(text: str) -> tuple[Message, ...]:
    return (Message("user", (Text(text=text),)),)


def step(number: int, *tokens: int) -> tuple[Message, ...]:
    """An exchange with one call for each size of result."""
    ids = [CallId(f"call_{number}_{place}") for place in range(len(tokens))]
    calls = tuple(ToolCall(id=id_, name="look", arguments="{}") for id_ in ids)
    results = tuple(
        ToolResult(call=id_, content=(Text(text="x" * (4 * size)),))
        for id_, size in zip(ids, tokens, strict=True)
    )
    return (Message("assistant", calls), Message("tool", results))


def talk(*parts: tuple[Message, ...]) -> Transcript:
    return Transcript(tuple(message for part in parts for message in part))


def fill(used: int = 8_000, *, limit: int = WINDOW, prefix: int = 100, rate: float = 1.0) -> Fill:
    return Fill(used, limit, prefix, rate)


def planned(transcript: Transcript, room: Fill | None = None, plan: Plan | None = None) -> Span:
    span = plan_summary(plan or plan_of(), transcript.entries(), room or fill())
    assert span is not None
    return span


def summed(transcript: Transcript, answer: StepAnswer, room: Fill | None = None) -> Compacted:
    room = room or fill()
    event = sum_up(answer, planned(transcript, room), room, ())
    assert event is not None
    return event


LONG = (
    person("one " * 500),
    step(1, 2_000),
    person("two"),
    step(2, 2_000),
    person("three"),
    step(3, 2_000),
    person("four"),
)


@pytest.mark.rules("A4.36", "R27")
def test_all_but_the_last_turns_are_summed_up() -> None:
    transcript = talk(*LONG)
    span = planned(transcript)
    assert span.upto == "earlier_3"
    assert span.kept == tuple(m for part in LONG[4:] for m in part)
    assert span.quote == ""


@pytest.mark.rules("A4.36")
def test_a_turn_of_which_a_part_would_fit_is_kept_whole_or_not_at_all() -> None:
    transcript = talk(*LONG[:3], step(2, 1_000), step(9, 1_000), *LONG[4:])
    span = planned(transcript)
    assert span.upto == "earlier_4"
    assert span.kept == tuple(m for part in LONG[4:] for m in part)


@pytest.mark.rules("A4.5", "A4.36")
def test_the_request_is_what_was_sent_before_and_a_prompt_at_its_end() -> None:
    transcript = talk(*LONG)
    request = planned(transcript).request
    assert request.messages[:-1] == transcript.messages()[:6]
    assert all(a is b for a, b in zip(request.messages, transcript.messages()[:6], strict=False))
    assert [spec.name for spec in request.tools] == ["look"]
    assert request.tool_choice == "none"
    assert request.system == "You are an agent."
    last = request.messages[-1]
    assert last.role == "user"


@pytest.mark.rules("A4.37")
def test_the_model_is_asked_for_all_that_it_needs_to_go_on() -> None:
    asked = block_text(planned(talk(*LONG)).request.messages[-1].content)
    for word in ("Goal", "Constraints", "Decisions", "Files", "paths", "State", "Open", "Next"):
        assert word in asked
    assert "at most 900 words" in asked  # 15 % of the window, at most


def test_a_model_that_refuses_tools_beside_none_gets_none() -> None:
    span = planned(talk(*LONG), plan=plan_of(none_without_tools=True))
    assert (span.request.tools, span.request.tool_choice) == ((), "none")


@pytest.mark.rules("A4.36", "R27")
def test_a_turn_too_large_is_cut_between_two_steps_and_its_prompt_is_quoted() -> None:
    steps = [step(number, 700, 700) for number in range(5)]
    transcript = talk(person("Find the fault."), *steps)
    span = planned(transcript)
    assert span.upto == "earlier_3"
    assert span.kept == tuple(m for part in steps[3:] for m in part)
    assert span.quote == "Find the fault."
    text = summed(transcript, say("Looked thrice.")).summary
    assert text is not None
    assert text.startswith(f"{SUMMARY_HEADING}\n\nLooked thrice.\n\n")
    assert text.endswith(":\n\nFind the fault.")


def test_a_quote_survives_a_second_summary_in_its_turn() -> None:
    steps = [step(number, 700, 700) for number in range(5)]
    transcript = talk(person("Find the fault."), *steps)
    transcript.add(summed(transcript, say("Looked thrice.")))
    later = talk(*(step(number, 700, 700) for number in range(5, 8)))
    entries = (*transcript.entries(), *later.entries())
    span = plan_summary(plan_of(), entries, fill())
    assert span is not None
    assert span.quote == "Find the fault."


@pytest.mark.rules("A4.36")
def test_the_last_prompt_always_stays_and_the_last_step_if_it_can() -> None:
    huge = talk(person("a"), step(1, 3_000), person("x" * 4 * 6_000))
    assert planned(huge).upto == "earlier_1"
    last = talk(person("a " * 2_000), step(1, 1_000), step(2, 6_000))
    span = planned(last)
    assert (span.upto, span.kept, span.quote[:4]) == ("earlier_2", (), "a a ")


def test_a_turn_is_kept_whole_only_if_that_does_not_cost_much() -> None:
    span = planned(talk(person("a"), *[step(n, 1_000) for n in range(8)], person("b")))
    assert span.upto == "earlier_5"
    assert len(span.kept) == 7


@pytest.mark.rules("R29")
def test_no_summary_is_planned_that_could_not_help() -> None:
    assert plan_summary(plan_of(), (), fill()) is None
    only = talk(person("x" * 40_000)).entries()
    assert plan_summary(plan_of(), only, fill()) is None
    short = talk(person("a" * 400), step(1, 1_000), person("x" * 30_000)).entries()
    assert plan_summary(plan_of(), short, fill()) is None
    no_room = talk(person("a"), step(1, 5_000), person("b")).entries()
    assert plan_summary(plan_of(), no_room, fill(9_900, prefix=7_300)) is None
    once = talk(*LONG)
    once.add(summed(once, say("So far.")))
    first = (*once.entries()[:1], *talk(person("x" * 30_000)).entries())
    assert plan_summary(plan_of(), first, fill()) is None


@pytest.mark.rules("A4.36")
def test_a_request_that_would_not_fit_is_sent_as_condensed_text() -> None:
    transcript = talk(person("a"), step(1, 9_000), step(2, 9_000), person("b"))
    request = planned(transcript, fill(18_000)).request
    (message,) = request.messages
    text = block_text(message.content)
    assert text.startswith("<conversation>\nPerson: a\n\nModel calls look: {}\n\nResult: xxx")
    assert "characters left out" in text
    assert "Goal; Constraints" in text
    assert estimate_tokens(request.messages) + 100 <= 0.75 * WINDOW


def test_estimates_that_are_too_low_are_corrected_by_the_rate() -> None:
    transcript = talk(*LONG)
    assert len(planned(transcript, fill(rate=1.0)).kept) == 4
    assert len(planned(transcript, fill(rate=2.5)).kept) == 1
    text = block_text(planned(transcript, fill(rate=2.5)).request.messages[-1].content)
    assert "at most 360 words" in text


@pytest.mark.rules("A4.39", "R29")
@pytest.mark.parametrize("words", ["", " \n"])
def test_an_empty_summary_is_none(words: str) -> None:
    span = planned(talk(*LONG))
    assert sum_up(say(words), span, fill(), ()) is None


@pytest.mark.rules("A4.39", "R29")
def test_a_summary_no_shorter_than_what_it_stands_for_is_none() -> None:
    transcript = talk(person("a" * 4_000), step(1, 600), person("b" * 20_000))
    span = planned(transcript)
    assert span.replaces == 1_600
    assert sum_up(say("s" * 4_000), span, fill(), ()) is not None
    # A long one is cut, so only its heading and quote can make it as long.
    assert sum_up(say("s" * 4_000), span._replace(replaces=1_030), fill(), ()) is None


@pytest.mark.rules("A4.36")
def test_a_summary_is_cut_to_its_share_of_the_window() -> None:
    text = summed(talk(*LONG), say("s" * 50_000)).summary
    assert text is not None
    assert len(text) <= len(SUMMARY_HEADING) + 2 + 4 * 1_500
    large = fill(80_000, limit=100_000)
    transcript = talk(person("a"), step(1, 70_000), person("b"))
    text = summed(transcript, say("s" * 50_000), large).summary
    assert text is not None
    assert len(text) <= len(SUMMARY_HEADING) + 2 + 4 * 4_096


@pytest.mark.rules("A4.36")
def test_the_event_counts_what_is_left_and_names_only_cuts_that_are_left() -> None:
    transcript = talk(*LONG[:3], step(2, 4_000), *LONG[4:])
    cut = (CallId("call_1_0"), CallId("call_3_0"))
    span = plan_summary(plan_of(), transcript.entries(), fill(), cut=cut)
    assert span is not None
    event = sum_up(say("So far."), span, fill(), cut)
    assert event is not None
    assert event.cut == ("call_3_0",)
    assert event.before_tokens == 8_000
    transcript.add(event)
    assert event.after_tokens == 100 + estimate_tokens(transcript.messages())


PARTS = st.one_of(
    st.integers(1, 3_000).map(lambda size: ("person", size)),
    st.integers(1, 3_000).map(lambda size: ("step", size)),
)


@pytest.mark.rules("R27", "A4.36", "D6")
@given(parts=st.lists(PARTS, max_size=14), rate=st.sampled_from([0.5, 1.0, 3.0]))
def test_a_summary_stands_for_whole_exchanges_and_makes_room(
    parts: Sequence[tuple[str, int]], rate: float
) -> None:
    made = [
        person("x" * (4 * size)) if who == "person" else step(number, size // 3, size, size // 2)
        for number, (who, size) in enumerate(parts)
    ]
    transcript = talk(*made)
    size = round(rate * (100 + estimate_tokens(transcript.messages())))
    room = fill(size, rate=rate)
    span = plan_summary(plan_of(), transcript.entries(), room)
    if span is None:
        return
    assert estimate_tokens(span.request.messages) + 100 <= 0.75 * WINDOW / rate + 1
    _check_pairs(span.request.messages)
    event = sum_up(say("s" * 9_000), span, room, ())
    if event is None:
        return
    last = transcript.messages()[-1]
    transcript.add(event)
    messages = transcript.messages()
    _check_pairs(messages)
    assert messages[1:] == span.kept
    assert event.after_tokens < size + 4
    if last.role == "user":
        assert messages[-1] == last


def _check_pairs(messages: Sequence[Message]) -> None:
    """Each call has its result in the next message, and no result stands alone."""
    open_calls: list[str] = []
    for message in messages:
        results = [block.call for block in message.content if isinstance(block, ToolResult)]
        assert results == open_calls
        open_calls = [block.id for block in message.content if isinstance(block, ToolCall)]
    assert open_calls == []

"""Making a conversation fit the model's window again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.context.assemble import estimate_tokens
from towline_agent.context.compact import Compactor
from towline_agent.context.summary import SUMMARY_HEADING
from towline_agent.errors import ContextOverflow, ProviderUnavailable
from towline_agent.plan import Plan
from towline_agent.providers.base import Model, Request, StepFailed, StepResult
from towline_agent.testing import ScriptedHost, ScriptedProvider, say, scripted_plan
from towline_protocol import (
    CallId,
    Compacted,
    Context,
    Message,
    MessageEnded,
    MessageId,
    PromptDelivered,
    StepEnded,
    Text,
    ToolCall,
    ToolEnded,
    Transcript,
    TurnStarted,
    Usage,
    block_text,
)

WINDOW = 10_000


class Summarizer:
    """A model that is asked for summaries, by a script."""

    def __init__(self, *script: StepResult | str) -> None:
        self.requests: list[Request] = []
        self._script = list(script)

    async def ask(self, request: Request) -> StepResult:
        self.requests.append(request)
        answer = self._script.pop(0)
        return say(answer) if isinstance(answer, str) else answer


def plan_of(window: int | None = WINDOW, *, system: str = "You are an agent.") -> Plan:
    model = Model(provider="scripted", id="small", window=window)
    return scripted_plan(ScriptedProvider(model=model), system=system)


def begin(prompt: str = "Go.", *, earlier: tuple[Message, ...] = ()) -> ScriptedHost:
    host = ScriptedHost(prompt, earlier=earlier)
    plan = plan_of()
    host.emit(TurnStarted(prompt=host.prompt, model="scripted/small", limits=plan.limits))
    host.emit(PromptDelivered(prompt=host.prompt, turn=host.turn, how="started"))
    return host


def step(host: ScriptedHost, number: int, tokens: int, *, used: int = 0) -> None:
    """A step with one call, counted by the provider before its result came."""
    call = CallId(f"call_{number}")
    asked = ToolCall(id=call, name="look", arguments="{}")
    host.emit(MessageEnded(message=MessageId(f"msg_{number}"), content=(asked,)))
    context = Context(used=used, window=WINDOW) if used else None
    host.emit(StepEnded(stop_reason="tool_calls", usage=Usage(), context=context))
    told = (Text(text="x" * (4 * tokens)),)
    host.emit(ToolEnded(call=call, status="completed", content=told))


def compactions(host: ScriptedHost) -> list[Compacted]:
    return [event for event in host.events if isinstance(event, Compacted)]


def first_text(host: ScriptedHost) -> str:
    return block_text(host.transcript.messages()[0].content)


@pytest.mark.rules("A4.32")
@pytest.mark.parametrize(("used", "starts"), [(6_490, False), (6_500, True)])
async def test_it_starts_at_three_quarters_by_the_providers_count_and_what_is_new(
    used: int, *, starts: bool
) -> None:
    host = begin()
    for number in range(5):
        step(host, number, 1_500)
    step(host, 5, 1_000, used=used)
    model = Summarizer()
    assert await Compactor(plan_of()).make_room(host, model.ask) is None
    assert bool(compactions(host)) == starts
    assert model.requests == []


@pytest.mark.rules("A4.32")
async def test_what_nobody_has_counted_is_estimated_with_instructions_and_tools() -> None:
    for chars, starts in ((8_000, False), (10_000, True)):
        host = begin()
        for number in range(5):
            step(host, number, 1_050)
        plan = plan_of(system="x" * chars)
        assert await Compactor(plan).make_room(host, Summarizer().ask) is None
        assert bool(compactions(host)) == starts


@pytest.mark.rules("A4.32")
async def test_with_an_unknown_window_it_waits_for_an_overflow() -> None:
    host = begin()
    for number in range(6):
        step(host, number, 9_000)
    compactor = Compactor(plan_of(None))
    assert await compactor.make_room(host, Summarizer().ask) is None
    assert compactions(host) == []
    assert await compactor.make_room(host, Summarizer().ask, overflow=True) is None
    (event,) = compactions(host)
    assert event.cut == ("call_0", "call_1")
    assert event.before_tokens > 54_000
    assert event.after_tokens < 0.75 * 54_000


@pytest.mark.rules("A4.33", "A4.35")
async def test_cutting_comes_first_and_asks_nobody() -> None:
    host = begin()
    for number in range(8):
        step(host, number, 1_200, used=8_000)
    model = Summarizer()
    assert await Compactor(plan_of()).make_room(host, model.ask) is None
    (event,) = compactions(host)
    assert event.summary is None
    assert event.cut == ("call_0", "call_1", "call_2", "call_3")
    assert event.before_tokens == 9_200
    assert event.after_tokens < 7_500
    assert model.requests == []
    assert "were cut to make room" in repr(host.transcript.messages()[2])


@pytest.mark.rules("A4.36", "A4.38", "D6")
async def test_then_the_model_sums_up_what_is_not_enough() -> None:
    host = begin("Find the fault.")
    for number in range(10):
        step(host, number, 900, used=8_900)
    before = [event for event in host.events if not isinstance(event, Compacted)]
    model = Summarizer("Goal: the fault. State: looked six times.")
    assert await Compactor(plan_of()).make_room(host, model.ask) is None
    (event,) = compactions(host)
    assert event.summary is not None
    assert first_text(host) == event.summary
    assert event.summary.startswith(SUMMARY_HEADING)
    assert "looked six times" in event.summary
    assert "Find the fault." in event.summary
    assert event.after_tokens < 5_000
    assert [event for event in host.events if not isinstance(event, Compacted)] == before
    again = Transcript()
    for stored, private in host.log:
        again.add(stored, private, host.turn)
    assert again.messages() == host.transcript.messages()
    assert await Compactor(plan_of()).make_room(host, model.ask) is None
    assert len(model.requests) == len(compactions(host)) == 1


@pytest.mark.rules("A4.36")
async def test_what_the_model_sums_up_is_what_it_was_shown_before_any_cut() -> None:
    host = begin()
    for number in range(2):
        step(host, number, 1_100)
    for number in range(2, 10):
        step(host, number, 900, used=8_900)
    shown = host.transcript.messages()
    model = Summarizer("Looked.")
    assert await Compactor(plan_of()).make_room(host, model.ask) is None
    (request,) = model.requests
    assert request.messages[:-1] == shown[: len(request.messages) - 1]
    (event,) = compactions(host)
    assert event.summary is not None
    assert event.cut == ()


@pytest.mark.rules("A4.33", "A4.36")
async def test_one_event_tells_what_was_summed_up_and_what_was_cut_of_the_rest() -> None:
    host = begin()
    for number, size in enumerate([*[900] * 8, 2_000, *[300] * 4]):
        step(host, number, size)
    assert await Compactor(plan_of()).make_room(host, Summarizer("Looked.").ask) is None
    (event,) = compactions(host)
    assert (event.upto, event.cut) == ("msg_5", ("call_8",))
    messages = host.transcript.messages()
    assert "were cut to make room" in repr(messages)
    left = 4 + estimate_tokens(messages)  # the instructions are 17 characters
    assert event.after_tokens == pytest.approx(left, abs=3)


@pytest.mark.rules("A4.39", "R29")
async def test_a_system_prompt_that_fills_the_window_fails_clearly_and_costs_nothing() -> None:
    host = begin("x" * 800)
    model = Summarizer()
    plan = plan_of(1_000, system="x" * 3_600)
    failure = await Compactor(plan).make_room(host, model.ask)
    assert isinstance(failure, ContextOverflow)
    assert failure.code == "provider_context_overflow"
    assert "about 1100 tokens of 1000, 900 of them instructions" in failure.message
    assert "larger window" in failure.message
    assert model.requests == []
    assert compactions(host) == []
    assert (failure.provider, failure.model) == ("scripted", "small")


@pytest.mark.rules("R29")
@pytest.mark.parametrize("answer", ["", "s" * 99_000])
async def test_after_one_try_without_progress_nobody_is_asked_again(answer: str) -> None:
    earlier = (
        Message("user", (Text(text="a" * 4_400),)),
        Message("assistant", (Text(text="b" * 2_000),)),
    )
    host = begin("x" * 24_200, earlier=earlier)
    model = Summarizer(answer)
    compactor = Compactor(plan_of())
    for _ in range(5):
        assert await compactor.make_room(host, model.ask) is None
    assert len(model.requests) == 1
    assert len(compactions(host)) == bool(answer)
    failure = await compactor.make_room(host, model.ask, overflow=True)
    assert isinstance(failure, ContextOverflow)
    assert len(model.requests) == 1


@pytest.mark.rules("A4.39")
async def test_a_turn_gets_two_summaries_and_then_goes_on_until_it_is_full() -> None:
    host = begin()
    model = Summarizer("First.", "Second.")
    compactor = Compactor(plan_of())
    number = 0
    failure: ContextOverflow | None = None
    while failure is None and number < 99:
        step(host, number, 900)
        number += 1
        failure = await compactor.make_room(host, model.ask)
    assert isinstance(failure, ContextOverflow)
    assert len(model.requests) == 2
    assert [event.summary is not None for event in compactions(host)] == [True, True]
    assert "Second." in first_text(host)
    # The next turn finds a conversation that it can read, sum up and go on with.
    assert await Compactor(plan_of()).make_room(host, Summarizer("Third.").ask) is None
    assert "Third." in first_text(host)


@pytest.mark.rules("A4.39", "R29")
async def test_a_turn_survives_two_overflows_and_no_third() -> None:
    host = begin()
    for number in range(12):
        step(host, number, 3_000)
    model = Summarizer("First.", "Second.")
    compactor = Compactor(plan_of(None))
    sizes: list[int] = []
    for _ in range(2):
        assert await compactor.make_room(host, model.ask, overflow=True) is None
        sizes.append(compactions(host)[-1].after_tokens)
    failure = await compactor.make_room(host, model.ask, overflow=True)
    assert isinstance(failure, ContextOverflow)
    assert "new session" in failure.message
    assert len(compactions(host)) == 2
    assert sizes[1] < sizes[0] / 1.3


@pytest.mark.rules("A4.32", "A4.39")
async def test_an_overflow_below_the_known_window_means_our_count_is_too_low() -> None:
    host = begin()
    for number in range(6):
        step(host, number, 700, used=3_000)  # a script that costs more than we think
    compactor = Compactor(plan_of())
    assert await compactor.make_room(host, Summarizer().ask) is None
    model = Summarizer("Looked.")
    assert await compactor.make_room(host, model.ask, overflow=True) is None
    (event,) = compactions(host)
    assert event.before_tokens == WINDOW
    assert event.after_tokens <= 6_000


@pytest.mark.rules("R29")
async def test_a_single_prompt_that_overflows_fails_at_once() -> None:
    host = begin("x" * 400_000)
    model = Summarizer()
    failure = await Compactor(plan_of(None)).make_room(host, model.ask, overflow=True)
    assert isinstance(failure, ContextOverflow)
    assert "about 10000" in failure.message
    assert model.requests == []


@pytest.mark.rules("A4.39")
async def test_a_summary_that_fails_is_tried_once_more_and_told_when_it_matters() -> None:
    broken = StepFailed(error=ProviderUnavailable("It is down."))
    host = begin()
    for number in range(9):
        step(host, number, 900, used=8_000)
    model = Summarizer(broken, broken)
    compactor = Compactor(plan_of())
    for _ in range(3):
        assert await compactor.make_room(host, model.ask) is None
    assert (len(model.requests), compactions(host)) == (2, [])
    step(host, 9, 900, used=9_900)
    full = await Compactor(plan_of()).make_room(host, Summarizer(broken).ask)
    assert full is not None
    assert "Summing it up failed: It is down." in full.message


@pytest.mark.rules("A4.32")
async def test_the_window_of_the_model_that_is_asked_counts() -> None:
    host = begin()
    for number in range(6):
        step(host, number, 2_000)
    large = Model(provider="scripted", id="large", window=100_000)
    compactor = Compactor(plan_of())
    assert await compactor.make_room(host, Summarizer().ask, facts=large) is None
    assert compactions(host) == []
    model = Summarizer("Looked.")
    assert await compactor.make_room(host, model.ask) is None
    assert len(compactions(host)) == 1


@pytest.mark.rules("R23", "R25")
async def test_a_conversation_with_a_call_that_never_ended_can_be_compacted() -> None:
    host = begin()
    step(host, 0, 2_500)
    lost = ToolCall(id=CallId("lost"), name="look", arguments="{}")
    host.emit(MessageEnded(message=MessageId("msg_lost"), content=(lost,)))
    for number in range(1, 4):
        step(host, number, 2_500)
    assert await Compactor(plan_of()).make_room(host, Summarizer("Looked.").ask) is None
    (event,) = compactions(host)
    assert event.summary is not None
    assert "x" in repr(host.transcript.messages()[-1])


SIZES = st.lists(st.integers(0, 2_500), min_size=1, max_size=30)


@pytest.mark.rules("A4.39", "R27", "R29", "D6")
@given(sizes=SIZES, answers=st.lists(st.sampled_from(["", "short", "s" * 40_000]), min_size=2))
async def test_no_turn_asks_for_more_than_two_summaries_or_loses_a_pair(
    sizes: Sequence[int], answers: list[str]
) -> None:
    host = begin()
    model = Summarizer(*answers)
    compactor = Compactor(plan_of())
    for number, size in enumerate(sizes):
        step(host, number, size)
        failure = await compactor.make_room(host, model.ask)
        messages = host.transcript.messages()
        calls = [block for m in messages for block in m.content if isinstance(block, ToolCall)]
        assert len(calls) == sum(len(m.content) for m in messages if m.role == "tool")
        if failure is not None:
            break
    assert len(model.requests) <= 2
    again = Transcript()
    for stored, private in host.log:
        again.add(stored, private, host.turn)
    assert again.messages() == host.transcript.messages()
    for event in compactions(host):
        assert event.after_tokens < event.before_tokens

"""How a turn goes from its prompt to its one end."""

from collections.abc import Callable

import pytest

from towline_agent.errors import (
    AuthenticationFailed,
)
from towline_agent.providers.base import (
    Model,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.testing import ScriptedHost, ScriptedProvider, call, say, scripted_plan
from towline_agent.tools.function import tool
from towline_protocol import (
    CallId,
    Limits,
    MessageEnded,
    Notice,
    PromptDelivered,
    StepEnded,
    Text,
    Thinking,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolResult,
    TurnCompleted,
    TurnStarted,
    Usage,
    block_text,
)

PRICED = Model(provider="scripted", id="priced", price_input=1.0, price_output=2.0)


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there."


def broken(*, streamed: bool = False, usage: Usage | None = None) -> StepFailed:
    error = AuthenticationFailed("The key is wrong; set another one.")
    return StepFailed(error=error, streamed=streamed, usage=usage or Usage())


def answer(*blocks: Text | Thinking | ToolCall, stop_reason: str = "end_turn") -> StepAnswer:
    return StepAnswer(content=blocks, stop_reason=stop_reason, usage=Usage(input=10, output=5))


def wanted(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=CallId(""), name=name, arguments=arguments)


@pytest.mark.rules("A4.2", "C1.4")
async def test_a_turn_is_a_staircase_of_events_and_settles_before_each_effect() -> None:
    settled: list[int] = []

    @tool(effect="read")
    async def note() -> str:
        """Note how much is durable."""
        settled.append(host.settled)
        return "noted"

    host = ScriptedHost()
    await host.run(scripted_plan(ScriptedProvider(call("note"), say("Done. And more.")), note))
    names = [type(event).__name__ for event in host.events]
    assert names == [
        "PromptAdmitted",
        "TurnStarted",
        "PromptDelivered",
        "StepStarted",
        "MessageStarted",
        "ToolCallDelta",
        "MessageEnded",
        "StepEnded",
        "ToolProposed",
        "ToolStarted",
        "ToolEnded",
        "StepStarted",
        "MessageStarted",
        "TextDelta",
        "MessageEnded",
        "StepEnded",
        "TurnCompleted",
    ]
    assert settled == [names.index("ToolStarted") + 1]


async def test_a_turn_says_who_is_asked_and_within_what_bounds() -> None:
    host = ScriptedHost()
    limits = Limits(max_steps=3)
    await host.run(scripted_plan(ScriptedProvider("Hello."), limits=limits))
    started = next(event for event in host.events if isinstance(event, TurnStarted))
    assert started == TurnStarted(prompt=host.prompt, model="scripted/scripted", limits=limits)
    assert PromptDelivered(prompt=host.prompt, turn=host.turn, how="started") in host.events


@pytest.mark.rules("A4.29")
async def test_the_summary_is_the_first_sentence_of_the_last_words() -> None:
    host = ScriptedHost()
    end = await host.run(scripted_plan(ScriptedProvider("It is 3.5 m\nlong. Quite long.")))
    assert isinstance(end.event, TurnCompleted)
    assert end.event.summary == "It is 3.5 m long."


@pytest.mark.rules("A4.4", "A4.54")
async def test_at_the_step_limit_one_more_request_asks_for_a_hand_over() -> None:
    provider = ScriptedProvider(call("look", at="a"), "I looked at a.")
    host = ScriptedHost()
    end = await host.run(scripted_plan(provider, look, limits=Limits(max_steps=1)))
    usual, last = provider.requests
    assert (usual.tool_choice, last.tool_choice) == ("auto", "none")
    assert usual.tools == last.tools
    assert last.messages[-1].role == "user"
    assert "limit of steps" in block_text(last.messages[-1].content)
    assert last.messages[-1] not in host.transcript.messages()
    assert isinstance(end.event, TurnCompleted)
    assert (end.spent.steps, end.event.summary) == (1, "I looked at a.")


@pytest.mark.rules("A4.55")
async def test_without_a_hand_over_the_step_limit_sends_nothing_more() -> None:
    provider = ScriptedProvider(call("look", at="a"))
    host = ScriptedHost()
    limits = Limits(max_steps=1)
    await host.run(scripted_plan(provider, look, limits=limits, hand_over=False))
    assert len(provider.requests) == 1
    assert any(isinstance(event, ToolEnded) for event in host.events)


async def test_calls_in_a_hand_over_are_left_out() -> None:
    hand_over = answer(Text(text="I would look on."), wanted("look"))
    provider = ScriptedProvider(call("look", at="a"), hand_over)
    host = ScriptedHost()
    await host.run(scripted_plan(provider, look, limits=Limits(max_steps=1)))
    assert host.transcript.messages()[-1].content == (Text(text="I would look on."),)
    assert sum(isinstance(event, ToolProposed) for event in host.events) == 1


@pytest.mark.rules("A4.54")
async def test_a_hand_over_that_fails_loses_no_work() -> None:
    host = ScriptedHost()
    provider = ScriptedProvider(call("look", at="a"), broken())
    await host.run(scripted_plan(provider, look, limits=Limits(max_steps=1)))
    (notice,) = [event for event in host.events if isinstance(event, Notice)]
    assert "key is wrong" in notice.message
    assert host.transcript.messages()[-1].role == "tool"


@pytest.mark.rules("A4.8")
async def test_a_bound_that_is_not_reached_ends_nothing() -> None:
    limits = Limits(max_steps=2, max_tokens=31, max_cost=1.0, wall_s=60.0)
    provider = ScriptedProvider(call("look", at="a"), "There.", model=PRICED)
    end = await ScriptedHost().run(scripted_plan(provider, look, limits=limits))
    assert isinstance(end.event, TurnCompleted)
    assert end.event.stop_reason == "end_turn"


@pytest.mark.rules("A4.48", "A4.49")
@pytest.mark.parametrize(("model", "cost"), [(None, None), (PRICED, 3 * (10 + 2 * 5) / 1e6)])
async def test_usage_and_cost_are_those_of_all_requests(
    model: Model | None, cost: float | None
) -> None:
    failed = broken(streamed=True, usage=Usage(input=10, output=5))
    provider = ScriptedProvider(call("look", at="a"), call("look", at="b"), failed, model=model)
    end = await ScriptedHost().run(scripted_plan(provider, look))
    assert end.event.usage == Usage(input=30, output=15)
    assert end.spent.cost == (None if cost is None else pytest.approx(cost))


async def test_each_step_tells_its_usage_cost_and_how_full_the_window_is() -> None:
    usage = Usage(input=100, output=50, cache_read=900)
    facts = Model(provider="s", id="m", window=8000, price_input=1.0, price_output=2.0)
    host = ScriptedHost()
    await host.run(scripted_plan(ScriptedProvider(say("Hi.", usage=usage), model=facts)))
    (ended,) = [event for event in host.events if isinstance(event, StepEnded)]
    assert ended.usage == usage
    assert ended.cost == pytest.approx((1000 + 2 * 50) / 1e6)
    assert ended.context is not None
    assert (ended.context.used, ended.context.window) == (1050, 8000)


async def test_notices_of_a_provider_are_told() -> None:
    odd = StepAnswer(
        content=(Text(text="Hi."),), stop_reason="end_turn", notices=("It sent two ends.",)
    )
    host = ScriptedHost()
    await host.run(scripted_plan(ScriptedProvider(odd)))
    assert Notice(code="provider", message="It sent two ends.") in host.events


@pytest.mark.rules("A4.7")
async def test_what_is_said_into_a_turn_is_delivered_between_steps() -> None:
    @tool(effect="read")
    async def hear() -> str:
        """Be told something."""
        host.steer("And b too.")
        return "heard"

    host = ScriptedHost()
    provider = ScriptedProvider(call("hear"), "Both.")
    await host.run(scripted_plan(provider, hear))
    assert [message.role for message in provider.requests[1].messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert block_text(provider.requests[1].messages[-1].content) == "And b too."
    delivered = [event.how for event in host.events if isinstance(event, PromptDelivered)]
    assert delivered == ["started", "steered"]


@pytest.mark.rules("A4.7")
async def test_what_is_said_while_the_last_answer_comes_is_answered_too() -> None:
    host = ScriptedHost()

    class Steered(ScriptedProvider):
        async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
            if not self.requests:
                host.steer("And c?")
            return await super().step(request, on_piece)

    provider = Steered("Here is a.", "Here is c.")
    await host.run(scripted_plan(provider))
    assert [block_text(message.content) for message in provider.requests[1].messages] == [
        "Hi",
        "Here is a.",
        "And c?",
    ]


@pytest.mark.rules("A4.5")
async def test_the_prefix_that_was_sent_is_sent_again_unchanged() -> None:
    provider = ScriptedProvider(call("look", at="a"), call("look", at="b"), "Done.")
    await ScriptedHost().run(scripted_plan(provider, look))
    for before, after in zip(provider.requests, provider.requests[1:], strict=False):
        assert (before.system, before.tools) == (after.system, after.tools)
        assert after.messages[: len(before.messages)] == before.messages


@pytest.mark.rules("C5.7", "S14")
async def test_every_request_pairs_each_call_with_one_result() -> None:
    two = answer(wanted("look", '{"at": "a"}'), wanted("nothing"), stop_reason="tool_calls")
    provider = ScriptedProvider(two, two, "Done.")
    await ScriptedHost().run(scripted_plan(provider, look))
    for request in provider.requests:
        calls = [b.id for m in request.messages for b in m.content if isinstance(b, ToolCall)]
        results = [b.call for m in request.messages for b in m.content if isinstance(b, ToolResult)]
        assert calls == results
        assert len(set(calls)) == len(calls)


@pytest.mark.rules("C1.1", "S16")
async def test_ids_of_the_provider_are_kept_beside_ours_and_are_never_a_key() -> None:
    same = ToolCall(id=CallId(""), name="look", arguments='{"at": "a"}', wire_id="call_x")
    again = answer(same, same, stop_reason="tool_calls")
    provider = ScriptedProvider(again, again, "Done.")
    host = ScriptedHost()
    await host.run(scripted_plan(provider, look))
    proposed = [event.call for event in host.events if isinstance(event, ToolProposed)]
    assert len(set(proposed)) == 4
    for event in host.events:
        if isinstance(event, MessageEnded):
            assert all(b.wire_id is None for b in event.content if isinstance(b, ToolCall))
    sent = [b for m in provider.requests[-1].messages for b in m.content if isinstance(b, ToolCall)]
    assert [block.wire_id for block in sent] == ["call_x"] * 4


@pytest.mark.rules("A4.24")
async def test_words_of_a_failed_answer_stay_and_are_marked() -> None:
    pieces = [ThinkingPiece(0, "hm"), TextPiece(1, "Half a"), broken(streamed=True)]
    host = ScriptedHost()
    await host.run(scripted_plan(ScriptedProvider(pieces)))
    (ended,) = [event for event in host.events if isinstance(event, MessageEnded)]
    assert ended.content == (Thinking(text="hm"), Text(text="Half a"))
    assert ended.cut == "failed"

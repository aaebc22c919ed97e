"""Trying again, and waiting where people can see it."""

import asyncio

import pytest

from towline_agent.errors import (
    AuthenticationFailed,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
)
from towline_agent.limits import Slot
from towline_agent.plan import Plan
from towline_agent.providers.base import Model, StepFailed, TextPiece
from towline_agent.testing import FakeClock, Script, ScriptedHost, ScriptedProvider, scripted_plan
from towline_protocol import (
    MessageDiscarded,
    MessageStarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    Usage,
    Waiting,
    parse_time,
)


def down(retry_after_s: float | None = None) -> StepFailed:
    return StepFailed(error=ProviderUnavailable("It is down.", retry_after_s=retry_after_s))


def limited(retry_after_s: float | None = None, *, streamed: bool = False) -> StepFailed:
    return StepFailed(
        error=RateLimited("Too many requests.", retry_after_s=retry_after_s), streamed=streamed
    )


def waits(host: ScriptedHost) -> list[str]:
    return [event.reason for event in host.events if isinstance(event, Waiting)]


async def run(*script: Script) -> tuple[ScriptedHost, ScriptedProvider, FakeClock]:
    host, provider, clock = ScriptedHost(), ScriptedProvider(*script), FakeClock()
    await host.run(scripted_plan(provider, clock=clock))
    return host, provider, clock


@pytest.mark.rules("A3.13", "A3.14", "A4.6")
async def test_before_the_first_piece_it_is_tried_three_times_more() -> None:
    host, provider, clock = await run(down(), down(), down(), "Up again.")
    assert clock.sleeps == [1.0, 2.0, 4.0]
    assert len({id(request) for request in provider.requests}) == 1
    assert isinstance(host.events[-1], TurnCompleted)


@pytest.mark.rules("A3.13")
async def test_after_three_more_tries_it_fails() -> None:
    host, provider, _ = await run(down(), down(), down(), down(), "never said")
    assert len(provider.requests) == 4
    assert isinstance(host.events[-1], TurnFailed)


@pytest.mark.rules("A3.12")
async def test_each_try_and_each_wait_is_an_event() -> None:
    host, _, clock = await run(down(), down(), "Up.")
    tries = [event.attempt for event in host.events if isinstance(event, StepStarted)]
    assert tries == [1, 2, 3]
    waiting = [event for event in host.events if isinstance(event, Waiting)]
    assert [event.reason for event in waiting] == ["retry", "retry"]
    start_ms = clock.now_ms() - 3000
    assert [parse_time(event.until) - start_ms for event in waiting] == [1000, 3000]


@pytest.mark.rules("A3.13")
async def test_delays_vary_so_that_many_do_not_come_back_at_once() -> None:
    clock = FakeClock()
    provider = ScriptedProvider(down(), down(), "Up.")
    await ScriptedHost().run(scripted_plan(provider, clock=clock, jitter=lambda: 0.8))
    assert clock.sleeps == [0.8, 1.6]


@pytest.mark.rules("A3.13")
def test_delays_vary_by_a_fifth_at_most() -> None:
    plan = scripted_plan(ScriptedProvider())
    usual = Plan(
        provider=plan.provider,
        system="",
        tools=plan.tools,
        workspace=plan.workspace,
        clock=plan.clock,
        mint=plan.mint,
    )
    drawn = [usual.jitter() for _ in range(200)]
    assert 0.8 <= min(drawn) < 1.0 < max(drawn) <= 1.2


@pytest.mark.rules("A3.13")
@pytest.mark.parametrize(("stated_s", "sleeps"), [(20.0, [20.0]), (20.1, []), (0.0, [0.0])])
async def test_a_providers_own_delay_is_taken_when_it_is_short(
    stated_s: float, sleeps: list[float]
) -> None:
    host, _, clock = await run(down(stated_s), "Up.")
    assert clock.sleeps == sleeps
    assert isinstance(host.events[-1], TurnCompleted) == bool(sleeps)


async def test_what_cannot_be_mended_by_a_retry_is_not_tried_again() -> None:
    refused = StepFailed(error=AuthenticationFailed("The key is wrong."))
    host, provider, clock = await run(refused, "never said")
    assert (len(provider.requests), clock.sleeps) == (1, [])
    assert isinstance(host.events[-1], TurnFailed)


@pytest.mark.rules("A3.13", "A3.32")
async def test_after_a_piece_nothing_is_sent_again() -> None:
    for failed in (
        StepFailed(error=ProviderUnavailable("It is down."), streamed=True),
        limited(1.0, streamed=True),
    ):
        host, provider, clock = await run([TextPiece(0, "We"), failed], "never said")
        assert (len(provider.requests), clock.sleeps) == (1, [])
        assert isinstance(host.events[-1], TurnFailed)


async def test_a_failed_try_leaves_nothing_in_the_history() -> None:
    host, provider, _ = await run(down(), "Up.")
    assert provider.requests[0] == provider.requests[1]
    assert [message.role for message in host.transcript.messages()] == ["user", "assistant"]
    assert not any(isinstance(event, MessageDiscarded) for event in host.events)
    assert sum(isinstance(event, MessageStarted) for event in host.events) == 1


@pytest.mark.rules("A3.15", "A3.22", "A3.23", "A3.24", "S31")
@pytest.mark.parametrize(
    ("stated_s", "waited_s"), [(None, 30.0), (0.2, 1.0), (45.0, 45.0), (3 * 86400.0, 120.0)]
)
async def test_a_rate_limit_is_waited_for_within_bounds(
    stated_s: float | None, waited_s: float
) -> None:
    host, _, clock = await run(limited(stated_s), "Hello.")
    assert clock.sleeps == [waited_s]
    assert waits(host) == ["rate_limit"]
    end = host.events[-1]
    assert isinstance(end, TurnCompleted)


@pytest.mark.rules("A3.23")
async def test_at_most_six_waits_come_in_a_row() -> None:
    host, provider, clock = await run(*[limited(2.0)] * 7, "never said")
    assert clock.sleeps == [2.0] * 6
    assert len(provider.requests) == 7
    end = host.events[-1]
    assert isinstance(end, TurnFailed)
    assert end.fault.code == "provider_rate_limit"


@pytest.mark.rules("A3.24")
async def test_a_wait_is_no_step_and_uses_up_no_retry() -> None:
    host, provider, clock = await run(*[limited(2.0)] * 4, down(), down(), down(), "Hello.")
    assert clock.sleeps == [2.0] * 4 + [1.0, 2.0, 4.0]
    assert len(provider.requests) == 8
    assert isinstance(host.events[-1], TurnCompleted)


@pytest.mark.rules("A3.12", "A3.24", "S28", "S31")
@pytest.mark.parametrize("failed", [down(), limited()])
async def test_a_stop_ends_a_wait(failed: StepFailed) -> None:
    host, clock = ScriptedHost(), FakeClock(held=True)
    provider = ScriptedProvider(failed, "never said")
    turn = asyncio.create_task(host.run(scripted_plan(provider, clock=clock)))
    async with asyncio.timeout(5):
        await clock.wait_for_sleeper()
        assert isinstance(host.events[-1], Waiting)
        assert host.settled == len(host.events)
        host.stop()
        end = await turn
    assert isinstance(end.event, TurnCancelled)
    assert len(provider.requests) == 1


@pytest.mark.rules("A4.48")
async def test_tokens_of_failed_tries_are_counted_and_told_by_the_next_try() -> None:
    used = Usage(input=7, output=1)
    failed = StepFailed(error=ProviderUnavailable("Down."), usage=used)
    facts = Model(provider="s", id="m", price_input=1_000_000.0, price_output=0.0)
    script = (failed, down(), failed, "Up.")
    host = ScriptedHost()
    end = await host.run(scripted_plan(ScriptedProvider(*script, model=facts)))
    assert end.event.usage == Usage(input=24, output=7)
    assert end.spent.steps == 1
    tries = [event for event in host.events if isinstance(event, StepStarted)]
    assert [(event.attempt, event.failed, event.failed_cost) for event in tries] == [
        (1, None, None), (2, used, 7.0), (3, None, None), (4, used, 7.0),
    ]  # fmt: skip


@pytest.mark.rules("A2.91")
async def test_who_waits_for_a_place_says_so() -> None:
    slot = Slot(1)
    facts = Model(provider="s", id="m", idle_s=900.0)
    gate = asyncio.Event()
    first, second = ScriptedHost(), ScriptedHost()
    clock = FakeClock()
    long = scripted_plan(ScriptedProvider([gate, TextPiece(0, "A")]), slot=slot)
    short = scripted_plan(ScriptedProvider("B", model=facts), slot=slot, clock=clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(first.run(long))
        await first.wait_for(StepStarted)
        waiting = group.create_task(second.run(short))
        await second.wait_for(Waiting)
        assert not waiting.done()
        gate.set()
    assert waits(first) == []
    event, over = [event for event in second.events if isinstance(event, Waiting)]
    assert (event.reason, over.reason) == ("slot", "reading")
    assert parse_time(event.until) == clock.now_ms() + 900_000
    assert isinstance(second.events[-1], TurnCompleted)


@pytest.mark.rules("A2.91")
async def test_a_slot_that_is_held_says_why_and_lets_nobody_in() -> None:
    slot = Slot(1)
    slot.hold("loading")
    host = ScriptedHost()
    async with asyncio.timeout(5):
        turn = asyncio.create_task(host.run(scripted_plan(ScriptedProvider("A"), slot=slot)))
        await host.wait_for(Waiting)
        assert waits(host) == ["loading"]
        slot.release()
        await turn
    assert waits(host) == ["loading", "reading"]
    assert slot.waits_for is None


@pytest.mark.rules("A2.91")
async def test_who_starts_the_model_is_told_what_it_waits_for() -> None:
    slot = Slot(1)
    slot.first = "loading"
    host = ScriptedHost()
    await host.run(scripted_plan(ScriptedProvider("A"), slot=slot))
    assert waits(host) == ["loading"]
    slot.first = None
    again = ScriptedHost()
    await again.run(scripted_plan(ScriptedProvider("A"), slot=slot))
    assert waits(again) == []


@pytest.mark.rules("S28")
async def test_a_stop_while_waiting_for_a_place_leaves_the_place_to_others() -> None:
    slot = Slot(1)
    async with asyncio.timeout(5):
        async with slot:
            host = ScriptedHost()
            turn = asyncio.create_task(host.run(scripted_plan(ScriptedProvider("A"), slot=slot)))
            await host.wait_for(Waiting)
            host.stop()
            assert isinstance((await turn).event, TurnCancelled)
        assert slot.waits_for is None
        async with slot:
            assert slot.waits_for == "slot"


def test_provider_errors_say_whether_a_retry_may_help() -> None:
    assert ProviderUnavailable("x").retryable
    assert not RateLimited("x").retryable
    assert not ProviderError("x").retryable
    assert ProviderError("x", retryable=True).retryable

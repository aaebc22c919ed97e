"""A provider that wants to be left alone: for a while, or for good."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import QuotaExhausted, RateLimited, StepFailed
from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import TurnCancelled, TurnFailed, Waiting, block_text, parse_time
from towline_server.testing import AppClient, open_test_app, ran

THREE_DAYS_S = 3 * 86_400.0
PATIENCE_S = 10


def _limited() -> StepFailed:
    return StepFailed(error=RateLimited("Too many requests.", retry_after_s=THREE_DAYS_S))


@pytest.mark.rules("S31")
async def test_a_wait_of_three_days_is_capped_counted_down_and_over_in_its_time(
    tmp_path: Path,
) -> None:
    clock = FakeClock(held=True)
    provider = ScriptedProvider(_limited(), "well")
    async with open_test_app(provider, root=tmp_path, clock=clock) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        view = await client.until(session, lambda view: view.waiting is not None)
        assert view.waiting is not None
        assert view.waiting.reason == "rate_limit"
        left_ms = parse_time(view.waiting.until) - clock.now_ms()
        assert 1_000 <= left_ms <= 120_000
        clock.advance(left_ms / 1000)
        view = await client.until(session, ran(1))
    assert view.waiting is None
    assert block_text(view.messages[-1].content) == "well"


@pytest.mark.rules("S28", "S31")
async def test_a_stop_ends_a_wait_at_once_and_the_next_message_works(tmp_path: Path) -> None:
    clock = FakeClock(held=True)
    provider = ScriptedProvider(_limited(), "well")
    async with open_test_app(provider, root=tmp_path, clock=clock) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, lambda view: view.waiting is not None)
        async with asyncio.timeout(PATIENCE_S):
            assert await client.interrupt(session) is not None
        await client.prompt(session, "go on")
        await client.until(session, ran(2))
        log = await client.log(session)
    assert len([e for e in log if isinstance(e.event, TurnCancelled)]) == 1
    assert len(provider.requests) == 2


@pytest.mark.rules("C2.2", "S31")
@pytest.mark.parametrize("stated_s", [None, 1.0, THREE_DAYS_S])
async def test_what_no_wait_mends_fails_at_once_whatever_time_it_names(
    tmp_path: Path, stated_s: float | None
) -> None:
    clock = FakeClock(held=True)
    spent = QuotaExhausted("There is no credit left.", retry_after_s=stated_s, reason="quota")
    provider = ScriptedProvider(StepFailed(error=spent))
    async with open_test_app(provider, root=tmp_path, clock=clock) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, lambda view: view.last_turn is not None)
        log = await client.log(session)
    assert not [e for e in log if isinstance(e.event, Waiting)]
    (failed,) = [e.event for e in log if isinstance(e.event, TurnFailed)]
    assert (failed.fault.code, failed.fault.reason) == ("provider_quota", "quota")
    assert failed.fault.scope == "plan"
    assert len(provider.requests) == 1

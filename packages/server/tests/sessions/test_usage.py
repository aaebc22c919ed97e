"""What sessions use, and what a user's day may cost."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from towline_agent import Model, ProviderUnavailable, StepFailed, TextPiece, mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call, say
from towline_protocol import (
    CreateSession,
    Limits,
    Problem,
    SendPrompt,
    SessionInfo,
    Text,
    TurnCompleted,
    TurnStarted,
    Usage,
    UsageReport,
    UsageRow,
)
from towline_server.sessions.inbox import Said
from towline_server.store import usage
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

DOLLAR = Usage(input=10)
PRICED = Model(provider="p", id="one", price_input=100_000.0, price_output=100_000.0)
DAY_MS = 24 * 3600 * 1000
NOON_MS = 1_800_000_000_000 + 4 * 3600 * 1000  # 2027-01-15, 12:00


def dollars(count: int) -> ScriptedProvider:
    """Answers that cost a dollar each."""
    return ScriptedProvider(*[say("Yes.", usage=DOLLAR)] * count, model=PRICED)


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store that outlives the servers on it."""
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


async def used(client: AppClient, query: str = "by=session") -> UsageReport:
    reply = await client.ask("GET", f"/api/usage?{query}")
    assert reply.status == 200, reply.body
    return reply.read(UsageReport)


@pytest.mark.rules("A4.49")
async def test_each_answer_is_counted_with_its_event_and_outlives_the_server(
    tmp_path: Path, store: SqliteStore
) -> None:
    clock = FakeClock(NOON_MS, held=True)
    async with open_test_app(dollars(2), root=tmp_path, store=store, clock=clock) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(title="Cats"))
        for number in (1, 2):
            await client.prompt(session, "Hi")
            await client.until(session, ran(number))
            clock.advance(24 * 3600)
    async with open_test_app(dollars(0), root=tmp_path, store=store, clock=clock) as built:
        client = AppClient(built)
        report = await used(client)
        assert (report.first, report.last, report.today_cost) == ("2026-12-19", "2027-01-17", 0.0)
        row = UsageRow(name=session, title="Cats", requests=2, usage=Usage(input=20), cost=2.0)
        assert report.rows == (row,)
        days = await used(client, "by=day&from=2027-01-15&to=2027-01-15")
        assert [(row.name, row.cost) for row in days.rows] == [("2027-01-15", 1.0)]
        assert days.total.cost == 1.0
        (model,) = (await used(client, "by=model")).rows
        assert (model.name, model.requests) == ("p/one", 2)


@pytest.mark.rules("C2.9")
async def test_a_session_that_is_gone_keeps_its_sum_without_its_title(
    tmp_path: Path, store: SqliteStore
) -> None:
    clock = FakeClock(NOON_MS, held=True)
    async with open_test_app(dollars(1), root=tmp_path, store=store, clock=clock) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(title="A secret"))
        await client.prompt(session, "Hi")
        await client.until(session, ran(1))
        reply = await client.ask("DELETE", f"/api/sessions/{session}")
        assert reply.status < 300, reply.body
        (row,) = (await used(client)).rows
        assert (row.name, row.title, row.cost) == (session, None, 1.0)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("by=week", "by"),
        ("from=yesterday", "from"),
        ("to=2027-02-30", "to"),
        ("from=2027-01-02&to=2027-01-01", "from"),
        ("from=20270101", "from"),
        ("to=2027-W01-1", "to"),
    ],
)
async def test_days_and_rows_that_there_are_not_are_told(
    tmp_path: Path, query: str, word: str
) -> None:
    async with open_test_app(dollars(0), root=tmp_path) as built:
        reply = await AppClient(built).ask("GET", f"/api/usage?{query}")
    problem = reply.read(Problem)
    assert (reply.status, problem.code) == (400, "invalid_request")
    assert word in problem.detail


async def test_the_first_day_of_all_is_no_fault(tmp_path: Path) -> None:
    async with open_test_app(dollars(0), root=tmp_path) as built:
        report = await used(AppClient(built), "to=0001-01-03")
    assert (report.first, report.rows, report.total.requests) == ("0001-01-01", (), 0)


async def test_a_prompt_is_refused_once_the_day_has_cost_what_it_may(tmp_path: Path) -> None:
    clock = FakeClock(NOON_MS, held=True)
    async with open_test_app(dollars(3), root=tmp_path, clock=clock, daily_cost=2.0) as built:
        client = AppClient(built)
        session = await client.create()
        for number in (1, 2):
            assert (await client.prompt(session, "Hi")).status == 202
            await client.until(session, ran(number))
        report = await used(client)
        assert (report.today_cost, report.daily_cost) == (2.0, 2.0)
        refused = [
            await client.prompt(session, "Hi"),
            await client.ask("POST", "/api/sessions", CreateSession(prompt=(Text(text="Hi"),))),
            await client.ask("POST", f"/api/sessions/{session}/retry"),
        ]
        for reply in refused:
            problem = reply.read(Problem)
            assert (reply.status, problem.code) == (429, "rate_limited"), reply.body
            assert (problem.scope, problem.reason) == ("limit", "budget")
            assert reply.headers["retry-after"] == str(12 * 3600)
            assert "daily_cost" in problem.detail
        made = await client.ask("POST", "/api/sessions", CreateSession())
        assert made.read(SessionInfo).last_seq == 1  # costs nothing
        clock.advance(12 * 3600)
        assert (await client.prompt(session, "Hi")).status == 202
        await client.until(session, ran(3))


async def test_a_turn_ends_by_its_budget_when_the_day_has_no_more(tmp_path: Path) -> None:
    script = [say("One.", usage=DOLLAR), say("Two.", usage=DOLLAR)]
    provider = ScriptedProvider(*script, model=PRICED)
    async with open_test_app(provider, root=tmp_path, daily_cost=1.5) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "Hi")
        await client.until(session, ran(1))
        body = SendPrompt(content=(Text(text="Go on"),), limits=Limits(max_cost=9.0))
        await client.ask("POST", f"/api/sessions/{session}/prompts", body)
        await client.until(session, ran(2))
        log = [envelope.event for envelope in await client.log(session)]
    bounds = [event.limits.max_cost for event in log if isinstance(event, TurnStarted)]
    assert bounds == [1.5, 0.5]


@pytest.mark.rules("A4.8")
async def test_turns_side_by_side_begin_no_step_once_all_together_have_used_the_day_up(
    tmp_path: Path,
) -> None:
    waits, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def wait() -> str:
        """Wait until the other turn has ended."""
        waits.set()
        await go_on.wait()
        return "waited"

    provider = ScriptedProvider(call("wait"), call("look"), model=PRICED)  # each costs 1.50
    async with open_test_app(
        provider, root=tmp_path, tools=[wait, tool(look)], daily_cost=3.0
    ) as built:
        client = AppClient(built)
        slow, quick = await client.create(), await client.create()
        await client.prompt(slow, "Hi")
        async with asyncio.timeout(10):
            await waits.wait()
        await client.prompt(quick, "Hi")
        await client.until(quick, ran(1))
        go_on.set()
        await client.until(slow, ran(1))
        for session in (slow, quick):
            log = [envelope.event for envelope in await client.log(session)]
            (begin,) = (event for event in log if isinstance(event, TurnStarted))
            assert begin.limits.max_cost == (3.0 if session == slow else 1.5)
            assert isinstance(log[-1], TurnCompleted)
            assert (log[-1].stop_reason, log[-1].cost) == ("budget", 1.5)
        assert (await used(client)).today_cost == 3.0


async def test_a_prompt_that_waited_while_the_money_went_ends_at_once(
    tmp_path: Path, store: SqliteStore
) -> None:
    clock = FakeClock(NOON_MS, held=True)
    async with open_test_app(
        dollars(1), root=tmp_path, store=store, clock=clock, daily_cost=1.0
    ) as built:
        client = AppClient(built)
        session = await client.create()
        day = "2027-01-15"
        await client.prompt(session, "Hi", when="queue")
        await client.until(session, ran(1))
        assert await store.query(lambda c: usage.cost_of_day(c, "owner", day)) == 1.0
        live = next(one for one in built.sessions.live if one.log.session == session)
        live.inbox.take(
            Said(content=(Text(text="Again"),))
        )  # past the admission, as if it had waited
        await live.log.settle()
        live.runner.wake()
        await client.until(session, ran(2))
        ends = [e.event for e in await client.log(session) if isinstance(e.event, TurnCompleted)]
    assert [end.stop_reason for end in ends] == ["end_turn", "budget"]


@pytest.mark.rules("A4.48")
async def test_a_turn_that_a_crash_cut_is_counted_once(tmp_path: Path, store: SqliteStore) -> None:
    clock = FakeClock(NOON_MS, held=True)
    hangs = ScriptedProvider(call("look"), [asyncio.Event()], model=PRICED)
    async with open_test_app(
        hangs, root=tmp_path, store=store, clock=clock, tools=[tool(look)]
    ) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "Hi")
        await client.until(session, lambda view: bool(view.messages[1:]) and not view.open_calls)
        before = (await used(client)).total
    assert (before.requests, before.usage) == (1, Usage(input=10, output=5))
    async with open_test_app(
        dollars(1), root=tmp_path, store=store, clock=clock, tools=[tool(look)]
    ) as built:
        client = AppClient(built)
        await client.until(session, ran(1))
        (row,) = (await used(client)).rows
    assert (row.requests, row.usage) == (2, Usage(input=20, output=5))
    assert row.cost == pytest.approx(2.5)


@pytest.mark.rules("A4.48")
async def test_what_a_failed_try_used_before_a_crash_is_counted_once(
    tmp_path: Path, store: SqliteStore
) -> None:
    failed = StepFailed(error=ProviderUnavailable("Down."), usage=DOLLAR)
    hangs = ScriptedProvider(failed, [TextPiece(0, "I"), asyncio.Event()], model=PRICED)
    clock = FakeClock(NOON_MS, held=True)  # or the step that hangs would run into its time limit
    async with open_test_app(hangs, root=tmp_path, store=store, clock=clock) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "Hi")
        await client.until(session, lambda view: view.waiting is not None)
        clock.advance(60)
        await client.until(session, lambda view: bool(view.open_messages))
        (row,) = (await used(client)).rows
        assert (row.requests, row.usage, row.cost) == (1, DOLLAR, 1.0)
    async with open_test_app(dollars(1), root=tmp_path, store=store, clock=clock) as built:
        client = AppClient(built)
        await client.until(session, ran(1))
        (row,) = (await used(client)).rows
        (end,) = (e.event for e in await client.log(session) if isinstance(e.event, TurnCompleted))
    assert (row.requests, row.usage, row.cost) == (2, Usage(input=20), 2.0)
    assert (end.usage, end.cost) == (Usage(input=20), 2.0)


def look() -> str:
    """Look."""
    return "Nothing."

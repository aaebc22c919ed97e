"""A clock that is set back or forward by days while the server runs: nothing is undone by it."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from towline_agent import mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    CreateSession,
    CreateToken,
    NewToken,
    Problem,
    PromptAdmitted,
    SendPrompt,
    SessionInfo,
    SessionList,
    Text,
    TurnCompleted,
    ViewAnswer,
    block_text,
    parse_time,
)
from towline_server.build import BuiltApp
from towline_server.sessions.recovery import load
from towline_server.store import idempotency, tokens
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

DAY_MS = 24 * 3600 * 1000
JUMPS = [-3 * DAY_MS, 3 * DAY_MS]


class JumpingClock(FakeClock):
    """A clock of which only the wall time can be set."""

    def __init__(self) -> None:
        super().__init__(held=True)
        self.ahead_ms = 0
        """How far it was set forward in all."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as far as this clock knows."""
        return super().now_ms() + self.ahead_ms


@tool
async def change() -> str:
    """Change something."""
    return "changed"


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


@pytest.fixture
async def built(
    tmp_path: Path, clock: JumpingClock, store: SqliteStore
) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(
        ScriptedProvider(*["well"] * 20), root=tmp_path, clock=clock, store=store
    ) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


async def _list(client: AppClient, query: str = "") -> SessionList:
    return (await client.ask("GET", f"/api/sessions?{query}")).read(SessionList)


@pytest.mark.rules("C5.8", "C5.9")
@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_a_permission_waits_as_long_as_it_was_said_to_and_no_longer(
    tmp_path: Path, clock: JumpingClock, jump_ms: int
) -> None:
    provider = ScriptedProvider(call("change"), "then not")
    async with open_test_app(
        provider, root=tmp_path, clock=clock, tools=(change,), mode="ask"
    ) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "change it")
        await client.until(session, lambda view: bool(view.permissions))
        clock.ahead_ms = jump_ms
        clock.advance(100)
        view = (await client.ask("GET", f"/api/sessions/{session}/view")).read(ViewAnswer).view
        assert len(view.permissions) == 1
        clock.advance(30)
        view = await client.until(session, ran(1))
    assert [call.status for call in view.calls] == ["denied"]


@pytest.mark.rules("C5.8")
@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_a_request_that_is_offered_again_has_no_more_time_than_a_new_one(
    tmp_path: Path, clock: JumpingClock, store: SqliteStore, jump_ms: int
) -> None:
    open_app = partial(
        open_test_app, root=tmp_path, clock=clock, store=store, tools=(change,), mode="ask"
    )
    async with open_app(ScriptedProvider(call("change"))) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "change it")
        before = await client.until(session, lambda view: bool(view.permissions))
    clock.ahead_ms = jump_ms
    async with open_app(ScriptedProvider("done")) as built:
        client = AppClient(built)
        view = await client.until(
            session,
            lambda v: (
                bool(v.permissions)
                and v.permissions[0].expires_at != before.permissions[0].expires_at
            ),
        )
    left_ms = parse_time(view.permissions[0].expires_at) - clock.now_ms()
    assert 10_000 <= left_ms <= 120_000


@pytest.mark.rules("C2.5", "S25")
async def test_a_repeat_gets_the_same_answer_after_the_clock_was_set_back(
    client: AppClient, clock: JumpingClock, store: SqliteStore
) -> None:
    session = await client.create()
    first = await client.prompt(session, "hello", key="k")
    clock.ahead_ms = -3 * DAY_MS
    await store.write(partial(idempotency.prune, now_ms=clock.now_ms()))
    again = await client.prompt(session, "hello", key="k")
    assert (again.status, again.body) == (202, first.body)
    clock.ahead_ms = 0
    assert (await client.prompt(session, "hello", key="k")).body == first.body


async def test_answers_of_a_clock_that_was_ahead_are_forgotten_once_it_is_caught_up_with(
    client: AppClient, clock: JumpingClock, store: SqliteStore
) -> None:
    clock.ahead_ms = 3 * DAY_MS
    session = await client.create()
    first = await client.prompt(session, "hello", key="k")
    clock.ahead_ms = 0
    assert (await client.prompt(session, "hello", key="k")).body == first.body
    later_ms = clock.now_ms() + 5 * DAY_MS
    assert await store.write(partial(idempotency.prune, now_ms=later_ms)) == 1


@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_a_device_stays_in_and_its_token_does_not_end_early(
    built: BuiltApp, clock: JumpingClock, jump_ms: int
) -> None:
    code, _ = built.access.new_code()
    clock.ahead_ms = jump_ms
    token = (await built.access.claim(code, "phone")).token  # a code counts by no wall clock
    device = AppClient(built, token=token)
    assert (await device.ask("GET", "/api/sessions")).status == 200
    clock.ahead_ms = -jump_ms
    await built.access.accounts.prune()
    assert (await device.ask("GET", "/api/sessions")).status == 200


async def test_a_token_that_has_ended_by_the_clock_lets_nobody_in_and_none_comes_back_once_pruned(
    built: BuiltApp, client: AppClient, clock: JumpingClock, store: SqliteStore
) -> None:
    body = CreateToken(name="script", lifetime_s=DAY_MS // 1000)
    made = (await client.ask("POST", "/api/auth/tokens", body)).read(NewToken)
    script = AppClient(built, token=made.token)
    clock.ahead_ms = 3 * DAY_MS
    assert (await script.ask("GET", "/api/sessions")).status == 401
    assert len(await store.write(partial(tokens.prune, now_ms=clock.now_ms()))) == 1
    clock.ahead_ms = 0
    assert (await script.ask("GET", "/api/sessions")).status == 401


@pytest.mark.rules("C1.3", "C1.7")
@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_a_log_keeps_its_order_and_the_list_shows_each_session_once(
    client: AppClient, clock: JumpingClock, jump_ms: int
) -> None:
    sessions = [await client.create(CreateSession(title=f"number {n}")) for n in range(4)]
    await client.prompt(sessions[0], "before")
    await client.until(sessions[0], ran(1))
    clock.ahead_ms = jump_ms
    await client.prompt(sessions[0], "after")
    await client.prompt(sessions[1], "after")
    view = await client.until(sessions[0], ran(2))
    await client.until(sessions[1], ran(1))
    numbers = [envelope.seq for envelope in await client.log(sessions[0])]
    assert numbers == list(range(1, len(numbers) + 1))
    assert view.last_turn is not None
    assert view.last_turn.outcome == "completed"
    seen: list[SessionInfo] = []
    page = await _list(client, "limit=1")
    for _ in range(10):
        seen += page.sessions
        if page.next is None:
            break
        page = await _list(client, f"limit=1&after={page.next}")
    assert sorted(info.id for info in seen) == sorted(sessions)
    assert [info.updated for info in seen] == sorted((i.updated for i in seen), reverse=True)


@pytest.mark.rules("C1.7", "S26")
async def test_clients_whose_clocks_are_wrong_are_heard_in_the_order_in_which_they_came(
    client: AppClient, clock: JumpingClock
) -> None:
    session = await client.create()
    path = f"/api/sessions/{session}/prompts"
    dates = ["Mon, 01 Jan 2035 00:10:00 GMT", "Thu, 01 Jan 2015 23:50:00 GMT", "yesterday"]
    said = [f"number {number}" for number in range(6)]
    for number, text in enumerate(said):
        when = {"date": dates[number % 3], "idempotency-key": f"k{number}"}
        body = SendPrompt(content=(Text(text=text),))
        for _ in range(2):  # whoever is unsure sends it again
            assert (await client.ask("POST", path, body, headers=when)).status == 202
    await client.until(session, ran(6))
    log = await client.log(session)
    admitted = [block_text(e.event.content) for e in log if isinstance(e.event, PromptAdmitted)]
    assert admitted == said
    ends = [e for e in log if isinstance(e.event, TurnCompleted)]
    assert len({envelope.turn for envelope in ends}) == len(ends) == 6
    assert {parse_time(envelope.time) for envelope in log} == {clock.now_ms()}


@pytest.mark.rules("C2.10")
async def test_a_deleted_session_stays_deleted_whatever_the_clock_says(
    client: AppClient, clock: JumpingClock
) -> None:
    session = await client.create()
    assert (await client.ask("DELETE", f"/api/sessions/{session}")).status == 200
    for jump_ms, code in ((-3 * DAY_MS, "gone"), (3 * DAY_MS, "not_found"), (0, "gone")):
        clock.ahead_ms = jump_ms
        answer = await client.ask("GET", f"/api/sessions/{session}/view")
        assert answer.read(Problem).code == code


async def test_a_turn_that_began_in_the_future_has_used_no_time(
    tmp_path: Path, clock: JumpingClock, store: SqliteStore
) -> None:
    async with open_test_app(
        ScriptedProvider(call("change")),
        root=tmp_path,
        clock=clock,
        store=store,
        tools=(change,),
        mode="ask",
    ) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "change it")
        await client.until(session, lambda view: bool(view.permissions))
    start = load(await store.read(session, after=0, upto=100)).start(clock.now_ms() - 3 * DAY_MS)
    assert start is not None
    assert start.elapsed_s == 0

"""A session leaves memory when nobody uses it, and never under the hands of who changes it (C6)."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from sqlite3 import Connection
from typing import Any, TypeVar

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    CloseSession,
    File,
    FileInfo,
    Problem,
    Resend,
    SendPrompt,
    SessionId,
    Text,
)
from towline_server.build import BuiltApp
from towline_server.store import usage
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran

_T = TypeVar("_T")


class Gate:
    """Holds back whoever comes to it until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def pass_through(self) -> None:
        self.reached.set()
        await self.open.wait()


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


@pytest.fixture
async def built(store: SqliteStore, tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    provider = ScriptedProvider(*["well"] * 8)
    async with open_test_app(
        provider, root=tmp_path, store=store, daily_cost=1000.0, live_sessions=2
    ) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


def _hold_budget(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Let the next look at what the day has cost take until the gate is opened."""
    gate, query = Gate(), store.query

    async def held(work: Callable[[Connection], _T]) -> _T:
        if getattr(work, "func", None) is usage.cost_of_day:
            await gate.pass_through()
        return await query(work)

    monkeypatch.setattr(store, "query", held)
    return gate


async def _sessions(client: AppClient) -> tuple[SessionId, list[SessionId]]:
    """A session that has said something, and so many others that it is the one to leave."""
    session = await client.create()
    await client.prompt(session, "hello")
    await client.until(session, ran(1))
    return session, [await client.create() for _ in range(2)]


async def _make_it_leave(client: AppClient, others: list[SessionId]) -> None:
    for other in others:
        await client.view(other)


async def _prompt(client: AppClient, session: SessionId) -> Reply:
    return await client.prompt(session, "and more")


async def _retry(client: AppClient, session: SessionId) -> Reply:
    return await client.ask("POST", f"/api/sessions/{session}/retry")


async def _resend(client: AppClient, session: SessionId) -> Reply:
    turn = (await client.view(session)).last_turn
    assert turn is not None
    path = f"/api/sessions/{session}/turns/{turn.id}/resend"
    return await client.ask("POST", path, Resend(content=(Text(text="other"),)))


async def _compact(client: AppClient, session: SessionId) -> Reply:
    return await client.ask("POST", f"/api/sessions/{session}/compact")


@pytest.mark.rules("C6")
@pytest.mark.parametrize("ask", [_prompt, _retry, _resend, _compact])
async def test_a_session_stays_in_memory_while_its_user_s_budget_is_looked_up(
    built: BuiltApp,
    client: AppClient,
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[AppClient, SessionId], Coroutine[Any, Any, Reply]],
) -> None:
    session, others = await _sessions(client)
    with monkeypatch.context() as patched:
        gate = _hold_budget(store, patched)
        asked = asyncio.ensure_future(ask(client, session))
        async with asyncio.timeout(10):
            await gate.reached.wait()
        await _make_it_leave(client, others)
        gate.open.set()
        reply = await asked
    assert reply.status == 202
    await client.until(session, lambda view: view.turn is None and not view.queue)


@pytest.mark.rules("C6")
async def test_who_waits_to_begin_a_turn_takes_one_of_the_places(
    client: AppClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [await client.create() for _ in range(3)]
    with monkeypatch.context() as patched:
        gate = _hold_budget(store, patched)
        asked = [asyncio.ensure_future(client.prompt(session, "go")) for session in sessions]
        done, _ = await asyncio.wait(asked, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        refused = [task.result() for task in done]
        gate.open.set()
        replies = await asyncio.gather(*asked)
    assert [reply.read(Problem).reason for reply in refused] == ["session_limit"]
    assert sorted(reply.status for reply in replies) == [202, 202, 429]


@pytest.mark.rules("C1.10")
async def test_a_file_stays_for_the_prompt_that_names_it_when_its_last_session_goes_meanwhile(
    client: AppClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await client.create(), await client.create()
    file = (await client.ask("POST", "/api/files", b"a plan")).read(FileInfo).file
    named = SendPrompt(content=(File(name="plan.txt", media_type="text/plain", file=file),))
    await client.ask("POST", f"/api/sessions/{first}/prompts", named)
    await client.until(first, ran(1))
    with monkeypatch.context() as patched:
        gate = _hold_budget(store, patched)
        path = f"/api/sessions/{second}/prompts"
        asked = asyncio.ensure_future(client.ask("POST", path, named))
        async with asyncio.timeout(10):
            await gate.reached.wait()
        assert (await client.ask("DELETE", f"/api/sessions/{first}")).status == 200
        gate.open.set()
        assert (await asked).status == 202
    await client.until(second, ran(1))
    assert (await client.ask("GET", f"/api/files/{file}")).body == b"a plan"
    assert (await client.ask("DELETE", f"/api/sessions/{second}")).status == 200
    assert (await client.ask("GET", f"/api/files/{file}")).status == 404


@pytest.mark.rules("C6", "C2.10")
async def test_a_session_stays_in_memory_while_it_is_being_closed(
    built: BuiltApp, client: AppClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, others = await _sessions(client)
    found = await built.sessions.get("owner", session)
    gate, shut = Gate(), found.runner.shut

    async def slow(by: str, reason: str) -> None:
        await gate.pass_through()
        await shut(by, reason)

    monkeypatch.setattr(found.runner, "shut", slow)
    path = f"/api/sessions/{session}/close"
    closing = asyncio.ensure_future(client.ask("POST", path, CloseSession()))
    async with asyncio.timeout(10):
        await gate.reached.wait()
    await _make_it_leave(client, others)
    gate.open.set()
    assert (await closing).status == 200
    assert (await client.view(session)).closed is not None

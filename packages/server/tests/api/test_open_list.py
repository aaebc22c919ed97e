"""`GET /api/requests`: what waits for a person in all their sessions."""

from pathlib import Path

import pytest

from towline_agent import mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import RequestList, SessionId
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app

WINDOW_S = 100.0


@tool(name="change")
async def _change() -> str:
    """Change something."""
    return "changed"


async def _list(client: AppClient) -> list[tuple[str, str]]:
    rows = (await client.ask("GET", "/api/requests")).read(RequestList).requests
    return [(row.session, row.kind) for row in rows]


async def _begin(client: AppClient, text: str) -> str:
    """A session that waits; nobody stays attached."""
    session = await client.create()
    await client.prompt(session, text)
    await client.until(session, lambda view: bool(view.permissions or view.questions))
    return session


@pytest.mark.rules("C5.8", "C5.9")
async def test_what_waits_is_listed_by_its_end_and_what_has_none_comes_last(
    tmp_path: Path,
) -> None:
    clock = FakeClock(held=True)
    ask = call("ask_user", items=[{"prompt": "Which?"}])
    provider = ScriptedProvider(ask, call("change"), call("change"), "done", "done", "done")
    async with open_test_app(
        provider,
        root=tmp_path,
        tools=[_change],
        mode="ask",
        clock=clock,
        permission_window_s=WINDOW_S,
    ) as built:
        client = AppClient(built)
        assert await _list(client) == []
        question = await client.create()
        async with client.follow(question) as wire:
            await client.prompt(question, "ask")
            await wire.until(lambda: b"question_asked" in b"".join(wire.pieces))
            first = await _begin(client, "change one")
            clock.advance(10)
            second = await _begin(client, "change two")
            rows = (await client.ask("GET", "/api/requests")).read(RequestList).requests
            assert [(row.session, row.title, row.kind) for row in rows] == [
                (first, "change one", "permission"),
                (second, "change two", "permission"),
                (question, "ask", "question"),
            ]
            assert rows[0].permission is not None
            assert (rows[0].question, rows[0].call) == (None, None)
            assert rows[2].question is not None
            assert rows[2].question.expires_at is None
            await client.answer(first, rows[0].permission, "deny")
            assert await _list(client) == [(second, "permission"), (question, "question")]


@pytest.mark.rules("C5.8", "S20")
async def test_what_a_restart_left_open_is_listed_before_anybody_opens_its_session(
    tmp_path: Path,
) -> None:
    store = await open_memory_store(mint=mint_now)
    provider = ScriptedProvider(call("change"))
    async with open_test_app(
        provider, root=tmp_path, tools=[_change], mode="ask", store=store
    ) as built:
        session = await _begin(AppClient(built), "change")
    async with open_test_app(
        ScriptedProvider(), root=tmp_path, tools=[_change], mode="ask", store=store
    ) as built:
        client = AppClient(built)
        assert await _list(client) == [(session, "permission")]
    await store.close()


async def test_a_log_that_cannot_be_read_hides_no_other_one(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    row = SessionRow(
        id=SessionId("ses_broken"),
        user="owner",
        agent="a",
        model="a/b",
        mode="ask",
        created_ms=0,
        updated_ms=0,
        pending=1,
    )
    event = StoredRow(1, None, 0, b"no event", None)
    await append_and_wait(store, Append(session=row.id, first_seq=1, rows=(event,), summary=row))
    async with open_test_app(
        ScriptedProvider(call("change")), root=tmp_path, tools=[_change], mode="ask", store=store
    ) as built:
        client = AppClient(built)
        session = await _begin(client, "change")
        assert await _list(client) == [(session, "permission")]
    await store.close()

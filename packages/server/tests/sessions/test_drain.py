"""A clean stop of the server loses no more than a crash."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import AnswerPermission
from towline_server.sessions.inbox import MAX_INBOX
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran


@tool(effect="write")
async def change() -> str:
    """Change something."""
    return "changed"


@pytest.mark.rules("C5.8", "C5.14", "S20")
async def test_a_turn_that_waits_for_a_person_does_not_hold_the_stop_up_and_asks_again(
    tmp_path: Path,
) -> None:
    store = await open_memory_store(mint=mint_now)
    provider = ScriptedProvider(call("change"), "done")
    async with open_test_app(
        provider, root=tmp_path, tools=[change], mode="ask", store=store
    ) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        view = await client.until(session, lambda view: bool(view.permissions))
        asked = view.permissions[0]
        built.streams.drain()
        async with asyncio.timeout(5):  # far below the grace
            await built.sessions.drain(60)
    async with open_test_app(
        provider, root=tmp_path, tools=[change], mode="ask", store=store
    ) as again:
        client = AppClient(again)
        view = await client.until(session, lambda view: bool(view.permissions))
        assert (view.permissions[0].permission, view.permissions[0].digest) == (
            asked.permission,
            asked.digest,
        )
        body = AnswerPermission(option="allow_once", digest=asked.digest)
        path = f"/api/sessions/{session}/permissions/{asked.permission}"
        assert (await client.ask("POST", path, body)).status == 200
        view = await client.until(session, ran(1))
        assert view.last_turn is not None
        assert view.last_turn.outcome == "completed"
    await store.close()


@pytest.mark.rules("C2.11")
async def test_a_full_inbox_that_a_stop_holds_gets_room_again(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([gate], *["well"] * (MAX_INBOX + 2))
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: view.turn is not None)
        for number in range(MAX_INBOX):
            assert (await client.prompt(session, f"more {number}")).status == 202
        await client.interrupt(session)
        await client.until(session, lambda view: view.turn is None)
        assert (await client.prompt(session, "one too many")).status == 429
        view = await client.until(session, ran(MAX_INBOX + 1))
        assert not view.queue
        assert (await client.prompt(session, "now there is room")).status == 202

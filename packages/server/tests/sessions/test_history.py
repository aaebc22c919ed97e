"""Older messages, page by page."""

from pathlib import Path

import pytest

from towline_agent import tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import History, MessageView, Resend, SessionId, Text, ToolCall, block_text
from towline_server.testing import AppClient, open_test_app, ran


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


async def _page(client: AppClient, session: str, query: str) -> History:
    reply = await client.ask("GET", f"/api/sessions/{session}/history?{query}")
    assert reply.status == 200, reply.body
    return reply.read(History)


async def _talk(client: AppClient, turns: int) -> SessionId:
    session = await client.create()
    for number in range(turns):
        await client.prompt(session, f"prompt {number}")
        await client.until(session, ran(number + 1))
    return session


@pytest.mark.rules("C4.3")
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
async def test_the_pages_hold_every_message_once_and_each_call_with_its_result(
    tmp_path: Path, limit: int
) -> None:
    turns = 12
    provider = ScriptedProvider(*[part for _ in range(turns) for part in ([call("look")], "done")])
    async with open_test_app(provider, root=tmp_path, tools=[look]) as built:
        client = AppClient(built)
        session = await _talk(client, turns)
        view = await client.view(session)
        found: list[MessageView] = []
        calls, query = 0, f"limit={limit}"
        while True:
            page = await _page(client, session, query)
            found = [*page.messages, *found]
            calls += len(page.calls)
            asked = {
                block.id
                for message in page.messages
                for block in message.content
                if isinstance(block, ToolCall)
            }
            assert {card.call for card in page.calls} == asked
            assert all(card.status == "completed" for card in page.calls)
            if page.next is None:
                break
            query = f"limit={limit}&before={page.next}"
    assert found == list(view.messages)
    assert calls == turns


@pytest.mark.rules("C4.3")
async def test_what_was_undone_later_is_marked_on_every_page(tmp_path: Path) -> None:
    provider = ScriptedProvider(*["done"] * 6)
    async with open_test_app(provider, root=tmp_path, tools=[look]) as built:
        client = AppClient(built)
        session = await _talk(client, 5)
        view = await client.view(session)
        turns = [entry.turn for entry in view.messages if entry.role == "user"]
        body = Resend(content=(Text(text="changed"),))
        reply = await client.ask("POST", f"/api/sessions/{session}/turns/{turns[1]}/resend", body)
        assert reply.status == 202, reply.body
        await client.until(session, ran(6))
        view = await client.view(session)
        shown = {entry.seq: entry.undone for entry in view.messages}
        assert sum(shown.values()) == 8
        found: dict[int, bool] = {}
        query = "limit=2"
        while True:
            page = await _page(client, session, query)
            found |= {entry.seq: entry.undone for entry in page.messages}
            if page.next is None:
                break
            query = f"limit=2&before={page.next}"
        assert found == shown


async def test_a_prompt_that_waited_long_before_its_turn_is_found(tmp_path: Path) -> None:
    provider = ScriptedProvider(*["word"] * 40)
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        for number in range(30):  # all are admitted before most of them run
            await client.prompt(session, f"prompt {number}")
        view = await client.until(session, ran(30))
        page = await _page(client, session, "limit=4")
        assert [block_text(m.content) for m in page.messages] == [
            block_text(m.content) for m in view.messages[-len(page.messages) :]
        ]
        assert page.next is not None


async def test_a_session_without_messages_has_an_empty_history(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        assert await _page(client, session, "limit=5") == History()
        bad = await client.ask("GET", f"/api/sessions/{session}/history?before=0")
        assert bad.status == 400

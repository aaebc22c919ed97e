"""The life of sessions, by the Python client over real HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from towline_agent.testing import ScriptedProvider
from towline_client import Client, CommandRejected
from towline_protocol import CreateSession, UpdateSession
from towline_server.testing import open_test_server


@pytest.fixture
async def client(tmp_path: Path) -> AsyncGenerator[Client]:
    async with (
        open_test_server(ScriptedProvider("well"), root=tmp_path) as built,
        Client(built.url, built.token) as client,
        asyncio.timeout(30),
    ):
        yield client


@pytest.mark.rules("C2.6")
async def test_a_change_is_held_against_what_was_read(client: Client) -> None:
    session = (await client.create_session(CreateSession(title="One"))).id
    one = await client.life.read(session)
    two = await client.life.update(session, UpdateSession(title="Two"), if_match=one.tag)
    assert (two.info.title, two.tag != one.tag) == ("Two", True)
    with pytest.raises(CommandRejected) as caught:
        await client.life.update(session, UpdateSession(title="Three"), if_match=one.tag)
    assert caught.value.code == "precondition_failed"
    assert await client.life.read(session) == two


async def test_sessions_are_sorted_found_and_marked(client: Client) -> None:
    session = await client.open(new=CreateSession(title="One", labels=("home",)))
    assert await session.ask("Where is the bridge?") == "well"
    other = (await client.create_session(CreateSession(title="Other"))).id
    await client.life.update(other, UpdateSession(archived=True))
    for search, label in (("BRIDGE", None), (None, "home"), (None, None)):
        (row,) = (await client.list_sessions(search=search, label=label)).sessions
        assert (row.title, row.unread) == ("One", True)
    (row,) = (await client.list_sessions(archived=True)).sessions
    assert row.id == other
    assert (await client.list_sessions(needs=True)).sessions == ()
    last = session.view.seq
    assert await client.life.mark_read(session.id, last) == last
    assert not (await client.get_session(session.id)).unread


@pytest.mark.rules("C2.10")
async def test_a_line_ends_when_its_session_is_closed_and_a_deleted_one_is_gone(
    client: Client,
) -> None:
    session = await client.open()
    row = await client.life.close(session.id, reason="done")
    assert row.closed
    async for connection in session.connection:
        if connection.phase == "closed":
            break
    assert session.view.closed == "done"
    assert (await client.life.close(session.id)).closed
    await client.life.delete(session.id)
    for again in (client.life.read(session.id), client.life.delete(session.id)):
        with pytest.raises(CommandRejected) as caught:
            await again
        assert caught.value.code == "gone"

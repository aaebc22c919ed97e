"""The feed of the session list against a scripted server."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import pytest

from towline_client import Client, CommandRejected, ConnectionLost, FeedFrame, LinkPolicy
from towline_client.testing import ScriptedServer, ScriptedTransport, refuse
from towline_protocol import CreateSession, SessionChanged, SessionRemoved, SessionRows


@asynccontextmanager
async def _connect(
    server: ScriptedServer, policy: LinkPolicy | None = None
) -> AsyncGenerator[Client]:
    transport = ScriptedTransport(server)
    async with (
        asyncio.timeout(10),
        server,
        Client("", "token", transport=transport, policy=policy) as client,
    ):
        yield client


async def _read(feed: AsyncGenerator[FeedFrame, None], count: int) -> list[FeedFrame]:
    return [await anext(feed) for _ in range(count)]


@pytest.mark.rules("C2.12")
async def test_the_feed_begins_with_the_rows_and_goes_on_with_what_changes() -> None:
    server = ScriptedServer()
    old = server.add_session(CreateSession(title="Old"))
    async with _connect(server) as client, aclosing(client.feed(reader="list")) as feed:
        assert await _read(feed, 1) == [SessionRows(sessions=(old.info,))]
        assert server.calls[-1].query == {"reader": "list"}
        new = await client.create_session(CreateSession(title="New"))
        assert await _read(feed, 1) == [SessionChanged(session=new)]
        await client.life.delete(new.id)
        frames = await _read(feed, 2)
        assert isinstance(frames[0], SessionChanged)
        assert frames[0].session.closed
        assert frames[1] == SessionRemoved(session=new.id)
    assert server.feed.readers == []


@pytest.mark.rules("C2.12")
async def test_a_turn_is_told_by_what_a_list_shows_of_it_and_not_by_each_event() -> None:
    server = ScriptedServer()
    async with _connect(server) as client, aclosing(client.feed()) as feed:
        await anext(feed)
        session = await client.open()
        await session.ask("Hello")
        for _ in range(2):
            await client.life.mark_read(session.id, session.view.seq)
        await client.life.delete(session.id)
        told: list[tuple[int, bool, bool, bool]] = []
        async for frame in feed:
            if isinstance(frame, SessionRemoved):
                break
            assert isinstance(frame, SessionChanged)
            row = frame.session
            told.append((row.queued, row.turn is not None, row.unread, row.closed))
    assert told == [
        (0, False, False, False),
        (1, False, False, False),
        (0, False, True, False),
        (0, True, True, False),
        (0, False, True, False),
        (0, False, False, False),
        (0, False, True, True),
    ]


async def test_a_feed_that_the_server_ends_says_when_to_come_back() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        async with aclosing(client.feed()) as feed:
            await anext(feed)
            server.feed.reset(2500)
            with pytest.raises(ConnectionLost) as lost:
                await anext(feed)
            assert lost.value.retry_after_s == 2.5
        async with aclosing(client.feed()) as feed:
            assert isinstance(await anext(feed), SessionRows), "a new one begins anew"


async def test_a_feed_without_a_byte_for_long_counts_as_cut() -> None:
    server = ScriptedServer()
    policy = LinkPolicy(silence_ms=1)
    async with _connect(server, policy) as client, aclosing(client.feed()) as feed:
        await anext(feed)
        with pytest.raises(ConnectionLost, match="Nothing came for"):
            await anext(feed)
    assert server.feed.readers == []


async def test_a_feed_whose_bytes_make_no_frames_is_not_read_on() -> None:
    server = ScriptedServer()
    async with _connect(server) as client, aclosing(client.feed()) as feed:
        await anext(feed)
        server.feed.send(b"event: session\ndata: {}\n\n: a comment\n\nevent: news\ndata: 1\n\n")
        new = server.add_session()
        assert await _read(feed, 1) == [SessionChanged(session=new.info)]
        server.feed.send(b"data: " + b"x" * 2**25)
        with pytest.raises(ConnectionLost, match="cannot be read"):
            await anext(feed)


async def test_a_refusal_comes_out_of_the_feed() -> None:
    server = ScriptedServer()
    server.replies["follow_all"] = deque([refuse("capacity_exceeded", "Too many readers.")])
    async with _connect(server) as client, aclosing(client.feed()) as feed:
        with pytest.raises(CommandRejected, match="Too many readers"):
            await anext(feed)

"""The feed of the session list against a scripted server."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from towline_client import (
    Client,
    CommandRejected,
    ContractUnavailable,
    FeedFrame,
    LinkPolicy,
    Reply,
    Unauthorized,
)
from towline_client.testing import ManualClock, ScriptedServer, ScriptedTransport, connect, refuse
from towline_protocol import CreateSession, SessionChanged, SessionRemoved, SessionRows


async def _read(feed: AsyncGenerator[FeedFrame, None], count: int) -> list[FeedFrame]:
    return [await anext(feed) for _ in range(count)]


@pytest.mark.rules("C2.12")
async def test_the_feed_begins_with_the_rows_and_goes_on_with_what_changes() -> None:
    server = ScriptedServer()
    old = server.add_session(CreateSession(title="Old"))
    async with connect(server) as client, aclosing(client.feed(reader="list")) as feed:
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
    async with connect(server) as client, aclosing(client.feed()) as feed:
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


@pytest.mark.rules("C2.12", "C3.6")
async def test_a_feed_that_the_server_ends_comes_back_when_it_says_and_begins_anew() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    async with connect(server, clock=clock) as client, aclosing(client.feed()) as feed:
        assert await anext(feed) == SessionRows(sessions=())
        server.feed.reset(2500)
        again = asyncio.create_task(anext(feed))
        await _settle()
        assert _streams(server) == 1
        new = server.add_session()
        clock.advance(2499)
        await _settle()
        assert _streams(server) == 1
        clock.advance(1)
        assert await again == SessionRows(sessions=(new.info,))


@pytest.mark.rules("C4.5")
async def test_a_feed_that_is_cut_again_and_again_backs_off_and_never_ends() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    policy = LinkPolicy(first_ms=0)
    async with (
        connect(server, policy=policy, clock=clock) as client,
        aclosing(client.feed()) as feed,
    ):
        await anext(feed)
        server.cuts.extend([0] * 6)
        server.feed.hang_up()
        again = asyncio.create_task(anext(feed))
        for _ in range(6):
            await _settle()
            clock.advance(1)  # the wait that the scripted server asks for
        assert isinstance(await again, SessionRows)
        assert _streams(server) == 8


@pytest.mark.rules("C4.5")
async def test_a_feed_without_a_byte_for_long_is_taken_up_again() -> None:
    server = ScriptedServer()
    policy = LinkPolicy(silence_ms=1)
    async with connect(server, policy=policy) as client, aclosing(client.feed()) as feed:
        await anext(feed)
        assert isinstance(await anext(feed), SessionRows)
    assert _streams(server) == 2
    assert server.feed.readers == []


async def test_a_feed_whose_bytes_make_no_frames_is_read_anew() -> None:
    server = ScriptedServer()
    async with connect(server) as client, aclosing(client.feed()) as feed:
        await anext(feed)
        server.feed.send(b"event: session\ndata: {}\n\n: a comment\n\nevent: news\ndata: 1\n\n")
        new = server.add_session()
        assert await _read(feed, 1) == [SessionChanged(session=new.info)]
        server.feed.send(b"data: " + b"x" * 2**25)
        assert await _read(feed, 1) == [SessionRows(sessions=(new.info,))]


async def test_a_feed_that_cannot_begin_says_so_at_its_second_failure() -> None:
    server = ScriptedServer()
    busy = refuse("capacity_exceeded", "Too many readers.")
    server.replies["follow_all"] = deque([busy, busy])
    policy = LinkPolicy(first_ms=0)
    async with connect(server, policy=policy) as client, aclosing(client.feed()) as feed:
        with pytest.raises(CommandRejected, match="Too many readers"):
            await anext(feed)
        assert _streams(server) == 2


@pytest.mark.rules("C4.6")
async def test_a_feed_asks_for_its_credential_twice_more_then_gives_up() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    asked: list[int] = []

    async def credential() -> str:
        asked.append(clock.now_ms())
        return "token"

    transport = ScriptedTransport(server)
    client = Client("", credential, transport=transport, clock=clock)
    async with asyncio.timeout(10), server, client, aclosing(client.feed()) as feed:
        await anext(feed)
        server.replies["follow_all"] = deque([refuse("unauthorized", "It was revoked.")] * 3)
        server.feed.hang_up()
        ending = asyncio.create_task(anext(feed))
        await _settle()
        clock.advance(1000)
        with pytest.raises(Unauthorized, match="revoked"):
            await ending
    assert asked == [0, 0, 0, 1000]


@pytest.mark.rules("C2.1")
async def test_a_feed_ends_where_no_towline_server_answers() -> None:
    server = ScriptedServer()
    async with connect(server) as client, aclosing(client.feed()) as feed:
        await anext(feed)
        page = Reply(status=200, headers={"content-type": "text/html"}, body=b"<html>")
        server.replies["follow_all"] = deque([page])
        server.feed.hang_up()
        with pytest.raises(ContractUnavailable):
            await anext(feed)


def _streams(server: ScriptedServer) -> int:
    return sum(call.operation.name == "follow_all" for call in server.calls)


async def _settle() -> None:
    """Let everybody go on who can."""
    for _ in range(30):
        await asyncio.sleep(0)

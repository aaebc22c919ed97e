"""The flows: newest value, every item."""

import asyncio

import pytest

from towline_client.clock import LoopClock
from towline_client.flow import Feed, Latest
from towline_client.testing import ManualClock


async def test_a_reader_of_the_latest_gets_the_value_as_it_stands_then_the_newest() -> None:
    latest = Latest(1)
    reader = aiter(latest)
    assert await anext(reader) == 1
    latest.set(2)
    latest.set(3)
    assert await anext(reader) == 3
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    latest.set(4)
    assert await waiting == 4


async def test_the_last_value_comes_before_the_end_and_the_error() -> None:
    latest = Latest(1)
    latest.set(2)
    latest.end()
    assert [value async for value in latest] == [2]
    latest.reopen()
    latest.end(KeyError("why"))
    reader = aiter(aiter(latest))
    assert await anext(reader) == 2
    with pytest.raises(KeyError):
        await anext(reader)


async def test_a_feed_gives_every_item_then_the_end() -> None:
    feed: Feed[int] = Feed(10, lambda: -1)
    waiting = asyncio.ensure_future(anext(feed))
    await asyncio.sleep(0)
    feed.put(1)
    feed.put(2)
    feed.end()
    assert await waiting == 1
    assert [item async for item in feed] == [2]
    feed.reopen()
    feed.put(3)
    feed.end(KeyError("why"))
    assert await anext(feed) == 3
    with pytest.raises(KeyError):
        await anext(feed)


async def test_a_full_feed_holds_one_item_that_stands_for_all() -> None:
    feed: Feed[int] = Feed(3, lambda: -1)
    for item in range(5):
        feed.put(item)
    feed.end()
    assert [item async for item in feed] == [-1, 4]


async def test_the_clocks_return_at_the_event_or_at_the_time() -> None:
    async with asyncio.timeout(5):
        happened = asyncio.Event()
        for clock in (LoopClock(), ManualClock()):
            await clock.wait(asyncio.Event(), clock.now_ms())
            happened.set()
            await clock.wait(happened, None)
            await clock.wait(happened, clock.now_ms() + 10_000)
        manual = ManualClock()
        waiting = asyncio.ensure_future(manual.wait(asyncio.Event(), 10))
        await asyncio.sleep(0)
        manual.advance(9)
        await asyncio.sleep(0)
        assert not waiting.done()
        manual.advance(1)
        await waiting

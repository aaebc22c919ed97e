"""Fan-out: the same bytes to all, and nobody waits for the slowest."""

import asyncio
import itertools

import pytest

from towline_protocol import Reset, decode_frame
from towline_protocol.sse import SseDecoder
from towline_server.errors import TooManyReaders
from towline_server.stream.hub import (
    CHUNK_BYTES,
    MAX_FRAMES,
    MAX_QUEUE_BYTES,
    MAX_READERS,
    Hub,
    Subscriber,
)


def _join(hub: Hub, reader: str | None = None) -> Subscriber:
    subscriber = hub.join(reader)
    subscriber.start()
    return subscriber


async def test_every_reader_gets_every_frame_in_order() -> None:
    hub = Hub()
    readers = [_join(hub) for _ in range(3)]
    for number in range(5):
        hub.publish(b"%d " % number)
    assert [reader.take() for reader in readers] == [b"0 1 2 3 4 "] * 3
    assert readers[0].take() == b""


async def test_frames_count_from_the_start_and_not_from_the_joining() -> None:
    hub = Hub()
    reader = hub.join()
    hub.publish(b"before")
    reader.start()
    reader.start()
    hub.publish(b"after")
    assert reader.take() == b"after"


@pytest.mark.rules("C3.8")
async def test_a_take_joins_up_to_its_bound_and_cuts_only_what_is_larger_by_itself() -> None:
    hub = Hub()
    reader = _join(hub)
    small = b"s" * (CHUNK_BYTES // 2 - 1)
    large = bytes(itertools.islice(itertools.cycle(range(251)), 3 * CHUNK_BYTES + 5))
    for frame in (small, small, small, large, small):
        hub.publish(frame)
    pieces: list[bytes] = []
    while piece := reader.take():
        pieces.append(piece)
    assert b"".join(pieces) == small * 3 + large + small
    assert max(map(len, pieces)) <= CHUNK_BYTES
    assert pieces[0] == small * 2


@pytest.mark.rules("C3.8")
@pytest.mark.parametrize(
    ("frame", "fits"),
    [(b"x", MAX_FRAMES), (b"x" * (CHUNK_BYTES // 2), 2 * MAX_QUEUE_BYTES // CHUNK_BYTES)],
)
async def test_a_reader_that_does_not_keep_up_is_cut_alone(frame: bytes, fits: int) -> None:
    hub = Hub()
    slow, quick = _join(hub), _join(hub)
    for _ in range(fits):
        hub.publish(frame)
        assert quick.take() == frame
    assert not slow.ended
    hub.publish(frame)
    assert (slow.cut, slow.ended, slow.take()) == ("overflow", True, b"")
    assert (quick.cut, quick.ended, quick.take()) == (None, False, frame)
    assert hub.readers == 1
    hub.publish(frame)
    assert (slow.take(), quick.take()) == (b"", frame)


@pytest.mark.rules("C3.9")
async def test_a_reader_that_comes_again_replaces_its_old_connection() -> None:
    hub = Hub()
    old, other = _join(hub, "phone"), _join(hub, "desk")
    new = _join(hub, "phone")
    assert (old.cut, old.ended) == ("replaced", True)
    old.leave()  # when its connection ends at last, the new one stays
    hub.publish(b"x")
    assert (new.take(), other.take(), hub.readers) == (b"x", b"x", 2)


@pytest.mark.rules("C6")
async def test_a_session_has_so_many_readers_and_no_more() -> None:
    hub = Hub()
    readers = [_join(hub, f"reader {n}") for n in range(MAX_READERS)]
    with pytest.raises(TooManyReaders, match="close one of them") as caught:
        hub.join()
    assert caught.value.retry_after_s is not None
    hub.join("reader 3")  # takes its own place again
    readers[0].leave()
    hub.join()
    assert hub.readers == MAX_READERS


async def test_a_reader_sleeps_until_there_is_something() -> None:
    hub = Hub()
    reader = _join(hub)
    waiting = asyncio.create_task(reader.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    hub.publish(b"x")
    async with asyncio.timeout(5):
        assert await waiting
        assert await reader.wait()  # it was not taken yet
    reader.take()
    waiting = asyncio.create_task(reader.wait())
    await asyncio.sleep(0)
    reader.ring()
    async with asyncio.timeout(5):
        assert not await waiting


async def test_a_hub_that_closes_lets_its_readers_finish() -> None:
    hub = Hub()
    live, behind = _join(hub), hub.join()
    hub.publish(b"last")
    hub.close()
    assert (live.take(), live.ended, live.cut) == (b"last", True, None)
    behind.start()
    assert (behind.take(), behind.ended, behind.cut) == (b"", True, None)
    late = hub.join()
    assert (late.ended, late.cut, hub.readers) == (True, None, 0)


@pytest.mark.rules("C3.6")
async def test_a_drain_tells_each_reader_when_to_come_back() -> None:
    hub = Hub()
    readers = [_join(hub), hub.join()]
    hub.publish(b"data: {}\n\n")
    delays = itertools.count(1000)
    hub.drain(lambda: next(delays))
    last = [SseDecoder().feed(reader.take())[-1] for reader in readers]
    assert [decode_frame(event.event, event.data) for event in last] == [
        Reset(retry_ms=1000),
        Reset(retry_ms=1001),
    ]
    assert all(reader.ended for reader in readers)


async def test_leaving_twice_or_after_the_end_changes_nothing() -> None:
    hub = Hub()
    reader = _join(hub)
    hub.close()
    reader.leave()
    assert reader.cut is None
    gone = Hub().join()
    gone.leave()
    gone.leave("overflow")
    assert gone.cut == "gone"


async def test_a_reader_that_is_cut_while_others_are_served_skips_nobody() -> None:
    hub = Hub()
    readers = [_join(hub) for _ in range(4)]
    for _ in range(MAX_FRAMES):
        hub.publish(b"x")
        for reader in readers[1::2]:
            reader.take()
    hub.publish(b"y")
    assert [reader.cut for reader in readers] == ["overflow", None, "overflow", None]
    assert [reader.take() for reader in readers[1::2]] == [b"y", b"y"]

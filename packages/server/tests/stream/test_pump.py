"""What goes onto the wire, when it ends, and that nothing is left of it."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from towline_protocol import SseDecoder
from towline_server.store.sqlite_store import open_store
from towline_server.stream.connection import TRANSPORT_KEY
from towline_server.stream.follow import HEARTBEAT
from towline_server.stream.hub import CHUNK_BYTES, MAX_FRAMES, Hub
from towline_server.stream.pump import EventStream
from towline_server.stream.testing import SESSION, Line, Wire, connect_wire


async def _nothing() -> AsyncGenerator[bytes, None]:
    """A reader that has nothing to catch up with."""
    for piece in ():
        yield piece


def _live(hub: Hub, *, heartbeat_s: float = 15.0, stall_s: float = 10.0) -> EventStream:
    subscriber = hub.join()
    subscriber.start()
    return EventStream(subscriber, _nothing(), heartbeat_s=heartbeat_s, stall_s=stall_s)


@pytest.mark.rules("C3.1")
async def test_the_head_is_that_of_an_event_stream(line: Line) -> None:
    wire = Wire()
    async with connect_wire(line.stream(), wire):
        await wire.take(1)
    assert wire.head["status"] == 200
    assert dict(wire.head["headers"]) == {
        b"content-type": b"text/event-stream",
        b"cache-control": b"no-store, no-transform",
        b"x-accel-buffering": b"no",
        b"towline-contract": b"1",
        b"connection": b"close",
    }


@pytest.mark.rules("S04", "C3.2", "C3.7")
async def test_a_reader_that_is_up_to_date_gets_bytes_at_once_and_then_heartbeats(
    line: Line,
) -> None:
    await line.add(3)
    wire = Wire()
    async with connect_wire(line.stream("3", heartbeat_s=0.02), wire):
        await wire.until(lambda: len(wire.pieces) >= 4)
    assert SseDecoder().feed(wire.pieces[0])[0].event == "hello"
    assert wire.pieces[1:4] == [b": alive\n\n"] * 3
    assert wire.ids == []


@pytest.mark.rules("C3.3")
async def test_a_reader_gets_the_replay_and_then_what_happens(line: Line) -> None:
    await line.add(3)
    wire = Wire()
    async with connect_wire(line.stream("1"), wire):
        await wire.take(3)
        await line.add(2)
        await wire.take(5)
    assert wire.ids == [2, 3, 4, 5]
    assert line.hub.readers == 0


@pytest.mark.rules("C3.8")
async def test_what_waits_goes_out_in_one_piece() -> None:
    hub, wire = Hub(), Wire()
    async with connect_wire(_live(hub), wire):
        await asyncio.sleep(0)
        for number in range(100):
            hub.publish(b"data: %d\n\n" % number)
        await wire.take(100)
        for _ in range(3):
            hub.publish(b"data: %s\n\n" % (b"x" * (CHUNK_BYTES // 2)))
        await wire.take(103)
    assert [len(SseDecoder().feed(piece)) for piece in wire.pieces[:1]] == [100]
    assert max(map(len, wire.pieces)) <= CHUNK_BYTES


@pytest.mark.rules("C3.8")
async def test_a_long_backlog_lets_others_have_their_turn_after_every_piece() -> None:
    hub = Hub()
    turns: list[int] = []
    turn = 0

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    class Noting(Wire):
        async def send(self, message: MutableMapping[str, Any]) -> None:
            turns.append(turn)
            await super().send(message)

    wire = Noting()
    ticker = asyncio.create_task(others())
    stream = _live(hub)
    for _ in range(20):
        hub.publish(b"data: %s\n\n" % (b"x" * CHUNK_BYTES))
    async with connect_wire(stream, wire):
        await wire.take(20)
    ticker.cancel()
    await asyncio.wait({ticker})
    body = turns[1:-1]
    assert len(body) >= 20
    assert all(later > earlier for earlier, later in itertools.pairwise(body))


@pytest.mark.rules("S05", "C3.7")
async def test_a_finished_turn_is_replayed_after_a_restart_and_the_stream_stays_or_ends(
    tmp_path: Path,
) -> None:
    store = await open_store(tmp_path, mint=lambda prefix: prefix)
    await Line(store).add(300)
    await store.close()
    store = await open_store(tmp_path, mint=lambda prefix: prefix)
    row = await store.session(SESSION)
    assert row is not None
    line = Line(store)
    line.last_seq = line.committed = row.last_seq

    kept = Wire()
    async with connect_wire(line.stream("290", heartbeat_s=0.02), kept):
        await kept.until(lambda: kept.pieces[-2:] == [HEARTBEAT, HEARTBEAT])
        assert kept.ids == list(range(291, 301))
        assert not kept.ended
    line.closed = True
    ends = Wire()
    async with connect_wire(line.stream("290"), ends):
        await ends.until(lambda: ends.ended)
    assert ends.ids == list(range(291, 301))
    await store.close()


@pytest.mark.rules("C3.7")
async def test_the_stream_of_a_closed_session_ends_after_its_replay(line: Line) -> None:
    await line.add(3)
    line.closed = True
    wire = Wire()
    async with connect_wire(line.stream("1"), wire):
        await wire.until(lambda: wire.ended)
    assert wire.ids == [2, 3]


@pytest.mark.rules("C3.7")
async def test_the_stream_of_a_session_that_closes_ends_after_its_last_event(line: Line) -> None:
    wire = Wire()
    async with connect_wire(line.stream(), wire):
        await wire.take(1)
        await line.add(2)
        line.hub.close()
        await wire.until(lambda: wire.ended)
    assert wire.ids == [1, 2]


@pytest.mark.rules("C3.6")
async def test_a_drained_stream_says_when_to_come_back_and_ends(line: Line) -> None:
    wire = Wire()
    async with connect_wire(line.stream(), wire):
        await wire.take(1)
        line.hub.drain(lambda: 1500)
        await wire.until(lambda: wire.ended)
    assert (wire.events[-1].event, wire.events[-1].data) == ("reset", b'{"retry_ms":1500}')


@pytest.mark.rules("C3.9")
async def test_a_new_connection_of_a_reader_ends_the_old_one(line: Line) -> None:
    old, new = Wire(), Wire()
    async with connect_wire(line.stream(reader="phone"), old):
        await old.take(1)
        async with connect_wire(line.stream(reader="phone"), new):
            await old.until(lambda: old.ended)
            await line.add()
            await new.take(2)
    assert (old.ids, new.ids) == ([], [1])


@pytest.mark.rules("C3.8")
async def test_a_reader_that_takes_nothing_is_cut_after_a_while_and_no_other(line: Line) -> None:
    stuck, well = Wire(room=500), Wire()
    async with connect_wire(line.stream(), well):
        async with connect_wire(line.stream(stall_s=0.02), stuck) as serving:
            for _ in range(30):
                line.delta("a piece of text ")
            async with asyncio.timeout(5):
                await asyncio.wait({serving})
            assert not stuck.ended
            assert line.hub.readers == 1
        line.delta("more")
        await well.until(lambda: b"more" in well.pieces[-1])


@pytest.mark.rules("C3.8")
async def test_a_reader_that_overflows_while_it_takes_nothing_is_cut(line: Line) -> None:
    stuck, well = Wire(room=500), Wire()
    async with connect_wire(line.stream(), well):
        await well.take(1)
        async with connect_wire(line.stream(heartbeat_s=0.02), stuck) as serving:
            await stuck.take(1)
            line.delta("x" * 500)
            for _ in range(MAX_FRAMES + 10):
                line.delta("x")
                await asyncio.sleep(0)
            async with asyncio.timeout(5):
                await asyncio.wait({serving})
        await line.add()
        await well.until(lambda: bool(well.ids))
    assert well.ids == [1]


class _Trickle(asyncio.Transport):
    """A connection whose peer takes one byte between any two looks, then none."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        self.looks -= 1
        return max(self.looks, 0)

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.rules("C3.8")
async def test_a_reader_that_takes_a_byte_now_and_then_is_kept_until_it_takes_none(
    line: Line,
) -> None:
    wire, transport = Wire(room=0), _Trickle(looks=40)
    stream = line.stream(stall_s=0.01)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(5):
        await stream({"type": "http", "state": {TRANSPORT_KEY: transport}}, wire.receive, wire.send)
    assert loop.time() - began > 40 / 4 * 0.01  # ten times as long as one that takes nothing
    assert transport.aborted
    assert transport.looks < 0
    assert line.hub.readers == 0


class _Cut(asyncio.Transport):
    """A connection that takes what it is given into its buffer, and loses its peer."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self.aborted = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.aborted.set()


@pytest.mark.rules("C3.8", "S07")
@pytest.mark.parametrize("busy", [False, True])
async def test_a_reader_that_acknowledges_nothing_is_cut_though_each_send_ends_at_once(
    line: Line, *, busy: bool
) -> None:
    wire, transport = Wire(), _Cut()
    scope: MutableMapping[str, Any] = {"type": "http", "state": {TRANSPORT_KEY: transport}}

    async def send(message: MutableMapping[str, Any]) -> None:
        transport.waiting += len(message.get("body", b""))
        await wire.send(message)

    async with asyncio.timeout(5):
        serving = asyncio.ensure_future(line.stream(stall_s=0.02)(scope, wire.receive, send))
        while not serving.done():
            if busy:
                line.delta("on and on ")
            await asyncio.sleep(0)
        await serving
    assert transport.aborted.is_set()
    assert line.hub.readers == 0


@pytest.mark.rules("C3.8")
async def test_a_stream_that_ends_gives_its_peer_a_while_to_take_the_rest(line: Line) -> None:
    wire, transport = Wire(), _Cut()
    transport.waiting = 1
    line.closed = True
    stream = line.stream(stall_s=0.02)
    async with asyncio.timeout(5):
        await stream({"type": "http", "state": {TRANSPORT_KEY: transport}}, wire.receive, wire.send)
        assert wire.ended
        assert not transport.aborted.is_set()
        await transport.aborted.wait()


async def test_a_cancelled_stream_gives_its_place_up(line: Line) -> None:
    wire = Wire()
    stream = line.stream()

    async def run() -> None:
        await stream({"type": "http"}, wire.receive, wire.send)

    task = asyncio.create_task(run())
    await wire.take(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert line.hub.readers == 0
    assert len(asyncio.all_tasks()) == 1


async def test_an_error_of_the_log_ends_the_stream_and_is_not_swallowed() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"retry: 1\n\n"
        raise TimeoutError("of the store")

    hub, wire = Hub(), Wire()
    stream = EventStream(hub.join(), broken())
    with pytest.raises(TimeoutError, match="of the store"):
        async with connect_wire(stream, wire):
            await wire.until(lambda: bool(wire.pieces))
    assert hub.readers == 0


@pytest.mark.rules("C3.9", "S08")
async def test_a_thousand_connects_and_disconnects_leave_no_task_and_no_place(line: Line) -> None:
    await line.add(5)
    for number in range(1000):
        wire = Wire()
        async with connect_wire(line.stream(reader=f"reader {number}"), wire):
            await wire.take(6)
    assert line.hub.readers == 0
    assert len(asyncio.all_tasks()) == 1

"""Replay, partials and live frames, without a seam."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_protocol import (
    Envelope,
    Gap,
    Hello,
    Partial,
    SseDecoder,
    Text,
    TextDelta,
    decode_frame,
)
from towline_server.errors import StoreCorrupt
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.stream import follow, hub
from towline_server.stream.follow import MAX_REPLAY, Cursor, find_start
from towline_server.stream.hub import Subscriber
from towline_server.stream.testing import MESSAGE, Line


async def _frames(line: Line, after: str | None, log: str | None = None) -> list[object]:
    """All frames of a reader that joins and reads until nothing waits."""
    subscriber = line.hub.join()
    data = b"".join([chunk async for chunk in line.catch_up(subscriber, after, log)])
    while chunk := subscriber.take():
        data += chunk
    subscriber.leave()
    return [decode_frame(event.event, event.data) for event in SseDecoder().feed(data)]


def _seqs(frames: Sequence[object]) -> list[int]:
    return [frame.seq for frame in frames if isinstance(frame, Envelope) and frame.seq is not None]


@pytest.mark.rules("S01", "C3.3", "C1.6")
async def test_a_cut_reader_gets_the_rest_once_then_what_is_open_then_live(line: Line) -> None:
    for _ in range(500):
        await line.add()
        line.delta("ab ")
    subscriber = line.hub.join()
    data = b"".join([chunk async for chunk in line.catch_up(subscriber, "137")])
    line.delta("live")
    await line.add()
    data += subscriber.take()
    events = SseDecoder().feed(data)
    frames = [decode_frame(event.event, event.data) for event in events]
    assert isinstance(frames[0], Hello)
    assert [event.id for event in events[1:364]] == [str(seq) for seq in range(138, 501)]
    assert frames[364] == Partial(message=MESSAGE, content=(Text(text="ab " * 500),))
    delta = frames[365]
    assert isinstance(delta, Envelope)
    assert isinstance(delta.event, TextDelta)
    assert (delta.event.at, delta.event.text) == (1500, "live")
    assert _seqs(frames[366:]) == [501]
    assert len(frames) == 367


@pytest.mark.rules("S02", "C3.5")
@pytest.mark.parametrize(
    ("cursor", "log", "reason"),
    [
        ("8", None, "ahead_of_log"),
        ("9" * 18, None, "ahead_of_log"),
        ("9" * 19, None, "malformed"),
        ("-1", None, "malformed"),
        ("ses_1:3", None, "malformed"),
        ("³", None, "malformed"),
        ("3", "log_other", "other_log"),
        (None, "log_other", "other_log"),
    ],
)
async def test_a_cursor_that_cannot_be_served_is_a_gap_then_live(
    line: Line, cursor: str | None, log: str | None, reason: str
) -> None:
    await line.add(7)
    line.delta("open")
    frames = await _frames(line, cursor, log)
    assert frames[1] == Gap(requested=cursor or "0", last=7, reason=reason)
    assert [type(frame) for frame in frames] == [Hello, Gap, Partial]


@pytest.mark.rules("C3.5")
def test_a_replay_has_a_longest_length() -> None:
    assert find_start(Cursor("5"), MAX_REPLAY + 5, "log") == (5, None)
    _, gap = find_start(Cursor("4"), MAX_REPLAY + 5, "log")
    assert gap == Gap(requested="4", last=MAX_REPLAY + 5, reason="too_long")
    _, gap = find_start(Cursor(None), MAX_REPLAY + 1, "log")
    assert gap is not None


def test_a_gap_repeats_little_of_a_long_cursor() -> None:
    _, gap = find_start(Cursor("x" * 5000), 1, "log")
    assert gap is not None
    assert len(gap.requested) == 64


@pytest.mark.rules("C3.3")
@pytest.mark.parametrize("cursor", [None, "", "0"])
async def test_no_cursor_means_from_the_beginning(line: Line, cursor: str | None) -> None:
    await line.add(600)
    assert _seqs(await _frames(line, cursor)) == list(range(1, 601))


@pytest.mark.rules("C3.2")
async def test_the_first_bytes_are_the_retry_time_and_the_hello(line: Line) -> None:
    await line.add(2)
    chunks = line.catch_up(line.hub.join(), "2")
    first = await anext(chunks)
    await chunks.aclose()
    assert first.startswith(b"retry: 3000\n\nevent: hello\ndata: {")
    hello = decode_frame("hello", SseDecoder().feed(first)[0].data)
    assert isinstance(hello, Hello)
    assert (hello.log, hello.last_seq) == (line.store.log, 2)


@pytest.mark.rules("C3.4")
async def test_only_stored_events_carry_an_id(line: Line) -> None:
    await line.add(2)
    subscriber = line.hub.join()
    data = b"".join([chunk async for chunk in line.catch_up(subscriber)])
    line.delta("x")
    await line.add()
    data += subscriber.take()
    events = SseDecoder().feed(data)
    assert [(event.event, event.id) for event in events] == [
        ("hello", None),
        ("", "1"),
        ("", "2"),
        ("", None),
        ("", "3"),
    ]


async def test_a_committed_event_that_is_not_published_yet_is_not_replayed(line: Line) -> None:
    await line.add(3)
    await line.commit(2)
    subscriber = line.hub.join()
    data = b"".join([chunk async for chunk in line.catch_up(subscriber)])
    assert [event.id for event in SseDecoder().feed(data)[1:]] == ["1", "2", "3"]
    line.publish()
    assert [event.id for event in SseDecoder().feed(subscriber.take())] == ["4", "5"]


@pytest.mark.rules("C3.7")
async def test_a_closed_session_replays_and_then_ends(line: Line) -> None:
    await line.add(4)
    line.closed = True
    subscriber = line.hub.join()
    data = b"".join([chunk async for chunk in line.catch_up(subscriber, "1")])
    assert [event.id for event in SseDecoder().feed(data)[1:]] == ["2", "3", "4"]
    assert (subscriber.ended, subscriber.cut) == (True, None)


async def test_a_log_with_a_hole_is_an_error_and_not_a_silent_loss(line: Line) -> None:
    await line.add(3)
    assert isinstance(line.store, SqliteStore)
    await line.store.write(lambda connection: connection.execute("DELETE FROM events"))
    with pytest.raises(StoreCorrupt, match="Event 1 "):
        await _frames(line, "0")


async def test_a_reader_that_is_replaced_stops_reading_the_store(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "PAGE_ROWS", 2)
    await line.add(20)
    chunks = line.catch_up(line.hub.join("phone"))
    await anext(chunks)
    await anext(chunks)
    line.hub.join("phone")
    rest = [chunk async for chunk in chunks]
    assert len(rest) == 0


async def test_a_long_replay_does_not_fill_the_queue_behind_it(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "PAGE_ROWS", 2)
    monkeypatch.setattr(hub, "MAX_FRAMES", 4)
    await line.add(20)
    subscriber = line.hub.join()
    data = b""
    added = 0
    async for chunk in line.catch_up(subscriber):
        data += chunk
        if added < 10:
            added += 1
            await line.add()
    data += subscriber.take()
    ids = [event.id for event in SseDecoder().feed(data) if event.id is not None]
    assert ids == [str(seq) for seq in range(1, 31)]
    assert subscriber.cut is None


class _Reader:
    """A client that can be cut between any two frames and comes back with its cursor."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.seqs: list[int] = []
        self.text = ""
        self._connect()

    def _connect(self) -> None:
        self.subscriber: Subscriber = self.line.hub.join("me")
        after = str(self.seqs[-1]) if self.seqs else None
        self.chunks = self.line.catch_up(self.subscriber, after)
        self.caught_up = False
        self.decoder = SseDecoder()
        self.inbox: list[object] = []

    async def pull(self) -> bool:
        """Take one piece off the wire; `False` when nothing waits."""
        if not self.caught_up:
            chunk = await anext(self.chunks, b"")
            self.caught_up = not chunk
        else:
            chunk = self.subscriber.take()
        events = self.decoder.feed(chunk)
        self.inbox += [decode_frame(event.event, event.data) for event in events]
        return bool(chunk)

    def handle(self, count: int) -> None:
        for frame in self.inbox[:count]:
            match frame:
                case Envelope(seq=int() as seq):
                    self.seqs.append(seq)
                case Envelope(event=TextDelta() as delta):
                    assert delta.at == len(self.text), "a hole in the text"
                    self.text += delta.text
                case Partial(content=(Text(text=text),)):
                    self.text = text
                case _:
                    assert isinstance(frame, Hello)
        del self.inbox[:count]

    async def cut(self) -> None:
        await self.chunks.aclose()
        self._connect()

    async def drain(self) -> None:
        while not self.caught_up:
            await self.pull()
        while await self.pull():
            pass
        self.handle(len(self.inbox))


_ACTIONS = st.one_of(
    st.tuples(st.just("commit"), st.integers(1, 7)),
    st.tuples(st.just("publish"), st.integers(1, 7)),
    st.tuples(st.just("delta"), st.integers(1, 3)),
    st.tuples(st.just("pull"), st.integers(1, 3)),
    st.tuples(st.just("handle"), st.integers(1, 5)),
    st.tuples(st.just("cut"), st.just(1)),
)


@pytest.mark.rules("C3.3", "C1.6", "C1.7")
@settings(max_examples=150)
@given(st.lists(_ACTIONS, max_size=60))
def test_a_reader_cut_at_any_frame_sees_each_event_once_and_the_whole_text(
    actions: list[tuple[str, int]],
) -> None:
    async def run() -> None:
        store = await open_memory_store(mint=lambda prefix: prefix)
        line = Line(store)
        reader = _Reader(line)
        for action, count in actions:
            match action:
                case "commit":
                    await line.commit(count)
                case "publish":
                    line.publish(count)
                case "delta":
                    line.delta("é" * count)
                case "pull":
                    for _ in range(count):
                        await reader.pull()
                case "handle":
                    reader.handle(count)
                case _:
                    await reader.cut()
        line.publish()
        await reader.drain()
        await reader.chunks.aclose()
        await store.close()
        assert reader.seqs == list(range(1, line.committed + 1))
        assert reader.text == line.text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow, "PAGE_ROWS", 3)
        patch.setattr(follow, "CHUNK_BYTES", 200)
        patch.setattr(hub, "CHUNK_BYTES", 200)
        asyncio.run(run())

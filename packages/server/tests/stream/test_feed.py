"""The user's own feed: the list of sessions as it changes (C2.12)."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from towline_agent import TextPiece, tool
from towline_agent.host import SystemClock
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    Broken,
    Envelope,
    Frame,
    Hello,
    PermissionResolved,
    SessionChanged,
    SessionInfo,
    SessionRemoved,
    SessionRows,
    decode_frame,
    empty_view,
    reduce,
)
from towline_server.sessions.feed import FEED_ROWS
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient, open_test_app, ran

PATIENCE_S = 10


def _frames(wire: Wire) -> list[Frame | Broken]:
    return [decode_frame(event.event, event.data) for event in wire.events]


async def _until(wire: Wire, found: Callable[[list[Frame | Broken]], bool]) -> list[Frame | Broken]:
    async with asyncio.timeout(PATIENCE_S):
        while not found(_frames(wire)):
            await wire.take(len(wire.events) + 1)
    return _frames(wire)


def _rows(frames: list[Frame | Broken]) -> list[SessionInfo]:
    return [frame.session for frame in frames if isinstance(frame, SessionChanged)]


@pytest.mark.rules("C2.12")
async def test_the_feed_begins_with_the_rows_and_goes_on_with_what_changes(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "a secret word"), gate])
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        old = await client.create()
        async with client.follow_all() as wire:
            frames = await _until(wire, lambda frames: len(frames) >= 2)
            assert isinstance(frames[0], Hello)
            assert isinstance(frames[1], SessionRows)
            assert [row.id for row in frames[1].sessions] == [old]
            await client.prompt(old, "say it")
            await client.until(old, lambda view: bool(view.open_messages))
            new = await client.create()
            gate.set()
            await client.until(old, ran(1))
            frames = await _until(
                wire, lambda frames: any(r.id == old and r.turn is None for r in _rows(frames)[1:])
            )
            rows = _rows(frames)
            assert {row.id for row in rows} == {old, new}
            assert any(row.id == old and row.turn is not None for row in rows)
            assert rows[0].title == "say it"
            assert len(rows) < 8  # not one for each event
            assert b"a secret word" not in b"".join(wire.pieces)
            await client.ask("DELETE", f"/api/sessions/{new}")
            await _until(wire, lambda frames: SessionRemoved(session=new) in frames)


@pytest.mark.rules("C2.12")
async def test_one_stream_carries_the_feed_and_one_session(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider("one", "two"), root=tmp_path) as built:
        client = AppClient(built)
        shown, other = await client.create(), await client.create()
        async with client.follow_all(query=f"session={shown}&after=0") as wire:
            frames = await _until(wire, lambda frames: len(frames) >= 3)
            assert isinstance(frames[0], Hello)
            assert isinstance(frames[1], SessionRows)
            await client.prompt(shown, "first")
            await client.until(shown, ran(1))
            await client.prompt(other, "second")
            await client.until(other, ran(1))
            frames = await _until(
                wire, lambda frames: any(r.id == other and r.title for r in _rows(frames))
            )
            seqs = [f.seq for f in frames if isinstance(f, Envelope) and f.seq is not None]
            assert seqs == list(range(1, len(seqs) + 1))
            assert {f.session for f in frames if isinstance(f, Envelope)} == {shown}
            assert any(row.id == shown and row.turn is None for row in _rows(frames)[1:])


@pytest.mark.rules("C2.12", "S08")
async def test_a_reader_of_the_feed_that_goes_leaves_nothing_behind(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        for query in ("", f"session={session}") * 20:
            async with client.follow_all(query=query) as wire:
                await wire.take(2)
        assert not built.sessions.feeds.watches("owner")
        missing = await client.ask("GET", "/api/events?session=ses_none")
        assert missing.status == 404
        assert not built.sessions.feeds.watches("owner")


@pytest.mark.rules("C3.6")
async def test_a_drain_tells_the_feed_to_come_back(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        client = AppClient(built)
        async with client.follow_all() as wire:
            await wire.take(2)
            built.streams.drain()
            frames = await _until(wire, lambda found: any("retry_ms" in repr(f) for f in found))
        assert "retry_ms" in repr(frames[-1])


@tool(name="change")
async def _change() -> str:
    """Change something."""
    return "changed"


class _Ticking(SystemClock):
    """Whoever looks at it sees a later millisecond, so that no two sessions are of one."""

    _ms = 0

    def now_ms(self) -> int:
        self._ms = max(self._ms + 1, super().now_ms())
        return self._ms


@pytest.mark.rules("C2.12")
async def test_the_feed_begins_with_the_newest_and_all_that_need_somebody_each_time_anew(
    tmp_path: Path,
) -> None:
    provider, clock = ScriptedProvider(call("change"), call("change")), _Ticking()
    async with open_test_app(
        provider, root=tmp_path, tools=[_change], mode="ask", clock=clock
    ) as built:
        client = AppClient(built)
        needing = [await client.create() for _ in range(2)]
        for session in needing:
            await client.prompt(session, "change it")
            await client.until(session, lambda view: bool(view.permissions))
        others = [await client.create() for _ in range(FEED_ROWS + 3)]
        for _ in range(2):  # there is no cursor: who comes back begins as before
            async with client.follow_all(query="after=7&reader=me") as wire:
                frames = await _until(wire, lambda frames: len(frames) >= 2)
                assert wire.ids == []
            assert isinstance(frames[1], SessionRows)
            shown = [row.id for row in frames[1].sessions]
            assert len(shown) == len(set(shown)) == FEED_ROWS + 2
            assert set(shown) == {*needing, *others[3:]}
            pending = {row.id: row.pending for row in frames[1].sessions if row.pending}
            assert pending == dict.fromkeys(needing, 1)


@pytest.mark.rules("C5.10", "S10")
async def test_a_request_that_is_resolved_is_shown_open_by_neither_of_two_subscriptions_again(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(call("change"), call("change"), "done")
    async with open_test_app(provider, root=tmp_path, tools=[_change], mode="ask") as built:
        client = AppClient(built)
        session = await client.create()
        async with (
            client.follow_all() as feed,
            client.follow_all(query=f"session={session}&after=0") as both,
        ):
            await client.prompt(session, "change it twice")
            for done in range(2):
                view = await client.until(
                    session,
                    lambda view, done=done: bool(view.permissions) and len(view.calls) == done,
                )
                await client.answer(session, view.permissions[0], "allow_once")
            await client.until(session, ran(1))
            told = [
                await _until(wire, lambda frames: any(r.turn is None for r in _rows(frames)[1:]))
                for wire in (feed, both)
            ]
    for frames in told:
        rows = _rows(frames)
        assert [row.last_seq for row in rows] == sorted(row.last_seq for row in rows)
        assert rows[-1].pending == 0
    view, closed = empty_view(), set[str]()
    for frame in told[1]:
        assert not isinstance(frame, Broken)
        view = reduce(view, frame)
        if isinstance(frame, Envelope) and isinstance(frame.event, PermissionResolved):
            closed.add(frame.event.permission)
        assert not closed & {request.permission for request in view.permissions}
    assert len(closed) == 2

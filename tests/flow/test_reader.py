"""A reader that is cut anywhere and comes back by its number, over the real app without sockets."""

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent import (
    Model,
    Piece,
    Request,
    StepAnswer,
    TextPiece,
    ThinkingPiece,
    Tool,
    ToolContext,
    mint_now,
    tool,
)
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    Block,
    Broken,
    Envelope,
    Gap,
    Hello,
    Partial,
    SessionClosed,
    SessionView,
    SseDecoder,
    Text,
    Thinking,
    Usage,
    block_text,
    decode_frame,
    empty_view,
    parse_time,
    reduce,
)
from towline_server import open_memory_store
from towline_server.build import BuiltApp
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient, open_test_app, ran

PATIENCE_S: Final = 20


GATES: Final = 12
"""Gates of one turn of a `Stage`."""


class Stage:
    """A model and its tool that go on only when they are let: they stand still at each gate."""

    model = Model(provider="scripted", id="stage")

    def __init__(self) -> None:
        self._passed = 0
        self._reached = 0
        self._passes = asyncio.Semaphore(0)
        self._news = asyncio.Event()

    async def gate(self) -> None:
        self._reached += 1
        self._news.set()
        await self._passes.acquire()

    async def let_on(self, count: int = 1) -> None:
        """Let it pass some gates and wait until it stands at the next; the last one stays shut."""
        for _ in range(min(count, GATES - 1 - self._passed)):
            self._passed += 1
            self._passes.release()
        async with asyncio.timeout(PATIENCE_S):
            while self._reached <= self._passed:
                self._news.clear()
                await self._news.wait()

    def open(self) -> None:
        """Let it pass all gates."""
        for _ in range(GATES):
            self._passes.release()

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepAnswer:
        if request.messages[-1].role == "user":
            return await self._call(on_piece)
        await self.gate()
        for text in ("It ", "says: ", "👍🏽", " ok\n"):
            on_piece(TextPiece(0, text))
            await self.gate()
        return _answer("end_turn", Text(text="It says: 👍🏽 ok\n"))

    async def _call(self, on_piece: Callable[[Piece], None]) -> StepAnswer:
        for text in ("Hm", "m …"):
            on_piece(ThinkingPiece(0, text))
            await self.gate()
        for text in ("Ich séhe ", "nach."):
            on_piece(TextPiece(1, text))
            await self.gate()
        asked = call("work").content
        return _answer("tool_calls", Thinking(text="Hmm …"), Text(text="Ich séhe nach."), *asked)

    def tool(self) -> Tool:
        @tool(name="work", effect="read")
        async def work(context: ToolContext) -> str:
            """Work and say so."""
            for line in ("one\n", "zwö\n", "👍\n"):
                context.output(line)
                await self.gate()
            return "worked"

        return work

    async def models(self) -> tuple[str, ...]:
        return ()

    async def aclose(self) -> None:
        pass


def _answer(stop_reason: str, *content: Block) -> StepAnswer:
    return StepAnswer(content=content, stop_reason=stop_reason, usage=Usage(input=1, output=1))


@dataclass
class Reader:
    """A client as the contract wants it: a view and a cursor, and nothing that it is told twice."""

    view: SessionView = field(default_factory=empty_view)
    seen: list[int] = field(default_factory=list[int])
    partials: int = 0

    @property
    def cursor(self) -> int:
        return self.seen[-1] if self.seen else 0

    def take(self, events: list[tuple[str, bytes]]) -> None:
        for name, data in events:
            frame = decode_frame(name, data)
            assert not isinstance(frame, Broken | Gap)
            if isinstance(frame, Envelope) and frame.seq is not None:
                assert frame.seq == self.cursor + 1  # once, in order, without a hole
                self.seen.append(frame.seq)
            self.partials += isinstance(frame, Partial)
            self.view = reduce(self.view, frame)
            assert not self.view.lost


class Line:
    """One connection: what comes is taken as far as the cut, and then nothing more."""

    def __init__(self, wire: Wire, reader: Reader, cut_at: int | None) -> None:
        self._wire = wire
        self._reader = reader
        self._decoder = SseDecoder()
        self._left = cut_at
        self._taken = 0

    @property
    def cut(self) -> bool:
        return self._left == 0

    def take(self) -> None:
        for piece in self._wire.pieces[self._taken :]:
            self._taken += 1
            if self._left is not None:
                piece = piece[: self._left]
                self._left -= len(piece)
            self._reader.take([(event.event, event.data) for event in self._decoder.feed(piece)])


async def _read(
    built: BuiltApp, stage: Stage, session: str, reader: Reader, cut_at: int | None, gates: int
) -> None:
    """One connection, up to its cut or until all is known; meanwhile the turn goes on."""
    (live,) = built.sessions.live
    await live.log.settle()
    headers = {"last-event-id": f"{reader.cursor}"} if reader.seen else {}
    async with AppClient(built).follow(session, headers=headers) as wire:
        line = Line(wire, reader, cut_at)

        def settled() -> bool:
            line.take()
            return line.cut or reader.view == live.view()  # open messages and calls included

        await wire.until(settled)
        for _ in range(gates):
            if line.cut:
                return
            await stage.let_on()
            await wire.until(settled)


Move = tuple[int, int | None, int]
"""Gates passed while nobody reads; bytes until the cut; gates passed while connected."""


async def _play(moves: list[Move], root: Path) -> Reader:
    """A turn under a reader that is cut again and again; checks what the reader has in the end."""
    stage, reader = Stage(), Reader()
    async with open_test_app(stage, root=root, tools=[stage.tool()]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go on")
        await stage.let_on(0)
        for unseen, cut_at, gates in moves:
            await stage.let_on(unseen)
            await _read(built, stage, session, reader, cut_at, gates)
        stage.open()
        await client.until(session, lambda view: view.last_turn is not None)
        await _read(built, stage, session, reader, None, 0)
        log = await client.log(session)
        assert [envelope.seq for envelope in log] == reader.seen
        assert reader.view == functools.reduce(reduce, log, empty_view())
        assert reader.view == await client.view(session)
    return reader


@pytest.mark.rules("C1.4", "C1.5", "C1.6", "C1.8", "C3.3", "C3.4", "C4.2", "S01", "S09")
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 6000)), st.integers(0, 4)),
        max_size=6,
    )
)
@settings(max_examples=60)
def test_a_reader_cut_anywhere_and_resumed_sees_each_event_once_and_the_same_view(
    tmp_path_factory: pytest.TempPathFactory, moves: list[Move]
) -> None:
    asyncio.run(_play(moves, tmp_path_factory.getbasetemp()))


@pytest.mark.rules("C1.6", "C3.3", "S01")
def test_a_reader_cut_at_every_frame_of_a_turn_is_given_what_is_open_each_time(
    tmp_path: Path,
) -> None:
    reader = asyncio.run(_play([(1, None, 0)] * (GATES - 1), tmp_path))
    assert reader.partials == GATES - 2  # nothing was open where the second step began


def _speaks(view: SessionView) -> bool:
    return bool(view.open_messages) and bool(view.open_messages[0].content)


@pytest.mark.rules("C1.5", "C1.6", "C3.3", "S01")
async def test_after_137_of_500_events_come_the_other_363_then_what_is_open_then_live(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    half = [TextPiece(0, "half "), gate, TextPiece(0, "done")]
    provider = ScriptedProvider(*["well"] * 62, half)
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        for turns in (31, 62):
            for _ in range(31):
                await client.prompt(session, "go on")
            await client.until(session, ran(turns))
        await client.prompt(session, "and now a long one")
        view = await client.until(session, _speaks)
        assert view.seq >= 500
        async with client.follow(session, headers={"last-event-id": "137"}) as wire:
            await wire.until(lambda: bool(wire.events) and wire.events[-1].event == "partial")
            assert wire.ids == list(range(138, view.seq + 1))
            names = [event.event for event in wire.events if event.id is None]
            assert names == ["hello", "partial"]
            gate.set()
            await wire.until(lambda: b"turn_completed" in wire.events[-1].data)
            assert wire.ids == list(range(138, view.seq + 4))


@pytest.mark.rules("C3.5", "S02")
@pytest.mark.parametrize(
    ("cursor", "query", "reason"),
    [
        ("99999", "", "ahead_of_log"),
        ("-1", "", "malformed"),
        ("1.5", "", "malformed"),
        ("first", "", "malformed"),
        ("2", "log=log_of_a_backup", "other_log"),
    ],
)
async def test_a_cursor_that_cannot_be_served_is_told_at_once_and_the_view_is_the_way_on(
    tmp_path: Path, cursor: str, query: str, reason: str
) -> None:
    async with open_test_app(ScriptedProvider("well", "again"), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go on")
        await client.until(session, lambda view: view.last_turn is not None)
        headers = {"last-event-id": cursor}
        async with client.follow(session, query=query, headers=headers) as wire:
            hello, gap = (decode_frame(e.event, e.data) for e in await wire.take(2))
            assert isinstance(hello, Hello)
            assert isinstance(gap, Gap)
            assert (gap.reason, gap.last, gap.requested) == (reason, hello.last_seq, cursor)
            assert wire.ids == []  # never everything again
        view = await client.view(session)
        assert view.seq == gap.last
        async with client.follow(session, query=f"after={view.seq}") as wire:
            await wire.take(1)
            await client.prompt(session, "go on")
            await wire.until(lambda: b"turn_completed" in b"".join(wire.pieces))
            assert wire.ids[0] == view.seq + 1


@pytest.mark.rules("C3.1", "C3.2", "C3.7", "S04")
async def test_a_reader_that_is_up_to_date_hears_at_once_and_then_again_and_again(
    tmp_path: Path,
) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path, heartbeat_s=0.02) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session, query="after=1") as wire:
            (hello,) = await wire.take(1)
            assert wire.pieces[0].startswith(b"retry: 3000\n\nevent: hello\n")
            frame = decode_frame(hello.event, hello.data)
            assert isinstance(frame, Hello)
            assert frame.last_seq == 1
            assert frame.log == built.sessions.live[0].log.store.log
            assert abs(parse_time(frame.now) - time.time() * 1000) < 60_000
            assert frame.server_version == "0.0.0"
            await wire.until(lambda: wire.pieces.count(b": alive\n\n") >= 3)
            assert wire.ids == []
            assert not wire.ended


@pytest.mark.rules("C2.10", "C3.7", "S05")
async def test_a_finished_turn_can_be_joined_after_a_restart_and_only_a_closed_session_ends(
    tmp_path: Path,
) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go on")
        view = await client.until(session, lambda view: view.last_turn is not None)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        async with client.follow(session, query="after=4") as wire:
            await wire.until(lambda: wire.ids == list(range(5, view.seq + 1)))
            assert b"turn_completed" in wire.pieces[-1]
            assert not wire.ended
            (live,) = built.sessions.live
            live.log.emit(SessionClosed(reason="put away"))
            await live.log.settle()
            await wire.until(lambda: wire.ids[-1] == view.seq + 1)
        async with client.follow(session, query="after=4") as wire:
            await wire.until(lambda: wire.ended)
            assert wire.ids == list(range(5, view.seq + 2))
        assert (await client.prompt(session, "more")).status == 410
    await store.close()


@pytest.mark.rules("C3.4", "S09")
async def test_only_stored_events_have_a_number_and_each_frame_is_one_line_of_json(
    tmp_path: Path,
) -> None:
    stage = Stage()
    async with open_test_app(stage, root=tmp_path, tools=[stage.tool()], heartbeat_s=0.01) as built:
        client = AppClient(built)
        session = await client.create()
        stage.open()
        async with client.follow(session) as wire:
            await wire.until(lambda: wire.ids == [1])
            await client.prompt(session, "go on")
            await wire.until(lambda: b"turn_completed" in b"".join(wire.pieces))
        frames = [(event.id, decode_frame(event.event, event.data)) for event in wire.events]
        for number, frame in frames:
            assert not isinstance(frame, Broken)
            stored = isinstance(frame, Envelope) and frame.seq is not None
            assert (number is not None) == stored
            if isinstance(frame, Envelope) and stored:
                assert number == f"{frame.seq}"
        assert len([frame for number, frame in frames if number is None]) > GATES / 2
        assert b"\r" not in b"".join(wire.pieces)


@pytest.mark.rules("C5.13", "S29")
async def test_a_turn_whose_last_reader_has_left_goes_on_to_its_end(tmp_path: Path) -> None:
    stage = Stage()
    async with open_test_app(stage, root=tmp_path, tools=[stage.tool()]) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as wire:
            await client.prompt(session, "go on")
            await wire.until(lambda: b"thinking_delta" in b"".join(wire.pieces))
        (live,) = built.sessions.live
        assert live.log.hub.readers == 0
        stage.open()
        view = await client.until(session, lambda view: view.last_turn is not None)
    assert view.last_turn is not None
    assert view.last_turn.outcome == "completed"
    assert block_text(view.messages[-1].content) == "It says: 👍🏽 ok\n"

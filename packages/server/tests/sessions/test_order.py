"""What readers see of a session while its commits are under way."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from towline_agent import TextPiece, mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import Envelope, TextDelta, decode_frame
from towline_server.store.records import Append
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient, open_test_app, ran

PATIENCE_S = 10


class Gate:
    """Holds each commit with an event of one kind until it is opened."""

    def __init__(self) -> None:
        self.kind = b""
        self.held = asyncio.Event()
        self._open = threading.Event()
        self._loop = asyncio.get_running_loop()

    def on_commit(self, phase: str, appends: tuple[Append, ...]) -> None:
        rows = [row.data for append in appends for row in append.rows]
        if phase == "before" and self.kind and any(self.kind in data for data in rows):
            self._loop.call_soon_threadsafe(self.held.set)
            assert self._open.wait(PATIENCE_S)

    def close(self, kind: str) -> None:
        self.kind = f'"type":"{kind}"'.encode()

    def open(self) -> None:
        self._open.set()


@pytest.fixture
async def gate() -> Gate:
    return Gate()


@pytest.fixture
async def store(gate: Gate) -> AsyncGenerator[SqliteStore]:
    store = await open_memory_store(mint=mint_now, on_commit=gate.on_commit)
    yield store
    gate.open()
    await store.close()


async def _held(gate: Gate) -> None:
    """Wait until a commit is under way, and let all that could be shown be shown."""
    async with asyncio.timeout(PATIENCE_S):
        await gate.held.wait()
    for _ in range(50):
        await asyncio.sleep(0)


def _events(reader: Wire) -> list[Envelope]:
    frames = [decode_frame(event.event, event.data) for event in reader.events]
    return [frame for frame in frames if isinstance(frame, Envelope)]


@pytest.mark.rules("C1.4", "C2.5")
async def test_a_prompt_is_neither_acknowledged_nor_shown_before_it_is_durable(
    gate: Gate, store: SqliteStore, tmp_path: Path
) -> None:
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as reader:
            await reader.until(lambda: reader.ids == [1])
            gate.close("prompt_admitted")
            sending = asyncio.create_task(client.prompt(session, "first"))
            await _held(gate)
            assert not sending.done()
            assert reader.ids == [1]
            gate.open()
            assert (await sending).status == 202
            await reader.until(lambda: reader.ids[-1] > 1)


@pytest.mark.rules("C1.4", "C1.5", "C1.7")
async def test_deltas_wait_for_the_event_before_them_and_come_in_order(
    gate: Gate, store: SqliteStore, tmp_path: Path
) -> None:
    words = ["so ", "it ", "was 👍🏽 ", "done"]
    provider = ScriptedProvider([TextPiece(0, word) for word in words])
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as reader:
            await reader.until(lambda: reader.ids == [1])
            gate.close("message_started")
            await client.prompt(session, "first")
            await _held(gate)
            assert not [e for e in _events(reader) if isinstance(e.event, TextDelta)]
            gate.open()
            await reader.until(lambda: b"turn_completed" in b"".join(reader.pieces))
    kinds = [type(envelope.event).__name__ for envelope in _events(reader)]
    start = kinds.index("MessageStarted")
    assert kinds[start : start + 6] == ["MessageStarted", *["TextDelta"] * 4, "MessageEnded"]
    deltas = [e.event for e in _events(reader) if isinstance(e.event, TextDelta)]
    assert [delta.text for delta in deltas] == words
    assert [delta.at for delta in deltas] == [0, 3, 6, 13]  # code points, not bytes


@pytest.mark.rules("C1.7")
async def test_readers_of_a_session_see_the_same_frames_in_the_same_order(tmp_path: Path) -> None:
    provider = ScriptedProvider([TextPiece(0, f"{number} ") for number in range(30)])
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as one, client.follow(session) as two:
            for reader in (one, two):
                await reader.until(lambda reader=reader: reader.ids == [1])
            await client.prompt(session, "count")
            for reader in (one, two):
                await reader.until(
                    lambda reader=reader: b"turn_completed" in b"".join(reader.pieces)
                )
    assert _events(one) == _events(two)
    assert len(_events(one)) > 30


@pytest.mark.rules("C2.11", "S24", "S28")
async def test_a_stop_also_holds_a_prompt_that_was_sent_just_before_it(
    gate: Gate, store: SqliteStore, tmp_path: Path
) -> None:
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()], "well", "well")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        gate.close("prompt_admitted")
        sending = asyncio.create_task(client.prompt(session, "second"))
        await _held(gate)
        stopping = asyncio.create_task(client.interrupt(session))
        await _held(gate)
        gate.open()
        assert (await sending).status == 202
        assert await stopping is not None
        view = await client.until(session, lambda view: view.last_turn is not None)
        await _held(gate)
        assert len((await client.view(session)).queue) == len(view.queue) == 1
        assert len(provider.requests) == 1
        await client.prompt(session, "third")
        await client.until(session, ran(3))

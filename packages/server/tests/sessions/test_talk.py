"""What people do with prompts beside sending them: take back, run on, say again, stop."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import TextPiece
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    Problem,
    PromptAccepted,
    PromptId,
    QueueResumed,
    Resend,
    SessionView,
    Text,
    TurnCancelled,
    Withdrawn,
    block_text,
)
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran


def _said(view: SessionView) -> list[str]:
    return [f"{m.role}: {block_text(m.content)}" for m in view.messages if m.role != "mark"]


def _asked(provider: ScriptedProvider, step: int) -> list[str]:
    return [block_text(message.content) for message in provider.requests[step].messages]


async def _withdraw(client: AppClient, session: str, prompt: PromptId) -> int | Withdrawn:
    reply = await client.ask("POST", f"/api/sessions/{session}/prompts/{prompt}/withdraw")
    return reply.read(Withdrawn) if reply.status == 200 else reply.status


@pytest.mark.rules("C2.11")
async def test_a_prompt_that_waits_can_be_taken_back_and_never_runs(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "one"), gate], "two")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        first = (await client.prompt(session, "first")).read(PromptAccepted)
        await client.until(session, lambda view: bool(view.open_messages))
        waits, stays = [
            (await client.prompt(session, text)).read(PromptAccepted) for text in ("b", "c")
        ]
        assert await _withdraw(client, session, waits.prompt) == Withdrawn(prompt=waits.prompt)
        assert await _withdraw(client, session, waits.prompt) == Withdrawn(prompt=waits.prompt)
        assert await _withdraw(client, session, first.prompt) == 410
        assert await _withdraw(client, session, PromptId("pmt_none")) == 404
        gate.set()
        view = await client.until(session, ran(2))
        assert _said(view) == ["user: first", "assistant: one", "user: c", "assistant: two"]
        assert await _withdraw(client, session, stays.prompt) == 410


@pytest.mark.rules("C2.11", "S28")
async def test_what_a_stop_holds_back_runs_on_when_asked(tmp_path: Path) -> None:
    provider = ScriptedProvider([TextPiece(0, "one"), asyncio.Event()], "two")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        await client.prompt(session, "waits")
        await client.interrupt(session)
        view = await client.view(session)
        assert (view.turn, len(view.queue)) == (None, 1)
        reply = await client.ask("POST", f"/api/sessions/{session}/queue/resume")
        assert (reply.status, reply.read(QueueResumed).queued) == (200, 1)
        view = await client.until(session, ran(2))
        assert _said(view)[-2:] == ["user: waits", "assistant: two"]
        again = await client.ask("POST", f"/api/sessions/{session}/queue/resume")
        assert again.read(QueueResumed).queued == 0


@pytest.mark.rules("C1.20", "S28")
async def test_a_stop_answers_once_the_end_of_the_turn_is_durable(tmp_path: Path) -> None:
    store = await open_memory_store(mint=lambda prefix: f"{prefix}_1")
    provider = ScriptedProvider([TextPiece(0, "one"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        view = await client.until(session, lambda view: bool(view.open_messages))
        assert view.turn is not None
        stopped, late = await asyncio.gather(client.interrupt(session), client.interrupt(session))
        row = await store.session(session)
        assert (stopped, late) == (view.turn.id, view.turn.id)
        assert row is not None
        assert row.turn is None  # read from the store, not from memory
        log = await client.log(session)
        assert [type(e.event) for e in log].count(TurnCancelled) == 1
    await store.close()


@pytest.mark.rules("C2.5")
async def test_the_last_turn_can_be_said_again_before_what_waits(tmp_path: Path) -> None:
    provider = ScriptedProvider([TextPiece(0, "no"), asyncio.Event()], "better", "next")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        await client.prompt(session, "waits")
        await client.interrupt(session)
        path, headers = f"/api/sessions/{session}/retry", {"idempotency-key": "again"}
        reply = await client.ask("POST", path, headers=headers)
        assert reply.status == 202
        assert reply.read(PromptAccepted).position == 0
        repeat = await client.ask("POST", path, headers=headers)
        assert repeat.read(PromptAccepted) == reply.read(PromptAccepted)
        view = await client.until(session, ran(3))
        assert _asked(provider, 1) == ["first"]
        assert _asked(provider, 2) == ["first", "better", "waits"]
        again = next(message for message in view.messages if message.key == "again")
        assert block_text(again.content) == "first"


async def test_a_turn_can_be_said_in_other_words_and_all_after_it_is_undone(tmp_path: Path) -> None:
    provider = ScriptedProvider("one", "two", "other", "more")
    store = await open_memory_store(mint=lambda prefix: f"{prefix}_1")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        turns: list[str] = []
        for number, text in enumerate(("first", "second"), 1):
            await client.prompt(session, text)
            view = await client.until(session, ran(number))
            assert view.last_turn is not None
            turns.append(view.last_turn.id)
        body = Resend(content=(Text(text="changed"),))
        path = f"/api/sessions/{session}/turns/{turns[0]}/resend"
        assert (await client.ask("POST", path, body)).status == 202
        await client.until(session, ran(3))
        assert _asked(provider, 2) == ["changed"]
        gone = await client.ask("POST", path, body)
        assert (gone.status, gone.read(Problem).reason) == (422, "turn_gone")
        missing = f"/api/sessions/{session}/turns/trn_none/resend"
        assert (await client.ask("POST", missing, body)).status == 404
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        await client.prompt(session, "third")
        await client.until(session, ran(4))
        assert _asked(provider, 3) == ["changed", "other", "third"]
    await store.close()


async def test_nothing_is_said_again_while_a_turn_runs_or_before_there_is_one(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider([TextPiece(0, "one"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        path = f"/api/sessions/{session}/retry"
        early = await client.ask("POST", path)
        assert (early.status, early.read(Problem).reason) == (422, "no_turn")
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        busy = await client.ask("POST", path)
        assert (busy.status, busy.read(Problem).reason) == (409, "turn_active")
        view = await client.view(session)
        assert view.turn is not None


@pytest.mark.rules("S28")
async def test_a_stop_by_a_reader_that_came_back_in_mid_turn_is_told_once_and_the_line_goes_on(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()], "well")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, lambda view: bool(view.open_messages))
        async with client.follow(session, headers={"last-event-id": "2"}) as wire:
            await wire.until(lambda: bool(wire.events) and wire.events[-1].event == "partial")
            assert await client.interrupt(session) is not None
            await wire.until(lambda: b"turn_cancelled" in b"".join(wire.pieces))
            await client.prompt(session, "go on")
            await wire.until(lambda: b"turn_completed" in b"".join(wire.pieces))
            assert b"".join(wire.pieces).count(b"turn_cancelled") == 1
            assert wire.ids == list(range(3, wire.ids[-1] + 1))

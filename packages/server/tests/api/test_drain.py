"""A server that shuts down: nothing new is taken, and nobody is left without a word."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import TextPiece, mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    CreateSession,
    Problem,
    Reset,
    TurnCancelled,
    TurnCompleted,
    decode_frame,
)
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app


@pytest.mark.rules("C2.4", "C3.6", "C5.14")
async def test_readers_are_told_to_come_back_and_new_work_is_refused(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as one, client.follow(session) as two:
            for reader in (one, two):
                await reader.until(lambda reader=reader: reader.ids == [1])
            built.streams.drain()
            for reader in (one, two):
                await reader.until(lambda reader=reader: reader.ended)
                last = decode_frame(reader.events[-1].event, reader.events[-1].data)
                assert isinstance(last, Reset)
                assert 500 <= last.retry_ms <= 3000
        for refused in (
            await client.prompt(session, "hello"),
            await client.ask("POST", "/api/sessions", CreateSession()),
            await client.ask("GET", f"/api/sessions/{session}/events"),
        ):
            problem = refused.read(Problem)
            assert (refused.status, problem.code, problem.retry) == (
                503,
                "draining",
                "same_request",
            )
            assert int(refused.headers["retry-after"]) >= 1
        assert (await client.ask("GET", f"/api/sessions/{session}/view")).status == 200


@pytest.mark.rules("C5.14")
async def test_a_running_turn_may_end_and_the_next_one_waits_for_the_next_server(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "almost "), gate, TextPiece(0, "done")], "later")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.prompt(session, "second")
        await client.until(session, lambda view: bool(view.open_messages))
        draining = asyncio.create_task(built.sessions.drain(60))
        await asyncio.sleep(0)
        gate.set()
        async with asyncio.timeout(10):
            await draining
        view = await client.view(session)
        log = await client.log(session)
    assert [type(e.event) for e in log].count(TurnCompleted) == 1
    assert len(view.queue) == 1
    assert len(provider.requests) == 1


@pytest.mark.rules("C5.14", "S28")
async def test_a_turn_that_takes_too_long_is_stopped_by_the_server(tmp_path: Path) -> None:
    provider = ScriptedProvider([TextPiece(0, "for ever"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        async with asyncio.timeout(10):
            await built.sessions.drain(0.01)
        log = await client.log(session)
    (cancelled,) = [e.event for e in log if isinstance(e.event, TurnCancelled)]
    assert (cancelled.by, cancelled.reason) == ("server", "the server shuts down")


@pytest.mark.rules("C3.6", "C5.14")
async def test_a_stream_that_was_about_to_open_is_refused_too(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        session = await AppClient(built).create()
    for turns in range(1, 12):  # wherever the load of the dormant session is
        async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
            client = AppClient(built)
            async with client.follow(session) as wire:
                for _ in range(turns):
                    await asyncio.sleep(0)
                built.streams.drain()
                await wire.until(lambda wire=wire: wire.ended)
            assert wire.head["status"] == 503 or b"event: reset" in wire.pieces[-1]
    await store.close()


@pytest.mark.rules("C5.14")
async def test_a_turn_that_only_waits_for_a_person_holds_no_stop_back(tmp_path: Path) -> None:
    @tool(name="change")
    async def change() -> str:
        """Change something."""
        return "changed"

    provider = ScriptedProvider(call("change"))
    async with open_test_app(provider, root=tmp_path, tools=[change], mode="ask") as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "hello")
        await client.until(session, lambda view: bool(view.permissions))
        (live,) = built.sessions.live
        assert (live.busy, live.waits) == (True, True)
        async with asyncio.timeout(10):
            await built.sessions.drain(600)
        assert (await client.view(session)).permissions  # it is asked again by the next server

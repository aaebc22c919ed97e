"""A conversation that is summed up because somebody asked for it, and what comes meanwhile."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import TextPiece, mint_now
from towline_agent.testing import ScriptedProvider, say
from towline_protocol import (
    Compacted,
    Envelope,
    Notice,
    Problem,
    SessionView,
    TurnStarted,
    block_text,
)
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran

LONG = "talk " * 3000


async def _compact(client: AppClient, session: str) -> Reply:
    return await client.ask("POST", f"/api/sessions/{session}/compact")


async def _long_talk(client: AppClient, turns: int = 3) -> str:
    session = await client.create()
    for number in range(1, turns + 1):
        await client.prompt(session, f"part {number}")
        await client.until(session, ran(number))
    return session


def _compacting(view: SessionView) -> bool:
    return any(notice.code == "compacting" for notice in view.notices)


async def _spin() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def _kinds(log: list[Envelope], *kinds: type) -> list[str]:
    return [type(e.event).__name__ for e in log if isinstance(e.event, kinds)]


@pytest.mark.rules("C2.11", "S24")
async def test_what_is_said_while_a_conversation_is_summed_up_waits_and_runs_in_order(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    summary = [gate, say("They talked.")]
    provider = ScriptedProvider(LONG, LONG, LONG, summary, "one")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await _long_talk(client)
        assert (await _compact(client, session)).status == 202
        await client.until(session, _compacting)
        first, second = [
            await client.prompt(session, text, when=when)
            for text, when in (("b", "auto"), ("c", "steer"))
        ]
        refused = await client.prompt(session, "at once", when="reject")
        assert (first.status, second.status, refused.status) == (202, 202, 409)
        assert refused.read(Problem).reason == "turn_active"
        again = await _compact(client, session)
        assert (again.status, again.read(Problem).reason) == (409, "turn_active")
        assert len((await client.view(session)).queue) == 2
        gate.set()
        await client.until(session, ran(5))
        log = await client.log(session)
    assert _kinds(log, Compacted, TurnStarted)[3:5] == ["Compacted", "TurnStarted"]
    asked = [block_text(message.content) for message in provider.requests[4].messages]
    assert "They talked." in asked[0]
    assert asked[-2:] == ["b", "c"]  # a steer goes into the turn that comes next


@pytest.mark.rules("C2.11", "S24")
async def test_what_a_person_stopped_stays_held_after_a_summary(tmp_path: Path) -> None:
    provider = ScriptedProvider(LONG, LONG, LONG, [TextPiece(0, "a"), asyncio.Event()], "Talk.")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await _long_talk(client)
        await client.prompt(session, "go on")
        await client.until(session, lambda v: len(v.messages) > 6 and bool(v.open_messages))
        await client.prompt(session, "waits")
        await client.interrupt(session)
        assert (await _compact(client, session)).status == 202
        await client.until(
            session,
            lambda view: any(
                m.mark is not None and m.mark.kind == "compacted" for m in view.messages
            ),
        )
        await _spin()
        assert not built.sessions.live[0].busy
        assert len((await client.view(session)).queue) == 1
        assert len(provider.requests) == 5


async def test_a_conversation_that_is_too_short_says_so_and_goes_on(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider("well", "again"), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "hello")
        await client.until(session, ran(1))
        assert (await _compact(client, session)).status == 202
        await client.prompt(session, "and now?")
        await client.until(session, ran(2))
        log = await client.log(session)
    codes = [e.event.code for e in log if isinstance(e.event, Notice)]
    assert codes == ["compacting", "not_compacted"]
    assert _kinds(log, Compacted) == []


@pytest.mark.rules("C2.10")
async def test_a_closed_session_is_not_summed_up(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider("well"), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.ask("POST", f"/api/sessions/{session}/close", b"{}")
        assert (await _compact(client, session)).status == 410


@pytest.mark.rules("C5.4", "S12")
async def test_a_summary_that_a_restart_cut_left_the_conversation_whole(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    held = ScriptedProvider(LONG, LONG, LONG, [asyncio.Event()])
    async with open_test_app(held, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await _long_talk(client)
        await _compact(client, session)
        await client.prompt(session, "b")
        async with asyncio.timeout(20):
            while len(held.requests) < 4:
                await _spin()
    provider = ScriptedProvider("well")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        await AppClient(built).until(session, ran(4))
    await store.close()
    asked = [block_text(message.content) for message in provider.requests[0].messages]
    assert asked == ["part 1", LONG, "part 2", LONG, "part 3", LONG, "b"]

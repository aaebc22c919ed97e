"""Calls of a program's own tools where something goes otherwise: each runs once all the same."""

import asyncio
import base64
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from towline_client import Client, Session
from towline_client.testing import (
    QUICK,
    ManualClock,
    ScriptedServer,
    ScriptedTransport,
    ScriptedTurn,
    connect,
    refuse,
)
from towline_client.testing.log import time_at
from towline_client.transport import Reply
from towline_protocol import (
    CallView,
    ClientCallOffered,
    DeclareTools,
    SessionId,
    SessionView,
    Text,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


def _bodies(server: ScriptedServer, name: str, kind: type[Any]) -> list[Any]:
    return [
        msgspec.json.decode(call.body or b"", type=kind)
        for call in server.calls
        if call.operation.name == name
    ]


def _declared(server: ScriptedServer) -> list[tuple[str, ...]]:
    """The names of each declaration."""
    bodies = _bodies(server, "declare_tools", DeclareTools)
    return [tuple(tool.name for tool in body.tools) for body in bodies]


async def _until(session: Session, holds: Callable[[SessionView], bool]) -> SessionView:
    async for view in session.views:
        if holds(view):
            return view
    raise AssertionError("the flow ended before it held")


async def _ended(session: Session) -> CallView:
    """The last call, once its turn has ended."""
    view = await _until(session, lambda view: view.last_turn is not None and not view.turn)
    return view.calls[-1]


async def _locate(turn: ScriptedTurn, text: str) -> None:
    found = await turn.call_client("locate", "Where", arguments=text or "{}")
    await turn.say(found.status)


def _is_offered(view: SessionView) -> bool:
    return any(call.expires_at is not None for call in view.open_calls)


def _said(call: CallView) -> str:
    return " ".join(block.text for block in call.content if isinstance(block, Text))


@pytest.mark.rules("C5.12", "C4.9")
@pytest.mark.parametrize("lost", ["claim_call", "send_result"])
async def test_a_tool_runs_once_though_frames_come_twice_and_replies_are_lost(lost: str) -> None:
    server = ScriptedServer(_locate)
    server.doubled = True
    ran: list[int] = []
    async with connect(server, policy=QUICK) as client:
        client.tool(name="locate")(lambda: ran.append(1))
        session = await client.open()
        server.lose.append(lost)
        assert await session.ask("{}") == "completed"
    assert ran == [1]
    assert not server.lose


@pytest.mark.rules("C5.12")
async def test_a_call_that_another_client_has_is_left_to_it() -> None:
    server = ScriptedServer(_locate)
    ran: list[int] = []
    async with connect(server, policy=QUICK) as client, connect(server, policy=QUICK) as other:
        client.tool(name="locate")(lambda: ran.append(1))
        refusal = refuse("conflict", "The client 'watch' has this call; drop it.")
        server.replies["claim_call"] = deque([refusal])
        session = await client.open(reader="phone")
        watch = await other.open(session.id, reader="watch")
        asking = asyncio.create_task(session.ask("{}"))
        await server.until_called("claim_call", 1)
        (call,) = (await _until(watch, _is_offered)).open_calls
        await watch.claim(call.call)
        await _until(session, lambda view: view.open_calls[0].claimed_by == "watch")
        await watch.send_result(call.call, "there")
        assert await asking == "completed"
        assert server.count("claim_call") == 2  # its own, and that of the watch
    assert ran == []


@pytest.mark.rules("C5.12", "C5.8")
async def test_a_call_whose_deadline_is_over_by_the_servers_clock_waits_for_a_new_offer() -> None:
    offered: asyncio.Future[CallView] = asyncio.get_running_loop().create_future()

    async def script(turn: ScriptedTurn, text: str) -> None:
        calling = asyncio.create_task(turn.call_client("locate", text))
        await asyncio.sleep(0)
        offered.set_result(turn.session.view.open_calls[0])
        await calling
        await turn.say("done")

    server, clock = ScriptedServer(script), ManualClock()
    ran: list[int] = []
    async with connect(server, clock=clock, policy=QUICK) as client:
        client.tool(name="locate")(lambda: ran.append(1))
        session = await client.open()
        clock.advance(9_000_000)
        asking = asyncio.create_task(session.ask("{}"))
        call = await offered
        await _until(session, _is_offered)
        await session.mark_read()
        assert (ran, server.count("claim_call")) == ([], 0)
        again = ClientCallOffered(call=call.call, expires_at=time_at(9001))
        server.sessions[session.id].emit(again, call.turn)
        assert await asking == "done"
    assert ran == [1]


@pytest.mark.rules("C5.12")
async def test_a_function_is_cancelled_when_its_turn_is_interrupted() -> None:
    server = ScriptedServer(_locate)
    begun, stopped = asyncio.Event(), asyncio.Event()
    async with connect(server, policy=QUICK) as client:

        @client.tool
        async def locate() -> None:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                stopped.set()

        session = await client.open()
        await session.prompt("{}")
        await begun.wait()
        await session.interrupt()
        await stopped.wait()
    assert server.count("send_result") == 0


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize("taken", [False, True])
async def test_a_call_that_is_offered_to_all_once_more_is_claimed_again_while_it_runs(
    taken: bool,
) -> None:
    server = ScriptedServer(_locate)
    begun, go, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ran: list[int] = []
    async with connect(server, policy=QUICK) as client:

        @client.tool(idempotent=True)
        async def locate() -> str:
            ran.append(1)
            begun.set()
            try:
                await go.wait()
            except asyncio.CancelledError:
                stopped.set()
                raise
            return "here"

        session = await client.open(reader="phone")
        asking = asyncio.create_task(session.ask("{}"))
        await begun.wait()
        log = server.sessions[session.id]
        call = log.view.open_calls[0]
        if taken:
            refusal = refuse("conflict", "The client 'watch' has this call; drop it.")
            server.replies["claim_call"] = deque([refusal])
        log.emit(ClientCallOffered(call=call.call, expires_at=time_at(9900)), call.turn)
        if taken:
            await stopped.wait()
            await session.interrupt()
            asking.cancel()
            await asyncio.wait([asking])
        else:
            await _until(session, lambda view: view.open_calls[0].expires_at == time_at(9900))
            await _until(session, lambda view: view.open_calls[0].claimed_by == "phone")
            go.set()
            assert await asking == "completed"
    assert ran == [1]
    assert server.count("claim_call") == 2


@pytest.mark.rules("C5.12")
async def test_a_result_of_a_call_that_went_back_to_all_is_claimed_and_sent_again() -> None:
    server = ScriptedServer(_locate)
    async with connect(server, policy=QUICK) as client:
        refusal = refuse("conflict", "Claim it first.", reason="not_claimed")
        gone: list[Reply] = []

        @client.tool
        async def locate() -> str:
            server.replies["claim_call"] = deque(gone)
            return "here"

        server.replies["send_result"] = deque([refusal])
        session = await client.open()
        assert await session.ask("{}") == "completed"
        assert (server.count("claim_call"), server.count("send_result")) == (2, 2)
        gone.append(refuse("gone", "It has ended."))
        server.replies["send_result"] = deque([refusal])
        asking = asyncio.create_task(session.ask("{}"))
        await server.until_called("claim_call", 4)
        await session.interrupt()
        asking.cancel()
        await asyncio.wait([asking])
        assert server.count("send_result") == 3


@pytest.mark.rules("C5.12")
async def test_a_refused_result_is_answered_with_why_and_a_late_one_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer(_locate)
    async with connect(server, policy=QUICK) as client:
        client.tool(name="locate")(lambda: "here")
        server.replies["send_result"] = deque([refuse("rejected", "A picture is none.")])
        session = await client.open()
        assert await session.ask("{}") == "failed"
        assert _said(await _ended(session)) == "The result was refused: A picture is none."
        server.replies["send_result"] = deque([refuse("gone", "The call has ended.")])
        asking = asyncio.create_task(session.ask("{}"))
        await server.until_called("send_result", 3)
        await session.interrupt()
        asking.cancel()
        await asyncio.wait([asking])
        assert "was left out: The call has ended." in caplog.text
    assert server.count("send_result") == 3


@pytest.mark.slow
@pytest.mark.rules("C4.9", "C5.12")
async def test_what_could_not_be_said_is_said_on_the_next_connection() -> None:
    server = ScriptedServer(_locate)
    ran: list[int] = []
    later = refuse("rate_limited", "Later.", retry_after_s=600.0)
    async with connect(server, policy=QUICK) as client:
        client.tool(name="locate")(lambda: ran.append(1))
        server.replies["claim_call"] = deque([later])
        server.replies["send_result"] = deque([later])
        session = await client.open()
        asking = asyncio.create_task(session.ask("{}"))
        for name in ("claim_call", "send_result"):
            await server.until_called(name, 1)
            server.sessions[session.id].hang_up()
        assert await asking == "completed"
    assert ran == [1]


@pytest.mark.rules("C5.12", "C3.3")
async def test_a_replay_of_old_calls_runs_nothing() -> None:
    server = ScriptedServer(_locate)
    ran: list[int] = []
    async with connect(server, policy=QUICK) as client, connect(server, policy=QUICK) as other:
        client.tool(name="locate")(lambda: ran.append(1))
        session, hand = await client.open(), await other.open()
        hand = await other.open(session.id)
        session.stop()
        asking = asyncio.create_task(hand.ask("{}"))
        await _until(hand, _is_offered)
        call = hand.view.open_calls[0].call
        await hand.claim(call)
        await hand.send_result(call, "by hand")
        await asking
        claims = server.count("claim_call")
        session.start()  # each event of the turn comes in a piece of its own
        await _ended(session)
        assert server.count("claim_call") == claims
        assert ran == []
        assert await session.ask("{}") == "completed"
    assert ran == [1]


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize("reader", ["phone", None])
async def test_a_session_that_is_closed_says_what_it_leaves_and_takes_its_tools_back(
    reader: str | None,
) -> None:
    server = ScriptedServer(_locate)
    begun, stopped = asyncio.Event(), asyncio.Event()
    async with connect(server, policy=QUICK) as client:

        @client.tool
        async def locate() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        session = await client.open(reader=reader)
        await session.prompt("{}")
        await begun.wait()
        await session.close()
        assert stopped.is_set()
        await session.close()
    ended = server.sessions[session.id].view.calls[-1]
    assert ended.is_error
    assert "was closed before it had ended" in _said(ended)
    assert _declared(server) == ([("locate",), ()] if reader is None else [("locate",)])


@pytest.mark.rules("C5.12")
async def test_a_close_does_not_wait_for_a_server_that_is_away_or_says_no() -> None:
    server = ScriptedServer(_locate)
    async with connect(server, policy=QUICK) as client:
        client.tool(name="locate")(lambda: "here")
        session = await client.open()
        server.replies["declare_tools"] = deque([refuse("gone", "It is closed.")])
        await session.close()
        assert _declared(server) == [("locate",), ()]
        session = await client.open()
        session.stop()
        await session.close()
    assert _declared(server)[-1] == ("locate",)


async def _resume(server: ScriptedServer, session: SessionId, client: Client) -> CallView:
    """What a call comes to when a program of the same name comes back."""
    again = await client.open(session, reader="phone")
    return await _ended(again)


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize(("effect", "told"), [("write", None), ("read", "here")])
async def test_without_a_journal_a_claimed_call_of_an_earlier_life_runs_only_if_it_is_harmless(
    effect: str, told: str | None
) -> None:
    server = ScriptedServer(_locate)
    async with connect(server, policy=QUICK) as first:
        session = await first.open(reader="phone")
        await session.prompt("{}")
        view = await _until(session, _is_offered)
        await session.claim(view.open_calls[0].call)
        second = Client("", "token", transport=ScriptedTransport(server))
        second.tool(name="locate", effect=effect)(lambda: "here")
        async with second:
            call = await _resume(server, session.id, second)
    if told is None:
        assert call.is_error
        assert "may or may not have had its effect" in _said(call)
    else:
        assert _said(call) == told

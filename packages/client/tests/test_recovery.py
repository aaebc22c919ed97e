"""A line that is cut, refused or silent: no network, and no clock where time matters."""

import asyncio
from collections import deque

import pytest

from towline_client import (
    Client,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    Rebuilt,
    Session,
    Unauthorized,
)
from towline_client.testing import (
    QUICK,
    ManualClock,
    ScriptedServer,
    ScriptedSession,
    ScriptedTransport,
    ScriptedTurn,
    connect,
    refuse,
)
from towline_client.transport import Reply
from towline_protocol import (
    Envelope,
    Event,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    SessionView,
    Text,
    TextDelta,
    VersionMismatch,
    encode,
    encode_event,
    reduce,
)

"""Failures in a row cost the millisecond that the scripted server asks for."""


async def _until_turn_ends(session: Session) -> SessionView:
    """The view once a turn has ended and nothing waits."""
    async for view in session.views:
        if view.last_turn is not None and view.turn is None and not view.queue:
            return view
    raise AssertionError("the flow ended before the turn did")


async def _phase(session: Session, phase: str) -> None:
    async for connection in session.connection:
        if connection.phase == phase:
            return


async def _stored_until_end(session: Session) -> list[Envelope]:
    """Stored events up to the turn's last one."""
    stored: list[Envelope] = []
    async for event in session.events:
        if isinstance(event, Envelope) and event.seq is not None:
            stored.append(event)
            if type(event.event).__name__ == "TurnCompleted":
                return stored
    raise AssertionError("the flow ended before the turn did")


async def _long_talk(turn: ScriptedTurn, text: str) -> None:
    await turn.say("You ", "said: ", text)
    call = turn.propose("now", "the clock", effect="read")
    turn.end_call(call, "09:05")
    await turn.say("It is ", "09:05.")


@pytest.mark.rules("C4.2")
@pytest.mark.parametrize("doubled", [False, True], ids=["once", "doubled"])
async def test_a_stream_cut_at_any_frame_shows_each_event_once_and_the_same_view(
    doubled: bool,
) -> None:
    server = ScriptedServer(_long_talk)
    async with connect(server, policy=QUICK) as client:
        calm = await client.open()
        await calm.ask("Hello")
        frames = len(server.sessions[calm.id].events) * 2
        for cut in range(1, frames):
            session = await client.open()
            server.doubled = doubled
            server.cuts.extend([cut, 2, cut + 1])
            server.sessions[session.id].hang_up()
            await session.prompt("Hello")
            stored = await _stored_until_end(session)
            server.cuts.clear()
            server.doubled = False
            log = server.sessions[session.id]
            assert stored == log.events[1:]
            assert session.view == log.view
            await session.close()
    follows = [call for call in server.calls if call.operation.name == "follow"]
    assert len(follows) > frames


@pytest.mark.rules("C4.2", "C4.3")
async def test_a_lost_event_is_noticed_and_the_view_fetched_anew() -> None:
    server = ScriptedServer(_long_talk)
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        server.left_out.add(5)
        await session.prompt("Hello")
        view = await _until_turn_ends(session)
        assert view == server.sessions[session.id].view
        folded: SessionView | None = None
        async for event in session.events:
            folded = event.view if isinstance(event, Rebuilt) else folded
            if folded is not None and not isinstance(event, Rebuilt):
                folded = reduce(folded, event)
            if folded == view:
                break
        assert folded == view


@pytest.mark.rules("C1.5", "C4.3")
async def test_a_hole_in_a_delta_is_noticed_and_the_view_fetched_anew() -> None:
    go_on = asyncio.Event()
    message = MessageId("msg_1")

    async def skip(turn: ScriptedTurn, text: str) -> None:
        turn.emit(MessageStarted(message=message, role="assistant"))
        turn.emit(TextDelta(message=message, block=0, at=0, text="Hel"))
        far = TextDelta(message=message, block=0, at=9, text="far")
        turn.session.send(encode_event(encode(_envelope(turn.session, far))))
        await go_on.wait()
        turn.emit(TextDelta(message=message, block=0, at=3, text="lo"))
        turn.emit(MessageEnded(message=message, content=(Text(text="Hello"),)))

    server = ScriptedServer(skip)
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        asking = asyncio.create_task(session.ask("!"))
        async for event in session.events:
            if isinstance(event, Rebuilt):
                assert event.view.open_messages[0].content == (Text(text="Hel"),)
                break
        go_on.set()
        assert await asking == "Hello"
        assert session.view == server.sessions[session.id].view
        assert _count(server, "get_view") == 2


def _envelope(session: ScriptedSession, event: Event) -> Envelope:
    return Envelope(session=session.id, time="2026-01-31T09:00:00.000Z", event=event)


def _count(server: ScriptedServer, name: str) -> int:
    return [call.operation.name for call in server.calls].count(name)


@pytest.mark.rules("C3.5", "C4.3")
async def test_a_cursor_ahead_of_the_log_leads_to_the_view() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        await session.ask("Hello")
        log = server.sessions[session.id]
        restored = ScriptedSession(session.id, log.log)
        restored.emit(log.events[0].event)
        server.sessions[session.id] = restored
        log.hang_up()
        async for view in session.views:
            if view == restored.view:
                break
        async for event in session.events:
            if isinstance(event, Rebuilt):
                assert event.view == restored.view
                break


@pytest.mark.rules("C3.2", "C4.3")
async def test_another_log_with_as_many_events_leads_to_the_view() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        log = server.sessions[session.id]
        restored = ScriptedSession(session.id, "log_2")
        restored.emit(log.events[0].event)
        restored.emit(Notice(code="restored", message="The store was restored."))
        server.sessions[session.id] = restored
        log.hang_up()
        async for view in session.views:
            if view.notices:
                break
        assert session.view == restored.view


@pytest.mark.rules("C1.11")
async def test_a_frame_that_cannot_be_read_is_skipped_and_moves_nothing() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        log = server.sessions[session.id]
        log.send(b"data: {broken\n\n")
        log.send(b"event: from_the_future\ndata: {}\n\n")
        log.send(b": a comment\n\n")
        assert await session.ask("Hello") == "You said: Hello"
        assert session.broken == 2
        assert _count(server, "get_view") == 1


async def test_an_event_over_the_bound_is_a_cut() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        server.sessions[session.id].send(b"data: " + b"x" * (9 * 1024 * 1024))
        assert await session.ask("Hello") == "You said: Hello"
        assert _count(server, "follow") == 2


@pytest.mark.rules("C3.6")
async def test_a_planned_close_is_waited_out() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    async with connect(server, clock=clock, policy=QUICK) as client:
        session = await client.open()
        server.sessions[session.id].reset(1500)
        await _phase(session, "retrying")
        assert session.connection.value.next_try_ms == 1500
        assert session.connection.value.failures == 0
        clock.advance(1500)
        await _phase(session, "live")


@pytest.mark.rules("C4.5")
async def test_a_silent_stream_is_given_up_after_45_s_and_taken_up_again() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    async with connect(server, clock=clock, policy=QUICK) as client:
        session = await client.open()
        clock.advance(44_999)
        assert await session.ask("still there") == "You said: still there"
        clock.advance(44_999)
        assert session.connection.value.phase == "live"
        assert _count(server, "follow") == 1
        changes = aiter(session.connection)
        await anext(changes)
        clock.advance(1)
        await anext(changes)
        await _phase(session, "live")
        assert _count(server, "follow") == 2
        assert len(server.sessions[session.id].readers) == 1


@pytest.mark.rules("C4.6", "S39")
async def test_a_revoked_credential_is_asked_for_twice_more_then_the_line_is_given_up() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    asked: list[int] = []

    async def credential() -> str:
        asked.append(clock.now_ms())
        return f"token {len(asked)}"

    transport = ScriptedTransport(server)
    async with (
        asyncio.timeout(10),
        server,
        Client("", credential, transport=transport, clock=clock) as client,
    ):
        session = await client.open()
        before = len(asked)
        no = refuse("unauthorized", "The token was revoked; sign in again.")
        server.replies["follow"] = _many(no, 3)
        server.sessions[session.id].hang_up()
        await _phase(session, "auth_expired")
        async for connection in session.connection:
            if connection.next_try_ms is not None:
                break
        clock.advance(1000)
        await _phase(session, "failed")
        assert asked[before:] == [0, 0, 1000]
        fault = session.view.fault
        assert fault is not None
        assert (fault.code, fault.scope, fault.details) == (
            "unauthorized",
            "client.auth",
            {"attempts": 2},
        )
        with pytest.raises(Unauthorized, match="revoked"):
            await anext(session.events)
        with pytest.raises(Unauthorized, match="revoked"):
            await session.ask("still there?")
        assert server.calls[-1].token is not None
        assert server.calls[-1].token not in repr(server.calls[-1])
        session.start()
        await _phase(session, "live")
        assert session.view.fault is None
        assert await session.ask("and now?") == "You said: and now?"


def _many(reply: Reply, count: int):

    return deque([reply] * count)


@pytest.mark.rules("C2.1", "C4.1")
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"content-type": "text/html"}, "missing_header"),
        ({"towline-contract": "soon", "content-type": "text/event-stream"}, "bad_header"),
        ({"towline-contract": "1", "content-type": "text/html"}, "not_json"),
    ],
)
async def test_a_page_that_no_towline_server_sent_ends_the_line_with_the_reason(
    headers: dict[str, str], reason: str
) -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        page = Reply(status=200, headers=headers, body=b"<html>Sign in to the network</html>")
        server.replies["follow"] = _many(page, 1)
        server.sessions[session.id].hang_up()
        await _phase(session, "failed")
        error = session.connection.value.error
        assert isinstance(error, ContractUnavailable)
        assert error.reason == reason
        with pytest.raises(ContractUnavailable):
            async for _ in session.views:
                pass


@pytest.mark.rules("C2.1")
async def test_a_server_of_another_version_ends_the_line() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        newer = Reply(status=200, headers={"towline-contract": "2"})
        server.replies["follow"] = _many(newer, 1)
        server.sessions[session.id].hang_up()
        await _phase(session, "failed")
        assert isinstance(session.connection.value.error, VersionMismatch)


@pytest.mark.rules("C4.7", "S39")
@pytest.mark.parametrize("status", [401, 404, 444, 502])
async def test_an_error_page_of_a_proxy_is_a_cut_like_any_other(status: int) -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        body = b"" if status == 444 else b"<html>"
        page = Reply(status=status, headers={"content-type": "text/html"}, body=body)
        server.replies["follow"] = _many(page, 3)
        server.sessions[session.id].hang_up()
        assert await session.ask("Hello") == "You said: Hello"
        assert _count(server, "follow") == 5


@pytest.mark.rules("C4.4")
async def test_a_session_that_is_deleted_meanwhile_is_gone() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        log = server.sessions.pop(session.id)
        log.hang_up()
        await _phase(session, "failed")
        with pytest.raises(CommandRejected) as caught:
            await anext(session.events)
        assert caught.value.code == "not_found"
        assert session.view.fault is not None


@pytest.mark.rules("C4.7")
async def test_stop_drops_the_stream_and_start_goes_on_where_it_stood() -> None:
    ended = asyncio.Event()

    async def talk(turn: ScriptedTurn, text: str) -> None:
        await turn.say(text)
        ended.set()

    server = ScriptedServer(talk)
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        log = server.sessions[session.id]
        session.stop()
        session.stop()
        await _phase(session, "idle")
        await session.prompt("while away")
        await ended.wait()
        assert not log.readers
        assert session.view.seq == 1
        session.start()
        session.start()
        view = await _until_turn_ends(session)
        assert view == log.view
        assert server.calls[-1].headers["last-event-id"] == "1"


@pytest.mark.rules("C4.3")
async def test_back_late_in_mid_turn_the_view_is_fetched_anew() -> None:
    clock = ManualClock()
    go_on = asyncio.Event()

    async def slow(turn: ScriptedTurn, text: str) -> None:
        await turn.say(text)
        await go_on.wait()

    server = ScriptedServer(slow)
    async with connect(server, clock=clock, policy=QUICK) as client:
        session = await client.open()
        await session.prompt("Hello")
        async for view in session.views:
            if view.turn is not None and len(view.messages) == 2:
                break
        session.stop()
        go_on.set()
        clock.advance(60_001)
        session.start()
        assert await _until_turn_ends(session) == server.sessions[session.id].view
        assert _count(server, "get_view") == 2


async def test_a_bug_in_the_line_reaches_every_flow_and_close() -> None:
    server = ScriptedServer()
    async with asyncio.timeout(10), server:
        client = Client("", _broken_credential, transport=ScriptedTransport(server))
        log = server.add_session()
        with pytest.raises(ZeroDivisionError):
            await client.open(log.id)
        with pytest.raises(ZeroDivisionError):
            await client.close()


async def test_open_says_what_is_wrong_instead_of_waiting() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        with pytest.raises(CommandRejected) as caught:
            await client.open("ses_none")
        assert (caught.value.code, caught.value.status) == ("not_found", 404)
        log = server.add_session()
        server.lose.extend(["get_view"] * 9)
        with pytest.raises(ConnectionLost):
            await client.open(log.id)
        server.lose.clear()
        assert (await client.open(log.id)).view == log.view


async def test_a_server_error_on_the_stream_is_waited_out_however_long_its_page_is() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        head = {"towline-contract": "1", "content-type": "text/plain"}
        server.replies["follow"] = _many(Reply(status=500, headers=head, body=b"x" * 10**6), 3)
        server.sessions[session.id].hang_up()
        assert await session.ask("Hello") == "You said: Hello"
        assert _count(server, "follow") == 5


async def test_a_line_that_is_cancelled_ends_its_flows() -> None:
    async with connect(ScriptedServer(), policy=QUICK) as client:
        session = await client.open()
        for task in asyncio.all_tasks():
            if task.get_name() == f"line of {session.id}":
                task.cancel()
        assert [view async for view in session.views] == [session.view]
        await session.close()


async def _broken_credential() -> str:
    return str(1 // 0)


@pytest.mark.rules("C4.5")
async def test_a_wait_for_the_next_try_can_be_cut_short() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    async with connect(server, clock=clock, policy=QUICK) as client:
        session = await client.open()
        session.retry_now()  # nothing is waited for
        server.sessions[session.id].reset(60_000)
        await _phase(session, "retrying")
        assert session.connection.value.next_try_ms == 60_000
        session.retry_now()
        await _phase(session, "live")
        assert clock.now_ms() == 0

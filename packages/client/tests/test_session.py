"""Sessions against a scripted server: no network, and no clock where time matters."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from towline_client import (
    Client,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    LinkPolicy,
    Rebuilt,
    Session,
    SessionEvent,
    TurnUnfinished,
    Unauthorized,
)
from towline_client.testing import (
    ManualClock,
    ScriptedServer,
    ScriptedSession,
    ScriptedTransport,
    ScriptedTurn,
    refuse,
)
from towline_client.transport import Reply
from towline_protocol import (
    Envelope,
    Event,
    Fault,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    PermissionId,
    Preview,
    SessionClosed,
    SessionView,
    Text,
    TextDelta,
    TurnFailed,
    Usage,
    UsageError,
    VersionMismatch,
    encode,
    encode_event,
    reduce,
)

_QUICK = LinkPolicy(first_ms=0, patience=1_000_000)
"""Failures in a row cost the millisecond that the scripted server asks for."""


@asynccontextmanager
async def _connect(
    server: ScriptedServer, *, policy: LinkPolicy = _QUICK, clock: ManualClock | None = None
) -> AsyncGenerator[Client]:
    transport = ScriptedTransport(server)
    async with asyncio.timeout(10), server:
        async with Client("", "token", transport=transport, policy=policy, clock=clock) as client:
            yield client
        assert transport.closed


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


async def _read(session: Session, count: int) -> list[SessionEvent]:
    events: list[SessionEvent] = []
    async for event in session.events:
        events.append(event)
        if len(events) == count:
            break
    return events


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


async def test_ask_returns_the_last_text_of_the_turn() -> None:
    async with _connect(ScriptedServer(_long_talk)) as client:
        session = await client.open()
        assert await session.ask("Hello") == "It is 09:05."


async def test_ask_waits_for_its_own_turn_when_another_one_runs() -> None:
    async with _connect(ScriptedServer()) as client:
        session = await client.open()
        answers = await asyncio.gather(*(session.ask(text) for text in ("one", "two", "three")))
        assert answers == ["You said: one", "You said: two", "You said: three"]


async def test_ask_says_why_a_turn_failed() -> None:
    async def fail(turn: ScriptedTurn, text: str) -> None:
        del text
        fault = Fault(code="provider_rate_limit", message="Too many requests; wait a minute.")
        turn.emit(TurnFailed(fault=fault, usage=Usage()))

    async with _connect(ScriptedServer(fail)) as client:
        session = await client.open()
        with pytest.raises(TurnUnfinished, match="failed: Too many requests") as caught:
            await session.ask("Hello")
        assert caught.value.code == "provider_rate_limit"
        assert caught.value.fault().message == "Too many requests; wait a minute."


async def test_ask_says_that_a_turn_was_stopped() -> None:
    started = asyncio.Event()

    async def hang(turn: ScriptedTurn, text: str) -> None:
        del turn, text
        started.set()
        await asyncio.Event().wait()

    async with _connect(ScriptedServer(hang)) as client:
        session = await client.open()
        asking = asyncio.create_task(session.ask("Hello"))
        await started.wait()
        stopped = await session.interrupt()
        assert stopped.turn is not None
        with pytest.raises(TurnUnfinished, match="stopped by the user") as caught:
            await asking
        assert caught.value.outcome == "cancelled"
        assert caught.value.fault().code == "internal_error"


async def test_ask_on_a_session_that_closes_says_so() -> None:
    async def close(turn: ScriptedTurn, text: str) -> None:
        del text
        turn.session.emit(SessionClosed(reason="done"))
        await asyncio.Event().wait()

    async with _connect(ScriptedServer(close)) as client:
        session = await client.open()
        with pytest.raises(ConnectionLost, match="closed before the turn ended"):
            await session.ask("Hello")
        await session.close()
        assert session.closed


async def test_events_gives_each_stored_event_once_in_order_and_the_deltas() -> None:
    server = ScriptedServer(_long_talk)
    async with _connect(server) as client:
        session = await client.open()
        await session.prompt("Hello")
        await _until_turn_ends(session)
        log = server.sessions[session.id].events
        stored: list[Envelope] = []
        deltas: list[str] = []
        async for event in session.events:
            assert isinstance(event, Envelope)
            if event.seq is None:
                assert isinstance(event.event, TextDelta)
                deltas.append(event.event.text)
            else:
                stored.append(event)
            if event.seq == len(log):
                break
        assert stored == log[1:]  # the session's own first event is in the view it was opened with
        assert deltas == ["You ", "said: ", "Hello", "It is ", "09:05."]


async def test_views_skips_what_a_slow_reader_missed() -> None:
    async with _connect(ScriptedServer(_long_talk)) as client:
        session = await client.open()
        await session.ask("Hello")
        views = [await anext(session.views), session.view]
        assert views[0] is views[1]


@pytest.mark.rules("C4.2", "S01")
@pytest.mark.parametrize("doubled", [False, True], ids=["once", "doubled"])
async def test_a_stream_cut_at_any_frame_shows_each_event_once_and_the_same_view(
    doubled: bool,
) -> None:
    server = ScriptedServer(_long_talk)
    async with _connect(server) as client:
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
    async with _connect(server) as client:
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
    async with _connect(server) as client:
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


@pytest.mark.rules("C3.5", "C4.3", "S02")
async def test_a_cursor_ahead_of_the_log_leads_to_the_view() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        session = await client.open()
        await session.ask("Hello")
        log = server.sessions[session.id]
        restored = ScriptedSession(session.id, "log_2")
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
    async with _connect(server) as client:
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


@pytest.mark.rules("C1.11", "S09")
async def test_a_frame_that_cannot_be_read_is_skipped_and_moves_nothing() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        session = await client.open()
        log = server.sessions[session.id]
        log.send(b"data: {broken\n\n")
        log.send(b"event: from_the_future\ndata: {}\n\n")
        log.send(b": a comment\n\n")
        assert await session.ask("Hello") == "You said: Hello"


async def test_an_event_over_the_bound_is_a_cut() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        session = await client.open()
        server.sessions[session.id].send(b"data: " + b"x" * (9 * 1024 * 1024))
        assert await session.ask("Hello") == "You said: Hello"
        assert _count(server, "follow") == 2


@pytest.mark.rules("C3.6")
async def test_a_planned_close_is_waited_out() -> None:
    clock = ManualClock()
    server = ScriptedServer()
    async with _connect(server, clock=clock) as client:
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
    async with _connect(server, clock=clock) as client:
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
    async with _connect(server) as client:
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
    async with _connect(server) as client:
        session = await client.open()
        newer = Reply(status=200, headers={"towline-contract": "2"})
        server.replies["follow"] = _many(newer, 1)
        server.sessions[session.id].hang_up()
        await _phase(session, "failed")
        assert isinstance(session.connection.value.error, VersionMismatch)


@pytest.mark.rules("C4.7")
async def test_an_error_page_of_a_proxy_is_a_cut_like_any_other() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        session = await client.open()
        page = Reply(status=502, headers={"content-type": "text/html"}, body=b"<html>")
        server.replies["follow"] = _many(page, 3)
        server.sessions[session.id].hang_up()
        assert await session.ask("Hello") == "You said: Hello"
        assert _count(server, "follow") == 5


@pytest.mark.rules("C4.4")
async def test_a_session_that_is_deleted_meanwhile_is_gone() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        session = await client.open()
        log = server.sessions.pop(session.id)
        log.hang_up()
        await _phase(session, "failed")
        with pytest.raises(CommandRejected) as caught:
            await anext(session.events)
        assert caught.value.code == "not_found"
        assert session.view.fault is not None


@pytest.mark.rules("C2.10", "C3.7")
async def test_a_closed_session_can_be_read_and_its_flows_end() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        first = await client.open()
        await first.ask("Hello")
        server.sessions[first.id].emit(SessionClosed(reason="done"))
        assert [event async for event in first.events]
        again = await client.open(first.id)
        assert again.view.closed == "done"
        assert [view async for view in again.views] == [again.view]
        with pytest.raises(CommandRejected) as caught:
            await again.prompt("more")
        assert caught.value.code == "gone"


@pytest.mark.rules("C4.7")
async def test_stop_drops_the_stream_and_start_goes_on_where_it_stood() -> None:
    ended = asyncio.Event()

    async def talk(turn: ScriptedTurn, text: str) -> None:
        await turn.say(text)
        ended.set()

    server = ScriptedServer(talk)
    async with _connect(server) as client:
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


@pytest.mark.rules("C4.3", "S37")
async def test_back_late_in_mid_turn_the_view_is_fetched_anew() -> None:
    clock = ManualClock()
    go_on = asyncio.Event()

    async def slow(turn: ScriptedTurn, text: str) -> None:
        await turn.say(text)
        await go_on.wait()

    server = ScriptedServer(slow)
    async with _connect(server, clock=clock) as client:
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


async def test_answer_recites_the_digest_and_the_call_runs() -> None:
    async def gated(turn: ScriptedTurn, text: str) -> None:
        preview = Preview(kind="command", text="make test")
        call, option = await turn.ask("run_program", "make test", preview=preview)
        turn.end_call(call, "ok")
        await turn.say(option, text)

    server = ScriptedServer(gated)
    async with _connect(server) as client:
        session = await client.open()
        asking = asyncio.create_task(session.ask("!"))
        async for view in session.views:
            if view.permissions:
                break
        answered = await session.answer(session.view.permissions[0].permission, "allow_once")
        assert answered.option == "allow_once"
        assert await asking == "allow_once!"
        assert b"digest of" in (server.calls[-1].body or b"")
        with pytest.raises(UsageError, match="No open permission"):
            await session.answer(PermissionId("prm_none"), "deny")


async def test_a_reader_who_is_too_slow_is_told_to_go_on_from_the_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("towline_client.pump.MAX_WAITING_EVENTS", 4)
    async with _connect(ScriptedServer(_long_talk)) as client:
        session = await client.open()
        await session.ask("Hello")
        first, *rest = await _read(session, 1)
        assert isinstance(first, Rebuilt)
        view = first.view
        while view != session.view:
            for event in await _read(session, 1):
                rest.append(event)
                assert not isinstance(event, Rebuilt)
                view = reduce(view, event)
        assert view == session.view


async def test_a_bug_in_the_line_reaches_every_flow_and_close() -> None:
    server = ScriptedServer()
    async with asyncio.timeout(10), server:
        client = Client("", _broken_credential, transport=ScriptedTransport(server))
        log = server.add_session()
        with pytest.raises(ZeroDivisionError):
            await client.open(log.id)
        with pytest.raises(ZeroDivisionError):
            await client.close()


async def _broken_credential() -> str:
    return str(1 // 0)


async def test_open_says_what_is_wrong_instead_of_waiting() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        with pytest.raises(CommandRejected) as caught:
            await client.open("ses_none")
        assert (caught.value.code, caught.value.status) == ("not_found", 404)
        log = server.add_session()
        server.lose.extend(["get_view"] * 9)
        with pytest.raises(ConnectionLost):
            await client.open(log.id)
        server.lose.clear()
        assert (await client.open(log.id)).view == log.view


async def test_leaving_the_client_ends_every_line_and_task() -> None:
    server = ScriptedServer()
    async with _connect(server) as client:
        logs = [server.sessions[(await client.open()).id] for _ in range(5)]
        assert all(log.readers for log in logs)
    assert not any(log.readers for log in logs)
    assert asyncio.all_tasks() == {asyncio.current_task()}

"""Sessions against a scripted server: no network, and no clock where time matters."""

import asyncio

import msgspec
import pytest

from towline_client import (
    CommandRejected,
    ConnectionLost,
    PromptWatch,
    Rebuilt,
    Session,
    SessionEvent,
    TurnUnfinished,
    follow_prompt,
)
from towline_client.testing import (
    QUICK,
    ScriptedServer,
    ScriptedTurn,
    connect,
)
from towline_client.testing.log import frame_of
from towline_protocol import (
    Envelope,
    Fault,
    Notice,
    Option,
    PermissionId,
    Preview,
    PromptAdmitted,
    PromptId,
    QuestionItem,
    SessionClosed,
    SessionView,
    TextDelta,
    TurnFailed,
    Usage,
    UsageError,
    reduce,
)

"""Failures in a row cost the millisecond that the scripted server asks for."""


async def _until_turn_ends(session: Session) -> SessionView:
    """The view once a turn has ended and nothing waits."""
    async for view in session.views:
        if view.last_turn is not None and view.turn is None and not view.queue:
            return view
    raise AssertionError("the flow ended before the turn did")


async def _read(session: Session, count: int) -> list[SessionEvent]:
    events: list[SessionEvent] = []
    async for event in session.events:
        events.append(event)
        if len(events) == count:
            break
    return events


async def _long_talk(turn: ScriptedTurn, text: str) -> None:
    await turn.say("You ", "said: ", text)
    call = turn.propose("now", "the clock", effect="read")
    turn.end_call(call, "09:05")
    await turn.say("It is ", "09:05.")


async def test_ask_returns_the_last_text_of_the_turn() -> None:
    async with connect(ScriptedServer(_long_talk), policy=QUICK) as client:
        session = await client.open()
        assert await session.ask("Hello") == "It is 09:05."


async def test_ask_waits_for_its_own_turn_when_another_one_runs() -> None:
    async with connect(ScriptedServer(), policy=QUICK) as client:
        session = await client.open()
        answers = await asyncio.gather(*(session.ask(text) for text in ("one", "two", "three")))
        assert answers == ["You said: one", "You said: two", "You said: three"]


async def test_ask_says_why_a_turn_failed() -> None:
    async def fail(turn: ScriptedTurn, text: str) -> None:
        del text
        fault = Fault(code="provider_rate_limit", message="Too many requests; wait a minute.")
        turn.emit(TurnFailed(fault=fault, usage=Usage()))

    async with connect(ScriptedServer(fail), policy=QUICK) as client:
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

    async with connect(ScriptedServer(hang), policy=QUICK) as client:
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

    async with connect(ScriptedServer(close), policy=QUICK) as client:
        session = await client.open()
        with pytest.raises(ConnectionLost, match="closed before the turn ended"):
            await session.ask("Hello")
        await session.close()
        assert session.closed


async def test_events_gives_each_stored_event_once_in_order_and_the_deltas() -> None:
    server = ScriptedServer(_long_talk)
    async with connect(server, policy=QUICK) as client:
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
    async with connect(ScriptedServer(_long_talk), policy=QUICK) as client:
        session = await client.open()
        await session.ask("Hello")
        views = [await anext(session.views), session.view]
        assert views[0] is views[1]


@pytest.mark.rules("C2.10", "C3.7")
async def test_a_closed_session_can_be_read_and_its_flows_end() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
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


async def test_answer_recites_the_digest_and_the_call_runs() -> None:
    async def gated(turn: ScriptedTurn, text: str) -> None:
        preview = Preview(kind="command", text="make test")
        call, option = await turn.ask("run_program", "make test", preview=preview)
        turn.end_call(call, "ok")
        await turn.say(option, text)

    server = ScriptedServer(gated)
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        asking = asyncio.create_task(session.ask("!", others_answer=True))
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
    async with connect(ScriptedServer(_long_talk), policy=QUICK) as client:
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


async def test_what_a_too_slow_reader_is_given_whole_does_not_come_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("towline_client.pump.MAX_WAITING_EVENTS", 4)
    server = ScriptedServer(_long_talk)
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        truth = server.sessions[session.id]
        readers, truth.readers = truth.readers, []
        told = [truth.emit(Notice(code="n", message="m")) for _ in range(7)]
        truth.readers = readers
        truth.send(b"".join(frame_of(envelope) for envelope in told))  # in one chunk
        async for view in session.views:
            if view.seq == truth.view.seq:
                break
        truth.emit(Notice(code="n", message="one more"))
        rebuilt, last = await _read(session, 2)
        assert isinstance(rebuilt, Rebuilt)
        assert isinstance(last, Envelope)
        assert (rebuilt.view.seq, last.seq) == (8, 9)


@pytest.mark.rules("C5.10")
async def test_a_second_and_a_late_answer_are_told_so() -> None:
    async def gated(turn: ScriptedTurn, text: str) -> None:
        call, _ = await turn.ask("t", text, preview=Preview(kind="text", text=text))
        turn.end_call(call, "ok")

    async with connect(ScriptedServer(gated), policy=QUICK) as client:
        session = await client.open()
        await session.prompt("!")
        async for view in session.views:
            if view.permissions:
                break
        request = session.view.permissions[0]
        other = msgspec.structs.replace(request, digest="of another call")
        with pytest.raises(CommandRejected) as caught:
            await session.answer(other, "allow_once")
        assert caught.value.code == "conflict"
        await session.answer(request, "allow_once")
        with pytest.raises(CommandRejected) as caught:
            await session.answer(request, "deny")
        assert caught.value.code == "gone"


async def test_after_close_start_and_stop_mean_nothing() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        session = await client.open()
        assert session.server_now is not None
        await session.close()
        session.start()
        session.stop()
        await session.close()
        assert session.closed
        assert not server.sessions[session.id].readers


def _queued(*prompts: str) -> SessionView:
    session = ScriptedServer().add_session()
    for prompt in prompts:
        session.emit(PromptAdmitted(prompt=PromptId(prompt), content=(), when="auto"))
    return session.view


def test_a_prompt_that_was_seen_waiting_and_is_nowhere_was_taken_back() -> None:
    watch = PromptWatch(prompt=PromptId("p"))
    watch, outcome = follow_prompt(watch, _queued())
    assert outcome is None
    watch, outcome = follow_prompt(watch, _queued("p", "q"))
    assert outcome is None
    _, outcome = follow_prompt(watch, _queued("q"))
    assert outcome is not None
    assert outcome.kind == "withdrawn"


async def test_leaving_the_client_ends_every_line_and_task() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        logs = [server.sessions[(await client.open()).id] for _ in range(5)]
        assert all(log.readers for log in logs)
    assert not any(log.readers for log in logs)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_answers_to_a_question_reach_the_turn_and_late_ones_are_told_so() -> None:
    option = Option(id="option_1", label="Red")
    items = (
        QuestionItem(id="item_1", prompt="Which?", options=(option,)),
        QuestionItem(id="item_2", prompt="What?", free_text=True),
    )

    async def asks(turn: ScriptedTurn, text: str) -> None:
        answers = await turn.question(*items)
        await turn.say(text, *answers["item_1"], *answers["item_2"])

    async with connect(ScriptedServer(asks), policy=QUICK) as client:
        session = await client.open()
        asking = asyncio.create_task(session.ask("!", others_answer=True))
        async for view in session.views:
            if view.questions:
                break
        (question,) = session.view.questions
        (row,) = (await client.list_requests()).requests
        assert (row.session, row.kind, row.question) == (session.id, "question", question)
        given = {"item_1": "option_1", "item_2": ["or pink"]}
        answered = await session.answer_question(question, given)
        assert answered.answers == {"item_1": ("option_1",), "item_2": ("or pink",)}
        assert await asking == "!option_1or pink"
        with pytest.raises(CommandRejected) as caught:
            await session.answer_question(question.question, given)
        assert caught.value.code == "gone"

"""Calls of a program's own tools: declared, claimed, run, answered, each once."""

import asyncio
import base64
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from towline_client import CallContext, CallFailed, Client, CommandRejected, LinkPolicy, Session
from towline_client.bridge.calls import MAX_AT_ONCE
from towline_client.testing import (
    ManualClock,
    ScriptedServer,
    ScriptedTransport,
    ScriptedTurn,
    refuse,
)
from towline_client.testing.log import time_at
from towline_client.transport import Call, Reply
from towline_protocol import (
    CallView,
    ClientCallOffered,
    ClientTool,
    CreateSession,
    DeclareTools,
    Image,
    SendResult,
    SessionId,
    SessionView,
    Text,
    UsageError,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
QUICK = LinkPolicy(first_ms=0, patience=1_000_000)


class Calls(ScriptedTransport):
    """What a client asks of a scripted server."""

    def __init__(self, server: ScriptedServer) -> None:
        super().__init__(server)
        self._calls = server.calls
        self._news = asyncio.Event()

    async def request(self, call: Call) -> Reply:
        try:
            return await super().request(call)
        finally:
            self._news.set()

    async def until(self, name: str, count: int) -> None:
        """Wait until an operation was asked for so often."""
        while self.count(name) < count:
            self._news.clear()
            await self._news.wait()

    def count(self, name: str) -> int:
        return sum(call.operation.name == name for call in self._calls)

    def bodies(self, name: str, kind: type[Any]) -> list[Any]:
        return [
            msgspec.json.decode(call.body or b"", type=kind)
            for call in self._calls
            if call.operation.name == name
        ]

    @property
    def declared(self) -> list[tuple[str, ...]]:
        """The names of each declaration."""
        bodies = self.bodies("declare_tools", DeclareTools)
        return [tuple(tool.name for tool in body.tools) for body in bodies]


@asynccontextmanager
async def _connect(
    server: ScriptedServer, clock: ManualClock | None = None
) -> AsyncGenerator[tuple[Client, Calls]]:
    calls = Calls(server)
    async with (
        asyncio.timeout(10),
        server,
        Client("", "token", transport=calls, policy=QUICK, clock=clock) as client,
    ):
        yield client, calls


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


@pytest.mark.rules("C5.12")
async def test_a_tool_is_declared_when_a_session_is_opened_and_answers_its_calls() -> None:
    server = ScriptedServer(_locate)
    seen: list[tuple[str, str, str]] = []
    async with _connect(server) as (client, calls):

        @client.tool
        async def locate(context: CallContext, precise: bool = False) -> dict[str, Any]:
            seen.append((context.call, context.session, context.expires_at))
            return {"lat": 1.5, "precise": precise}

        session = await client.open(reader="phone")
        assert calls.declared == [("locate",)]
        assert await session.ask('{"precise": true}') == "completed"
        call = await _ended(session)
        assert _said(call) == '{"lat":1.5,"precise":true}'
        assert call.claimed_by == "phone"
        assert seen == [(call.call, session.id, time_at(9000))]
        attached = await client.open(session.id, reader="watch")
        assert [body.reader for body in calls.bodies("declare_tools", DeclareTools)] == [
            "phone",
            "watch",
        ]
        await attached.close()


@pytest.mark.rules("C5.12")
async def test_a_session_that_begins_with_a_prompt_has_the_tools_from_its_first_turn() -> None:
    server = ScriptedServer(_locate)
    async with _connect(server) as (client, calls):
        client.tool(name="locate")(lambda: "here")
        client.tool(name="ring")(lambda: "rang")
        own = ClientTool(name="ring", description="Mine.", parameters={"type": "object"})
        new = CreateSession(prompt=(Text(text="{}"),), tools=(own,))
        session = await client.open(new=new)
        made = calls.bodies("create_session", CreateSession)[0]
        assert [(tool.name, tool.description) for tool in made.tools] == [
            ("ring", "Mine."),
            ("locate", "locate"),
        ]
        assert _said(await _ended(session)) == "here"
        await client.open(new=CreateSession(title="No prompt"))
        assert calls.bodies("create_session", CreateSession)[1].tools == ()


@pytest.mark.rules("C5.12")
async def test_tools_are_declared_again_on_each_connection_and_when_one_is_added() -> None:
    server = ScriptedServer(_locate)
    async with _connect(server) as (client, calls):
        client.tool(name="ring")(lambda: "rang")
        session = await client.open(reader="phone")
        server.sessions[session.id].hang_up()
        await calls.until("declare_tools", 2)
        client.tool(name="locate")(lambda: "here")
        assert await session.ask("{}") == "completed"
    assert calls.declared == [("ring",), ("ring",), ("ring", "locate")]


async def test_a_program_without_tools_declares_none() -> None:
    server = ScriptedServer()
    async with _connect(server) as (client, calls):
        await (await client.open()).ask("Hello")
    assert calls.declared == []


@pytest.mark.rules("C5.12")
async def test_tools_that_are_not_taken_come_out_of_open_and_later_only_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer()
    server.replies["declare_tools"] = deque([refuse("rejected", "There is a tool 'ring'.")])
    async with _connect(server) as (client, _):
        client.tool(name="ring")(lambda: "rang")
        with pytest.raises(CommandRejected, match="There is a tool 'ring'"):
            await client.open()
        session = await client.open()
        server.replies["declare_tools"] = deque([refuse("rejected", "Not this one.")])
        client.tool(name="other")(lambda: "other")
        await session.ask("Hello")
        assert "were not declared: Not this one." in caplog.text
        assert not session.closed


async def test_a_closed_session_can_be_read_by_a_program_with_tools() -> None:
    server = ScriptedServer()
    async with _connect(server) as (other, _), _connect(server) as (client, calls):
        session = server.add_session()
        await other.life.close(session.id)
        client.tool(name="ring")(lambda: "rang")
        assert (await client.open(session.id)).view.closed is not None
        assert calls.declared == []


async def test_what_is_no_declaration_is_told_apart_with_a_way_on() -> None:
    server = ScriptedServer()
    async with _connect(server) as (client, _):
        session = await client.open()
        with pytest.raises(UsageError, match=r"takes ClientTool, not .*@client\.tool"):
            await session.declare_tools(_locate)  # pyright: ignore[reportArgumentType]


class _Odd(Exception):
    pass


async def _raise(error: BaseException) -> None:
    raise error


def _say_again(word: str) -> str:
    return word


async def _cancel_itself() -> None:
    await asyncio.create_task(_raise(asyncio.CancelledError()))


_BAD: list[tuple[Callable[..., Any], str]] = [
    (lambda: _raise(_Odd("sk-secret\nmore")), "locate failed with _Odd."),
    (lambda: _raise(CallFailed("The GPS is off.")), "The GPS is off."),
    (lambda: _raise(SystemExit(1)), "locate failed with SystemExit."),
    (_cancel_itself, "locate was cancelled by its own code."),
    (lambda: Image(media_type="image/gif", data=PNG), "A tool returned a picture as"),
    (_say_again, "The arguments of locate do not fit"),
]


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize(("function", "told"), _BAD)
async def test_what_a_tool_raises_is_one_line_for_the_model_and_the_session_goes_on(
    function: Callable[..., Any], told: str
) -> None:
    server = ScriptedServer(_locate)
    async with _connect(server) as (client, _):
        client.tool(name="locate")(function)
        session = await client.open()
        assert await session.ask("{}") == "failed"
        call = await _ended(session)
        assert call.is_error
        assert _said(call).startswith(told)
        assert "\n" not in _said(call)
        assert "sk-secret" not in _said(call)
        assert await session.ask("{}") == "failed"


@pytest.mark.rules("C5.12")
async def test_a_tool_shows_how_far_it_is_the_newest_word_first() -> None:
    server = ScriptedServer(_locate)
    go = asyncio.Event()
    async with _connect(server) as (client, calls):

        @client.tool
        async def locate(context: CallContext) -> str:
            context.progress("one", 0.1)
            context.progress("two", 0.5)
            with pytest.raises(UsageError, match="no number from 0 to 1"):
                context.progress("three", 2.0)
            await go.wait()
            return "here"

        session = await client.open()
        asking = asyncio.create_task(session.ask("{}"))
        shown = await _until(
            session, lambda view: bool(view.open_calls and view.open_calls[0].progress)
        )
        assert (shown.open_calls[0].progress, shown.open_calls[0].fraction) == ("two", 0.5)
        go.set()
        assert await asking == "completed"
    assert calls.count("report_progress") == 1


async def test_progress_from_a_thread_arrives_and_a_lost_word_does_no_harm() -> None:
    server = ScriptedServer(_locate)
    server.replies["report_progress"] = deque([refuse("gone", "It has ended.")])
    contexts: list[CallContext] = []
    async with _connect(server) as (client, _):

        @client.tool
        def locate(context: CallContext) -> str:
            contexts.append(context)
            context.progress("one")
            return "here"

        session = await client.open()
        assert await session.ask("{}") == "completed"
        contexts[0].progress("late")
        await session.ask("{}")
    assert "late" not in str([call.body for call in server.calls])


@pytest.mark.rules("C5.12", "C4.9")
@pytest.mark.parametrize("lost", ["claim_call", "send_result"])
async def test_a_tool_runs_once_though_frames_come_twice_and_replies_are_lost(lost: str) -> None:
    server = ScriptedServer(_locate)
    server.doubled = True
    ran: list[int] = []
    async with _connect(server) as (client, _):
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
    async with _connect(server) as (client, calls), _connect(server) as (other, _):
        client.tool(name="locate")(lambda: ran.append(1))
        refusal = refuse("conflict", "The client 'watch' has this call; drop it.")
        server.replies["claim_call"] = deque([refusal])
        session = await client.open(reader="phone")
        watch = await other.open(session.id, reader="watch")
        asking = asyncio.create_task(session.ask("{}"))
        await calls.until("claim_call", 1)
        (call,) = (await _until(watch, _is_offered)).open_calls
        await watch.claim(call.call)
        await _until(session, lambda view: view.open_calls[0].claimed_by == "watch")
        await watch.send_result(call.call, "there")
        assert await asking == "completed"
        assert calls.count("claim_call") == 2  # its own, and that of the watch
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
    async with _connect(server, clock) as (client, calls):
        client.tool(name="locate")(lambda: ran.append(1))
        session = await client.open()
        clock.advance(9_000_000)
        asking = asyncio.create_task(session.ask("{}"))
        call = await offered
        await _until(session, _is_offered)
        await session.mark_read()
        assert (ran, calls.count("claim_call")) == ([], 0)
        again = ClientCallOffered(call=call.call, expires_at=time_at(9001))
        server.sessions[session.id].emit(again, call.turn)
        assert await asking == "done"
    assert ran == [1]


@pytest.mark.rules("C5.12")
async def test_a_function_is_cancelled_when_its_turn_is_interrupted() -> None:
    server = ScriptedServer(_locate)
    begun, stopped = asyncio.Event(), asyncio.Event()
    async with _connect(server) as (client, calls):

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
    assert calls.count("send_result") == 0


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize("taken", [False, True])
async def test_a_call_that_is_offered_to_all_once_more_is_claimed_again_while_it_runs(
    taken: bool,
) -> None:
    server = ScriptedServer(_locate)
    begun, go, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ran: list[int] = []
    async with _connect(server) as (client, calls):

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
    assert calls.count("claim_call") == 2


@pytest.mark.rules("C5.12")
async def test_a_result_of_a_call_that_went_back_to_all_is_claimed_and_sent_again() -> None:
    server = ScriptedServer(_locate)
    async with _connect(server) as (client, calls):
        refusal = refuse("conflict", "Claim it first.", reason="not_claimed")
        gone: list[Reply] = []

        @client.tool
        async def locate() -> str:
            server.replies["claim_call"] = deque(gone)
            return "here"

        server.replies["send_result"] = deque([refusal])
        session = await client.open()
        assert await session.ask("{}") == "completed"
        assert (calls.count("claim_call"), calls.count("send_result")) == (2, 2)
        gone.append(refuse("gone", "It has ended."))
        server.replies["send_result"] = deque([refusal])
        asking = asyncio.create_task(session.ask("{}"))
        await calls.until("claim_call", 4)
        await session.interrupt()
        asking.cancel()
        await asyncio.wait([asking])
        assert calls.count("send_result") == 3


@pytest.mark.rules("C5.12")
async def test_a_refused_result_is_answered_with_why_and_a_late_one_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer(_locate)
    async with _connect(server) as (client, calls):
        client.tool(name="locate")(lambda: "here")
        server.replies["send_result"] = deque([refuse("rejected", "A picture is none.")])
        session = await client.open()
        assert await session.ask("{}") == "failed"
        assert _said(await _ended(session)) == "The result was refused: A picture is none."
        server.replies["send_result"] = deque([refuse("gone", "The call has ended.")])
        asking = asyncio.create_task(session.ask("{}"))
        await calls.until("send_result", 3)
        await session.interrupt()
        asking.cancel()
        await asyncio.wait([asking])
        assert "was left out: The call has ended." in caplog.text
    assert calls.count("send_result") == 3


@pytest.mark.rules("C4.9", "C5.12")
async def test_what_could_not_be_said_is_said_on_the_next_connection() -> None:
    server = ScriptedServer(_locate)
    ran: list[int] = []
    later = refuse("rate_limited", "Later.", retry_after_s=600.0)
    async with _connect(server) as (client, calls):
        client.tool(name="locate")(lambda: ran.append(1))
        server.replies["claim_call"] = deque([later])
        server.replies["send_result"] = deque([later])
        session = await client.open()
        asking = asyncio.create_task(session.ask("{}"))
        for name in ("claim_call", "send_result"):
            await calls.until(name, 1)
            server.sessions[session.id].hang_up()
        assert await asking == "completed"
    assert ran == [1]


@pytest.mark.rules("C1.10", "C5.12")
async def test_arguments_that_are_too_long_for_an_event_are_fetched() -> None:
    async def script(turn: ScriptedTurn, text: str) -> None:
        file = (await client.upload(text.encode())).file
        await turn.call_client("locate", "Where", arguments="{…}", arguments_file=file)
        await turn.say("done")

    async with _connect(ScriptedServer(script)) as (client, _):
        client.tool(name="locate")(_say_again)
        session = await client.open()
        assert await session.ask('{"word": "long"}') == "done"
        assert _said(await _ended(session)) == "long"


@pytest.mark.rules("C5.12")
async def test_only_so_many_calls_run_at_once_and_the_rest_is_not_claimed() -> None:
    async def script(turn: ScriptedTurn, text: str) -> None:
        calls = [turn.call_client("locate", text) for _ in range(MAX_AT_ONCE + 2)]
        await asyncio.gather(*calls)
        await turn.say("done")

    server = ScriptedServer(script)
    running: list[int] = []
    full, go = asyncio.Event(), asyncio.Event()
    async with _connect(server) as (client, calls):

        @client.tool
        async def locate() -> None:
            running.append(1)
            if len(running) == MAX_AT_ONCE:
                full.set()
            await go.wait()

        session = await client.open()
        asking = asyncio.create_task(session.ask("{}"))
        await full.wait()
        await session.mark_read()
        assert len(running) == calls.count("claim_call") == MAX_AT_ONCE
        go.set()
        assert await asking == "done"
    assert len(running) == MAX_AT_ONCE + 2


@pytest.mark.rules("C5.12", "C3.3")
async def test_a_replay_of_old_calls_runs_nothing() -> None:
    server = ScriptedServer(_locate)
    ran: list[int] = []
    async with _connect(server) as (client, calls), _connect(server) as (other, _):
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
        claims = calls.count("claim_call")
        session.start()  # each event of the turn comes in a piece of its own
        await _ended(session)
        assert calls.count("claim_call") == claims
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
    async with _connect(server) as (client, calls):

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
    assert calls.declared == ([("locate",), ()] if reader is None else [("locate",)])


@pytest.mark.rules("C5.12")
async def test_a_close_does_not_wait_for_a_server_that_is_away_or_says_no() -> None:
    server = ScriptedServer(_locate)
    async with _connect(server) as (client, calls):
        client.tool(name="locate")(lambda: "here")
        session = await client.open()
        server.replies["declare_tools"] = deque([refuse("gone", "It is closed.")])
        await session.close()
        assert calls.declared == [("locate",), ()]
        session = await client.open()
        session.stop()
        await session.close()
    assert calls.declared[-1] == ("locate",)


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
    async with _connect(server) as (first, _):
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


async def test_a_result_may_be_more_than_text() -> None:
    server = ScriptedServer(_locate)
    async with _connect(server) as (client, calls):
        client.tool(name="locate")(lambda: Image(media_type="image/png", data=PNG))
        session = await client.open()
        assert await session.ask("{}") == "completed"
    (sent,) = calls.bodies("send_result", SendResult)
    assert sent.content == (Image(media_type="image/png", data=PNG),)

"""Calls of a program's own tools: declared, claimed, run, answered, each once."""

import asyncio
import base64
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from towline_client import CallContext, CallFailed, CommandRejected, Session
from towline_client.bridge.calls import MAX_AT_ONCE
from towline_client.testing import (
    QUICK,
    ScriptedServer,
    ScriptedTurn,
    connect,
    refuse,
)
from towline_client.testing.log import time_at
from towline_protocol import (
    CallView,
    ClientTool,
    CreateSession,
    DeclareTools,
    Image,
    SendResult,
    SessionView,
    Text,
    UsageError,
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


def _said(call: CallView) -> str:
    return " ".join(block.text for block in call.content if isinstance(block, Text))


@pytest.mark.rules("C5.12")
async def test_a_tool_is_declared_when_a_session_is_opened_and_answers_its_calls() -> None:
    server = ScriptedServer(_locate)
    seen: list[tuple[str, str, str]] = []
    async with connect(server, policy=QUICK) as client:

        @client.tool
        async def locate(context: CallContext, precise: bool = False) -> dict[str, Any]:
            seen.append((context.call, context.session, context.expires_at))
            return {"lat": 1.5, "precise": precise}

        session = await client.open(reader="phone")
        assert _declared(server) == [("locate",)]
        assert await session.ask('{"precise": true}') == "completed"
        call = await _ended(session)
        assert _said(call) == '{"lat":1.5,"precise":true}'
        assert call.claimed_by == "phone"
        assert seen == [(call.call, session.id, time_at(9000))]
        attached = await client.open(session.id, reader="watch")
        assert [body.reader for body in _bodies(server, "declare_tools", DeclareTools)] == [
            "phone",
            "watch",
        ]
        await attached.close()


@pytest.mark.rules("C5.12")
async def test_a_session_that_begins_with_a_prompt_has_the_tools_from_its_first_turn() -> None:
    server = ScriptedServer(_locate)
    async with connect(server, policy=QUICK) as client:
        client.tool(name="locate")(lambda: "here")
        client.tool(name="ring")(lambda: "rang")
        own = ClientTool(name="ring", description="Mine.", parameters={"type": "object"})
        new = CreateSession(prompt=(Text(text="{}"),), tools=(own,))
        session = await client.open(new=new)
        made = _bodies(server, "create_session", CreateSession)[0]
        assert [(tool.name, tool.description) for tool in made.tools] == [
            ("ring", "Mine."),
            ("locate", "locate"),
        ]
        assert _said(await _ended(session)) == "here"
        await client.open(new=CreateSession(title="No prompt"))
        assert _bodies(server, "create_session", CreateSession)[1].tools == ()


@pytest.mark.rules("C5.12")
async def test_tools_are_declared_again_on_each_connection_and_when_one_is_added() -> None:
    server = ScriptedServer(_locate)
    async with connect(server, policy=QUICK) as client:
        client.tool(name="ring")(lambda: "rang")
        session = await client.open(reader="phone")
        server.sessions[session.id].hang_up()
        await server.until_called("declare_tools", 2)
        client.tool(name="locate")(lambda: "here")
        assert await session.ask("{}") == "completed"
    assert _declared(server) == [("ring",), ("ring",), ("ring", "locate")]


async def test_a_program_without_tools_declares_none() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
        await (await client.open()).ask("Hello")
    assert _declared(server) == []


@pytest.mark.rules("C5.12")
async def test_tools_that_are_not_taken_come_out_of_open_and_later_only_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer()
    server.replies["declare_tools"] = deque([refuse("rejected", "There is a tool 'ring'.")])
    async with connect(server, policy=QUICK) as client:
        client.tool(name="ring")(lambda: "rang")
        with pytest.raises(CommandRejected, match="There is a tool 'ring'"):
            await client.open()
        assert server.sessions == {}, "what nobody knows of is deleted"
        assert [row for row in caplog.records if row.levelno >= logging.WARNING] == []
        session = await client.open()
        server.replies["declare_tools"] = deque([refuse("rejected", "Not this one.")])
        client.tool(name="other")(lambda: "other")
        await session.ask("Hello")
        assert "were not declared: Not this one." in caplog.text
        assert not session.closed


async def test_a_closed_session_can_be_read_by_a_program_with_tools() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as other, connect(server, policy=QUICK) as client:
        session = server.add_session()
        await other.life.close(session.id)
        client.tool(name="ring")(lambda: "rang")
        assert (await client.open(session.id)).view.closed is not None
        assert _declared(server) == []


async def test_what_is_no_declaration_is_told_apart_with_a_way_on() -> None:
    server = ScriptedServer()
    async with connect(server, policy=QUICK) as client:
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
    async with connect(server, policy=QUICK) as client:
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
    async with connect(server, policy=QUICK) as client:

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
    assert server.count("report_progress") == 1


async def test_progress_from_a_thread_arrives_and_a_lost_word_does_no_harm() -> None:
    server = ScriptedServer(_locate)
    server.replies["report_progress"] = deque([refuse("gone", "It has ended.")])
    contexts: list[CallContext] = []
    async with connect(server, policy=QUICK) as client:

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


@pytest.mark.rules("C1.10", "C5.12")
async def test_arguments_that_are_too_long_for_an_event_are_fetched() -> None:
    async def script(turn: ScriptedTurn, text: str) -> None:
        file = (await client.upload(text.encode())).file
        await turn.call_client("locate", "Where", arguments="{…}", arguments_file=file)
        await turn.say("done")

    async with connect(ScriptedServer(script), policy=QUICK) as client:
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
    async with connect(server, policy=QUICK) as client:

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
        assert len(running) == server.count("claim_call") == MAX_AT_ONCE
        go.set()
        assert await asking == "done"
    assert len(running) == MAX_AT_ONCE + 2


async def test_a_result_may_be_more_than_text() -> None:
    server = ScriptedServer(_locate)
    async with connect(server, policy=QUICK) as client:
        client.tool(name="locate")(lambda: Image(media_type="image/png", data=PNG))
        session = await client.open()
        assert await session.ask("{}") == "completed"
    (sent,) = _bodies(server, "send_result", SendResult)
    assert sent.content == (Image(media_type="image/png", data=PNG),)

"""Permissions and questions that a program answers by itself."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from towline_client import PersonNeeded, Session
from towline_client.testing import (
    ManualClock,
    ScriptedServer,
    ScriptedTurn,
    connect,
    refuse,
)
from towline_protocol import (
    AnswerPermission,
    AnswerQuestion,
    Option,
    PermissionRequested,
    Preview,
    QuestionAsked,
    QuestionItem,
    SessionId,
    SessionView,
)

SIZE = QuestionItem(id="size", prompt="Which size?", options=(Option(id="s", label="Small"),))


async def _gated(turn: ScriptedTurn, text: str) -> None:
    preview = Preview(kind="command", text="make test")
    call, option = await turn.ask("run_program", "make test", preview=preview)
    turn.end_call(call, "fine")
    await turn.say(text, option)


async def _asks(turn: ScriptedTurn, text: str) -> None:
    answers = await turn.question(SIZE)
    await turn.say(text, *answers["size"])


async def _until(session: Session, holds: Callable[[SessionView], bool]) -> SessionView:
    async for view in session.views:
        if holds(view):
            return view
    raise AssertionError("the flow ended before it held")


def _bodies(server: ScriptedServer, name: str, kind: type[Any]) -> list[Any]:
    return [
        msgspec.json.decode(call.body or b"", type=kind)
        for call in server.calls
        if call.operation.name == name
    ]


@pytest.mark.rules("C5.10", "C5.11")
async def test_a_function_answers_permissions_and_its_answer_recites_the_digest() -> None:
    server = ScriptedServer(_gated)
    seen: list[PermissionRequested] = []
    async with connect(server) as client:

        @client.on_permission
        async def decide(request: PermissionRequested) -> str:
            seen.append(request)
            return "allow_once"

        session = await client.open()
        assert await session.ask("!") == "!allow_once"
    (body,) = _bodies(server, "answer_permission", AnswerPermission)
    assert body == AnswerPermission(option="allow_once", digest=seen[0].digest)


def _first_option(request: PermissionRequested) -> Option:
    return request.options[1]


def _by_session(request: PermissionRequested, session: SessionId) -> str:
    return "deny" if session.startswith("ses_") and request.tool == "run_program" else "allow_once"


class _Decides:
    async def __call__(self, request: PermissionRequested, note: str = "") -> str:
        return f"deny{note}"


@pytest.mark.parametrize(
    ("function", "option"),
    [(_first_option, "allow_session"), (_by_session, "deny"), (_Decides(), "deny")],
)
async def test_an_answer_may_be_an_option_and_know_the_session(
    function: Callable[..., Any], option: str
) -> None:
    async with connect(ScriptedServer(_gated)) as client:
        client.on_permission(function)
        assert await (await client.open()).ask("!") == f"!{option}"


def _nothing(request: object) -> None:
    del request


def _unknown(request: object) -> str:
    return f"yes to {type(request).__name__}"


def _odd(request: object) -> str:
    raise ValueError(request)


async def _cancels(request: object) -> None:
    del request
    await asyncio.create_task(_raise_cancel())


async def _raise_cancel() -> None:
    raise asyncio.CancelledError


@pytest.mark.rules("C5.10")
@pytest.mark.parametrize(
    ("function", "logged"),
    [
        (_nothing, ""),
        (_unknown, "'yes to PermissionRequested' is no option of this request; return one of"),
        (_odd, "The function that answers"),
        (_cancels, "was cancelled"),
    ],
)
async def test_a_request_that_a_function_leaves_waits_for_others_and_ask_says_so(
    function: Callable[..., Any], logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = ScriptedServer(_gated)
    asked: list[int] = []

    def decide(request: PermissionRequested) -> Any:
        asked.append(1)
        return function(request)

    async with connect(server) as client:
        client.on_permission(decide)
        session = await client.open()
        with pytest.raises(PersonNeeded) as needed:
            await session.ask("!")
        assert logged in caplog.text
        (request,) = needed.value.permissions
        moved = msgspec.structs.replace(request, expires_at="2026-01-31T11:59:00.000Z")
        server.sessions[session.id].emit(moved, session.view.turn and session.view.turn.id)
        await _until(session, lambda view: view.permissions == (moved,))
        await session.answer(request, "deny")
        assert await session.wait_for(needed.value.accepted) == "!deny"
    assert asked == [1]
    assert server.count("answer_permission") == 1


@pytest.mark.rules("C5.10")
async def test_a_function_is_cancelled_when_somebody_else_answers_first() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()
    server = ScriptedServer(_gated)
    async with connect(server) as client:

        @client.on_permission
        async def decide(request: PermissionRequested) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return request.options[0].id

        session = await client.open()
        asking = asyncio.create_task(session.ask("!"))
        await begun.wait()
        await session.answer(session.view.permissions[0], "deny")
        assert await asking == "!deny"
        await stopped.wait()
    assert server.count("answer_permission") == 1


@pytest.mark.rules("C5.10")
async def test_an_answer_that_comes_second_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "towline.client")
    server = ScriptedServer(_gated)
    server.replies["answer_permission"] = deque([refuse("conflict", "It is answered.")])
    async with connect(server) as client:
        client.on_permission(_first_option)
        session = await client.open()
        asking = asyncio.create_task(session.ask("!"))
        await server.until_called("answer_permission")
        await _until(session, lambda view: bool(view.permissions))
        await session.answer(session.view.permissions[0], "deny")
        assert await asking == "!deny"
    assert "was left out: It is answered." in caplog.text


@pytest.mark.rules("C5.8", "C5.9")
async def test_a_request_whose_deadline_is_over_by_the_servers_clock_is_not_asked_about() -> None:
    server, clock = ScriptedServer(_gated), ManualClock()
    asked: list[str] = []

    def decide(request: PermissionRequested) -> None:
        asked.append(request.permission)

    async with connect(server, clock=clock) as client:
        client.on_permission(decide)
        session = await client.open()
        clock.advance(9_000_000)
        await session.prompt("!")
        await _until(session, lambda view: bool(view.permissions))
        await session.mark_read()
        assert asked == []


@pytest.mark.rules("C3.3", "C5.8")
async def test_a_replay_of_old_requests_asks_nothing_and_an_open_one_is_asked_about_once() -> None:
    server = ScriptedServer(_gated)
    asked: list[str] = []
    async with connect(server) as client, connect(server) as other:
        session = await client.open()
        hand = await other.open(session.id)
        session.stop()
        with pytest.raises(PersonNeeded) as needed:
            await hand.ask("first")
        await hand.answer(needed.value.permissions[0], "deny")
        assert await hand.wait_for(needed.value.accepted) == "firstdeny"
        with pytest.raises(PersonNeeded) as needed:
            await hand.ask("second")

        @client.on_permission
        def decide(request: PermissionRequested) -> str:
            asked.append(request.permission)
            return "allow_once"

        session.start()  # each old event comes in a piece of its own
        assert await hand.wait_for(needed.value.accepted, others_answer=True) == "secondallow_once"
    assert asked == [needed.value.permissions[0].permission]


@pytest.mark.rules("C5.10")
async def test_a_function_answers_questions() -> None:
    server = ScriptedServer(_asks)
    async with connect(server) as client:

        @client.on_question
        async def reply(question: QuestionAsked) -> Mapping[str, str]:
            return {item.id: item.options[0].id for item in question.items}

        assert await (await client.open()).ask("!") == "!s"
    (body,) = _bodies(server, "answer_question", AnswerQuestion)
    assert body.answers == {"size": ("s",)}


@pytest.mark.parametrize("answer", [None, "s"])
async def test_a_question_that_a_function_leaves_waits_for_others(
    answer: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    def reply(question: QuestionAsked) -> str | None:
        return answer if question.items else None

    async with connect(ScriptedServer(_asks)) as client:
        client.on_question(reply)
        session = await client.open()
        with pytest.raises(PersonNeeded) as needed:
            await session.ask("!")
        assert needed.value.questions
    assert ("return a mapping of item ids" in caplog.text) == (answer is not None)


async def test_a_function_that_python_cannot_look_into_gets_the_request_alone() -> None:
    async with connect(ScriptedServer(_gated)) as client:
        client.on_permission(type)
        session = await client.open()
        with pytest.raises(PersonNeeded):
            await session.ask("!")

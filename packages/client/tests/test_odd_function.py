"""A program's own functions that do what no function should: the session lives on."""

import asyncio
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from towline_client import CallContext, CallFailed, ClientError, Session
from towline_client.bridge import contain
from towline_client.testing import ScriptedServer, ScriptedTurn, connect
from towline_protocol import Image, Option, QuestionAsked, QuestionItem, Text, TowlineError

_SIZE = QuestionItem(id="size", prompt="Which size?", options=(Option(id="s", label="Small"),))


async def _call(turn: ScriptedTurn, text: str) -> None:
    found = await turn.call_client("odd", "{}")
    await turn.say(" ".join(block.text for block in found.content if isinstance(block, Text)))


class _Mute(TowlineError):
    def __init__(self) -> None:
        """Say nothing, not even to the class above."""


class _Sulky:
    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = None  # pyright: ignore[reportAssignmentType]


async def _cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def _raise(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_cancel_itself, "odd was cancelled by its own code."),
        (_raise(CallFailed("half \ud800")), "half \ufffd"),
        (_raise(CallFailed(_Sulky())), "odd failed with CallFailed."),  # pyright: ignore[reportArgumentType]
        (_raise(_Mute()), "odd failed with _Mute."),
        (_raise(SystemExit(1)), "odd failed with SystemExit."),
        (_raise(BaseExceptionGroup("g", [ValueError()])), "odd failed with ExceptionGroup."),
        (lambda: Text(text=_Sulky()), "odd failed with AttributeError."),  # pyright: ignore[reportArgumentType]
        (
            lambda: Image(media_type="image/png", data="iVBORw0KGgoAAAAAAAAAAAAA\ud800"),
            "A tool returned a picture as 'image/png' whose bytes are no picture; return a PNG, "
            "JPEG, GIF or WebP under its own type.",
        ),
    ],
)
async def test_whatever_a_tool_does_its_call_is_answered_and_the_session_goes_on(
    function: Callable[[], object], told: str
) -> None:
    async with connect(ScriptedServer(_call)) as client:
        client.tool(name="odd")(function)
        session = await client.open()
        assert await session.ask("Go") == told
        assert await session.ask("Again") == told


@pytest.mark.rules("C5.12")
async def test_a_tool_that_does_not_heed_its_cancel_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(contain, "GRACE_S", 0.01)
    began, let_go = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        began.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    async with connect(ScriptedServer(_call)) as client:
        client.tool(name="odd")(stubborn)
        session = await client.open()
        await session.prompt("Go")
        await began.wait()
        await session.close()
        assert "odd goes on though it was cancelled" in caplog.text
    let_go.set()


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize("closes", [Session.close, None])
async def test_a_tool_may_close_what_it_runs_in(
    closes: Callable[[Session], Any] | None,
) -> None:
    held: list[Session] = []

    async def leave() -> None:
        await (client.close() if closes is None else closes(held[0]))

    async with connect(ScriptedServer(_call)) as client:
        client.tool(name="odd")(leave)
        held.append(await client.open())
        await held[0].prompt("Go")
        async for _ in held[0].connection:
            pass
        assert held[0].connection.value.phase == "closed"


@pytest.mark.rules("C5.10")
@pytest.mark.parametrize(
    "said",
    [{"size": 5}, {"size": "\ud800"}, {"size": _Sulky()}, _Sulky(), []],
    ids=["number", "half", "sulky", "whole", "list"],
)
async def test_an_odd_answer_of_a_function_is_left_out_and_the_session_goes_on(
    said: object,
) -> None:
    async def script(turn: ScriptedTurn, text: str) -> None:
        answers = await turn.question(_SIZE)
        await turn.say(str(answers))

    async with connect(ScriptedServer(script)) as client:

        @client.on_question
        def reply(question: QuestionAsked) -> object:
            return said if question.items else None

        session = await client.open()
        with pytest.raises(ClientError):
            await session.ask("Go")
        question = session.view.questions[0]
        await session.answer_question(question, {"size": "s"})
        async for view in session.views:
            if view.last_turn is not None:
                break


@pytest.mark.rules("C5.12")
async def test_an_odd_fraction_of_progress_is_a_number_or_a_mistake() -> None:
    def odd(context: CallContext) -> str:
        context.progress("half \ud800", Fraction(1, 2))  # pyright: ignore[reportArgumentType]
        context.progress("all", float("nan"))
        return "unreached"

    async with connect(ScriptedServer(_call)) as client:
        client.tool(odd)
        session = await client.open()
        assert await session.ask("Go") == "fraction=nan is no number from 0 to 1."

"""`ask` where a turn needs a person."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from towline_client import Client, PersonNeeded, Session
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn
from towline_protocol import Option, Preview, QuestionItem, SessionView

_SIZE = QuestionItem(id="size", prompt="Which size?", options=(Option(id="s", label="Small"),))


@asynccontextmanager
async def _open(server: ScriptedServer) -> AsyncGenerator[Session]:
    client = Client("", "token", transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        yield await client.open()


async def _gated(turn: ScriptedTurn, text: str) -> None:
    preview = Preview(kind="command", text="make test")
    call, option = await turn.ask("run_program", "make test", preview=preview)
    turn.end_call(call, "fine")
    answers = await turn.question(_SIZE)
    await turn.say(text, option, *answers["size"])


async def _until_it_waits(session: Session) -> SessionView:
    async for view in session.views:
        if view.permissions or view.questions:
            return view
    raise AssertionError("the flow ended before the turn waited")


@pytest.mark.rules("C5.10")
async def test_ask_says_that_nobody_here_answers_and_waits_for_the_rest_when_asked_to() -> None:
    async with _open(ScriptedServer(_gated)) as session:
        with pytest.raises(PersonNeeded, match="a permission for 'make test'") as needed:
            await session.ask("!")
        (request,) = needed.value.permissions
        assert needed.value.questions == ()
        accepted = needed.value.accepted
        await session.answer(request, "allow_once")
        with pytest.raises(PersonNeeded, match=r"an answer to 'Which size\?'") as needed:
            await session.wait_for(accepted)
        (question,) = needed.value.questions
        assert needed.value.permissions == ()
        assert needed.value.accepted == accepted
        await session.answer_question(question, {"size": "s"})
        assert await session.wait_for(accepted) == "!allow_onces"


async def test_what_was_answered_here_is_not_asked_for_again_before_the_log_shows_it() -> None:
    server = ScriptedServer(_gated)
    async with _open(server) as session:
        with pytest.raises(PersonNeeded) as needed:
            await session.ask("!")
        session.stop()  # so that the view goes on showing the request
        await session.answer(needed.value.permissions[0], "allow_once")
        waiting = asyncio.create_task(session.wait_for(needed.value.accepted))
        await asyncio.sleep(0)
        assert session.view.permissions
        assert not waiting.done()
        session.start()
        with pytest.raises(PersonNeeded) as needed:
            await waiting
        assert needed.value.questions


async def test_ask_waits_when_somebody_answers_elsewhere() -> None:
    async with _open(ScriptedServer(_gated)) as session:
        asking = asyncio.create_task(session.ask("!", others_answer=True))
        view = await _until_it_waits(session)
        await session.answer(view.permissions[0], "deny")
        async for view in session.views:
            if view.questions:
                break
        assert not asking.done()
        await session.answer_question(view.questions[0], {"size": "s"})
        assert await asking == "!denys"


@pytest.mark.parametrize("kind", ["permission", "question"])
async def test_ask_waits_for_the_kind_that_this_program_attends_to(kind: str) -> None:
    async with _open(ScriptedServer(_gated)) as session:
        session.attend([kind])
        asking = asyncio.create_task(session.ask("!"))
        view = await _until_it_waits(session)
        if kind == "permission":
            await asyncio.sleep(0)
            assert not asking.done()
            await session.answer(view.permissions[0], "allow_once")
        with pytest.raises(PersonNeeded) as needed:
            await asking
        assert bool(needed.value.questions) == (kind == "permission")
        assert bool(needed.value.permissions) == (kind == "question")

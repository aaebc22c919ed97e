"""What the plain chat is asked, by permissions and questions, and how a person answers."""

from collections import deque

import pytest

from towline.cli.testing import ScriptedKeyboard, open_desk
from towline_client import Client
from towline_client.testing import ScriptedTransport, ScriptedTurn, refuse
from towline_protocol import DENY, Option, Preview, QuestionItem


async def _make(turn: ScriptedTurn, text: str) -> None:
    preview = Preview(kind="command", text=f"make {text}")
    call, option = await turn.ask("run_program", f"Run make {text}", preview=preview)
    if option == DENY:
        turn.end_call(call, "The user said no.", status="denied", duration_ms=0)
        await turn.say("Then ", "not.")
    else:
        turn.end_call(call, "made")
        await turn.say("It ", "went ", "well: made.")


async def test_a_permission_answered_elsewhere_is_not_waited_for() -> None:
    async with open_desk(ScriptedKeyboard("test"), _make) as desk:
        await desk.paper.until("n deny): ")
        transport = ScriptedTransport(desk.server)
        async with Client("", transport=transport, clock=desk.clock) as phone:
            other = await phone.open(desk.session().id)
            await other.answer(other.view.permissions[0], "allow_once")
        await desk.paper.until("→ Allow once (by me)\n")
        await desk.paper.until("It went well")
        assert desk.paper.getvalue().count("→ Allow once") == 1
        desk.keys.queue.put_nowait(None)
        await desk.end()


async def test_an_answer_that_the_server_refuses_can_be_given_again() -> None:
    async with open_desk(ScriptedKeyboard("test"), _make) as desk:
        await desk.paper.until("n deny): ")
        desk.server.replies["answer_permission"] = deque([refuse("conflict", "Try again.")])
        desk.keys.queue.put_nowait("y")
        await desk.paper.until("✗ Try again.")
        desk.keys.queue.put_nowait("y")
        desk.keys.queue.put_nowait(None)
        assert "→ Allow once" in await desk.end()


async def test_a_line_that_is_no_answer_tells_the_keys_and_decides_nothing() -> None:
    async with open_desk(ScriptedKeyboard("test", "3"), _make) as desk:
        await desk.paper.until("n deny): ", 2)
        assert [r.call for r in desk.session().view.permissions]
        desk.keys.queue.put_nowait("n")
        desk.keys.queue.put_nowait(None)
        written = await desk.end()
    assert "The keys are: y once, s session, n deny." in written
    assert "→ Deny (by me)\n" in written


async def test_without_anybody_left_to_answer_a_call_is_denied() -> None:
    async with open_desk(ScriptedKeyboard("test", None), _make) as desk:
        written = await desk.end()
    assert "Nobody is left to answer, so it is denied.\n→ Deny (by me)\n" in written
    assert "Then not.\n" in written


_SIZE = QuestionItem(id="size", prompt="Which size?", options=(Option(id="s", label="Small"),))
_NAME = QuestionItem(id="name", prompt="What name?", free_text=True)


async def _asks(turn: ScriptedTurn, text: str) -> None:
    answers = await turn.question(_SIZE, _NAME)
    await turn.say(f"{text}: {answers['size'][0]} {answers['name'][0]}")


@pytest.mark.rules("A5.36")
@pytest.mark.parametrize("terminal", [False, True])
async def test_a_question_is_answered_line_by_line(*, terminal: bool) -> None:
    keys = ScriptedKeyboard("make one", terminal=terminal)
    async with open_desk(keys, _asks) as desk:
        await desk.paper.until("Answer 1 of 2 (1-1): ")
        for line in ("2", "1", "Ada"):
            keys.queue.put_nowait(line)
        await desk.paper.until("make one: s Ada\n")
        desk.keys.queue.put_nowait(None)
        written = await desk.end()
    assert "Answer with a number from 1 to 1" in written
    assert "Answer 2 of 2 (in words): " in written
    assert "→ the question is settled\n" in written


async def test_answers_that_the_server_refuses_can_be_given_again() -> None:
    async with open_desk(ScriptedKeyboard("go", "1", "Ada"), _asks) as desk:
        desk.server.replies["answer_question"] = deque([refuse("rejected", "Not so.")])
        await desk.paper.until("✗ Not so.")
        desk.keys.queue.put_nowait("1")
        desk.keys.queue.put_nowait("Bob")
        desk.keys.queue.put_nowait(None)
        assert "go: s Bob\n" in await desk.end()


async def test_without_anybody_left_to_answer_the_agent_decides_or_the_turn_is_stopped() -> None:
    async def in_words(turn: ScriptedTurn, text: str) -> None:
        answers = await turn.question(_NAME)
        await turn.say(answers["name"][0])

    async with open_desk(ScriptedKeyboard("go", None), in_words) as desk:
        written = await desk.end()
    assert "so the agent decides itself.\n" in written
    assert "Nobody is here to answer; decide yourself." in written
    async with open_desk(ScriptedKeyboard("go", None), _asks) as desk:
        assert "Nobody is left to answer, so the turn is stopped.\n" in await desk.end()

"""The plain chat against a scripted server: transcripts, keys, connection."""

import asyncio
import io
import re
from collections import deque
from pathlib import Path

import pytest
from rich.console import Console

from towline.cli.chat import BANNER_MS, chat
from towline.cli.testing import ScriptedKeyboard, open_desk
from towline_client import Client, CommandRejected
from towline_client.testing import (
    ScriptedServer,
    ScriptedTransport,
    ScriptedTurn,
    refuse,
)
from towline_protocol import (
    DENY,
    Fault,
    Preview,
    SessionClosed,
    SessionId,
    TurnFailed,
    Usage,
    UsageError,
)

_GOLDEN = Path(__file__).with_name("transcripts")


async def _tools(turn: ScriptedTurn, text: str) -> None:
    await turn.say("I look ", "first.")
    call = turn.propose("list_dir", "List .", effect="read")
    turn.end_call(call, "a.txt\nb.txt\nc.txt\nd.txt\n", duration_ms=4)
    preview = Preview(kind="command", text=f"make {text} && \\\n  echo done")
    call, option = await turn.ask("run_program", f"Run make {text}", preview=preview)
    if option == DENY:
        turn.end_call(call, "The user said no.", status="denied", duration_ms=0)
        await turn.say("Then ", "not.")
    else:
        turn.end_call(call, "\n".join(f"line {number}" for number in range(1, 15)))
        await turn.say("It ", "went ", "well: 学 🚢.\n\n```\n", "ok\n```\n")


async def test_a_conversation_through_a_pipe_is_the_golden_transcript() -> None:
    keys = ScriptedKeyboard(
        "test", "y", "clean", "maybe", "n", "/nonsense", "/help", "/interrupt", None
    )
    async with open_desk(keys, _tools) as desk:
        written = await desk.end()
        assert desk.chat.result() == 0
    assert written == (_GOLDEN / "pipe.txt").read_text()


async def test_a_session_that_goes_on_is_the_golden_transcript() -> None:
    server = ScriptedServer(_tools)
    async with open_desk(ScriptedKeyboard("test", "y", None), server=server) as desk:
        await desk.end()
    known = desk.session().id
    again = ScriptedKeyboard("/sessions", "1", "/sessions", "7", "/sessions", "", "/quit")
    async with open_desk(again, server=server, session=known) as desk:
        written = await desk.end()
    assert written == (_GOLDEN / "resumed.txt").read_text()


async def test_what_was_on_the_screen_is_new_to_no_other_one() -> None:
    server = ScriptedServer(_tools)
    async with open_desk(ScriptedKeyboard("test", "y", None), server=server) as desk:
        await desk.end()
    info = desk.session().info
    assert (info.unread, info.read_seq > 0) == (False, True)


async def _hang(turn: ScriptedTurn, text: str) -> None:
    await turn.say(f"Working on {text}")
    await asyncio.Event().wait()


async def test_ctrl_c_stops_the_turn_first_and_leaves_when_nothing_runs() -> None:
    async with open_desk(ScriptedKeyboard("it", terminal=True), _hang) as desk:
        await desk.paper.until("Working on it")
        desk.keys.ctrl_c.set()
        await desk.paper.until("■ Stopped")
        assert not desk.chat.done()
        await desk.keys.idle.wait()
        desk.keys.ctrl_c.set()
        written = await desk.end()
    assert "stopping…\n■ Stopped: stopped by the user\n" in written
    assert written.endswith(f"Go on with: towline chat --plain --session {desk.session().id}\n")


async def test_ctrl_c_twice_leaves_a_turn_that_does_not_stop() -> None:
    server = ScriptedServer(_hang)
    async with open_desk(ScriptedKeyboard("it", terminal=True), server=server) as desk:
        await desk.paper.until("Working on it")
        server.replies["interrupt"] = deque([refuse("internal_error", "The server is stuck.")])
        desk.keys.ctrl_c.set()
        await desk.paper.until("✗ The server is stuck.")
        desk.keys.ctrl_c.set()
        assert "Go on with" in await desk.end()


async def test_interrupt_is_a_command_too() -> None:
    async with open_desk(ScriptedKeyboard("it", terminal=True), _hang) as desk:
        await desk.paper.until("Working on it")
        desk.keys.queue.put_nowait("/interrupt")
        await desk.paper.until("■ Stopped")
        desk.keys.queue.put_nowait("/interrupt")
        await desk.paper.until("Nothing runs.")
        assert desk.session().view.turn is None


async def test_the_end_of_input_at_a_terminal_leaves_and_the_turn_goes_on() -> None:
    async with open_desk(ScriptedKeyboard("it", terminal=True), _hang) as desk:
        await desk.paper.until("Working on it")
        desk.keys.queue.put_nowait(None)
        assert "The turn goes on without you.\n" in await desk.end()
        assert desk.session().view.turn is not None


async def test_what_is_typed_while_a_turn_runs_waits_for_its_end() -> None:
    go_on = asyncio.Event()

    async def slow(turn: ScriptedTurn, text: str) -> None:
        await turn.say(f"Working on {text}")
        await go_on.wait()

    async with open_desk(ScriptedKeyboard("one", terminal=True), slow) as desk:
        await desk.paper.until("Working on one")
        desk.keys.queue.put_nowait("two")
        await desk.paper.until("(waits for the turn's end)")
        assert len(desk.session().view.queue) == 1
        go_on.set()
        await desk.paper.until("Working on two")
        await desk.keys.idle.wait()
        desk.keys.queue.put_nowait(None)
        written = await desk.end()
    assert "> one" not in written, "a typed line stands on the screen already"


async def test_another_devices_prompt_is_shown() -> None:
    async with open_desk(ScriptedKeyboard(terminal=True)) as desk:
        await desk.paper.until("scripted/model")
        transport = ScriptedTransport(desk.server)
        async with Client("", transport=transport, clock=desk.clock) as phone:
            other = await phone.open(desk.session().id)
            await other.ask("from the phone")
        await desk.paper.until("> from the phone\nYou said: from the phone\n")
        assert desk.paper.getvalue().count("> from the phone\n") == 1


async def test_a_failed_turn_is_the_exit_code() -> None:
    async def fail(turn: ScriptedTurn, text: str) -> None:
        fault = Fault(code="provider_authentication", message=f"No key for {text}.")
        turn.emit(TurnFailed(fault=fault, usage=Usage()))

    async with open_desk(ScriptedKeyboard("it", None), fail) as desk:
        assert "✗ Failed: No key for it.\n" in await desk.end()
        assert desk.chat.result() == 1


async def test_a_refused_prompt_is_said_and_the_chat_goes_on() -> None:
    async with open_desk(ScriptedKeyboard(terminal=True)) as desk:
        await desk.paper.until("scripted/model")
        full = refuse("capacity_exceeded", "32 prompts wait already.", retry_after_s=60)
        desk.server.replies["send_prompt"] = deque([full])
        desk.keys.queue.put_nowait("one")
        await desk.paper.until("✗ 32 prompts wait already.")
        desk.keys.queue.put_nowait("two")
        await desk.paper.until("You said: two")
        assert "You said: one" not in desk.paper.getvalue()


async def test_a_short_cut_of_the_line_is_not_worth_a_word_and_a_long_one_is() -> None:
    async with open_desk(ScriptedKeyboard(terminal=True)) as desk:
        await desk.paper.until("scripted/model")
        desk.session().reset(BANNER_MS - 1)
        await _settle()
        desk.clock.advance(BANNER_MS - 1)
        await _settle()
        desk.keys.queue.put_nowait("Hello")
        await desk.paper.until("You said: Hello")
        assert "reconnecting" not in desk.paper.getvalue()
        desk.session().reset(10 * BANNER_MS)
        await _settle()
        desk.clock.advance(BANNER_MS)
        await desk.paper.until("reconnecting…\n")
        desk.clock.advance(10 * BANNER_MS)
        await desk.paper.until("back\n")
        desk.keys.queue.put_nowait("again")
        await desk.paper.until("You said: again")
    assert desk.paper.getvalue().count("reconnecting") == 1


async def _settle() -> None:
    """Let all that is ready happen."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_line_that_is_given_up_says_why_and_ends_the_chat() -> None:
    async with open_desk(ScriptedKeyboard(terminal=True)) as desk:
        await desk.paper.until("scripted/model")
        desk.server.replies["follow"] = deque([refuse("forbidden", "This user may not.")])
        desk.session().hang_up()
        written = await desk.end()
        assert desk.chat.result() == 1
    assert "✗ This user may not.\nGo on with: " in written


async def test_a_session_that_is_closed_ends_the_chat() -> None:
    async with open_desk(ScriptedKeyboard(terminal=True)) as desk:
        await desk.paper.until("scripted/model")
        desk.session().emit(SessionClosed(reason="done"))
        assert "■ The session is closed: done\n" in await desk.end()
        assert desk.chat.result() == 0


async def test_new_begins_another_session_and_a_failure_keeps_this_one() -> None:
    async with open_desk(ScriptedKeyboard(terminal=True)) as desk:
        await desk.paper.until("ses_0001 ")
        no = refuse("forbidden", "No more sessions.")
        desk.server.replies["create_session"] = deque([no])
        desk.keys.queue.put_nowait("/new")
        await desk.paper.until("✗ No more sessions.")
        desk.keys.queue.put_nowait("Hello")
        await desk.paper.until("You said: Hello")
        await desk.keys.idle.wait()
        desk.keys.queue.put_nowait("/new")
        await desk.paper.until("scripted/model", 2)
        desk.keys.queue.put_nowait("Hello")
        await desk.paper.until("You said: Hello", 2)
        assert len(desk.server.sessions) == 2


async def test_a_turn_that_is_asked_for_again_is_waited_for() -> None:
    async with open_desk(ScriptedKeyboard("one", "/retry", None)) as desk:
        written = await desk.end()
    assert "· undone\n> one\nYou said: one\n" in written


async def test_a_fork_is_what_is_talked_in_from_then_on() -> None:
    async with open_desk(ScriptedKeyboard("one", "/fork", "two", "/fork me", None)) as desk:
        written = await desk.end()
        first, fork = desk.server.sessions.values()
    assert f"Go on with: towline chat --plain --session {fork.id}\n" in written
    assert "/fork stands alone" in written
    assert len(first.view.messages) == 2
    assert len(fork.view.messages) == 4


async def test_what_a_stop_holds_back_runs_once_it_is_resumed() -> None:
    keys = ScriptedKeyboard("it", terminal=True)
    async with open_desk(keys, _hang) as desk:
        await desk.paper.until("Working on it")
        keys.queue.put_nowait("more")
        await desk.paper.until("(waits for the turn's end)")
        keys.idle.clear()
        keys.queue.put_nowait("/interrupt")
        await keys.idle.wait()
        keys.queue.put_nowait("/continue")
        await desk.paper.until("Working on more")
        assert desk.paper.getvalue().count("Working on more") == 1


async def test_what_is_said_after_a_stop_is_waited_for() -> None:
    async def hang_once(turn: ScriptedTurn, text: str) -> None:
        await turn.say(f"Working on {text}")
        if text == "it":
            await asyncio.Event().wait()

    async with open_desk(ScriptedKeyboard("it"), hang_once) as desk:
        await desk.paper.until("Working on it")
        async with Client("", transport=ScriptedTransport(desk.server)) as phone:
            await (await phone.open(desk.session().id)).interrupt()
        desk.keys.queue.put_nowait("more")
        desk.keys.queue.put_nowait(None)
        assert "Working on more\n" in await desk.end()


def _far() -> ScriptedServer:
    server = ScriptedServer()
    outside = refuse("forbidden", "'/far' is outside the roots; add it with --root.")
    server.replies["create_session"] = deque([outside])
    return server


async def test_a_folder_that_the_server_refuses_is_an_error_where_nobody_can_be_asked() -> None:
    async with open_desk(ScriptedKeyboard("go", None), server=_far(), cwd="/far") as desk:
        with pytest.raises(CommandRejected, match="'/far' is outside the roots"):
            await desk.chat
        assert not desk.server.sessions


@pytest.mark.parametrize("answer", ["", "n", "what?", None])
async def test_another_folder_than_ones_own_is_taken_only_with_leave(answer: str | None) -> None:
    keys = ScriptedKeyboard(answer, terminal=True)
    async with open_desk(keys, server=_far(), cwd="/far") as desk:
        with pytest.raises(UsageError, match="No session was begun"):
            await desk.chat
        assert not desk.server.sessions
        assert desk.paper.getvalue().startswith("'/far' is outside the roots")


async def test_with_leave_the_servers_own_folder_is_taken_for_all_sessions_of_the_chat() -> None:
    keys = ScriptedKeyboard("y", "/new", terminal=True)
    async with open_desk(keys, server=_far(), cwd="/far") as desk:
        await desk.paper.until("ses_0002")
        keys.queue.put_nowait("/quit")
        written = await desk.end()
        assert [session.view.cwd for session in desk.server.sessions.values()] == [None, None]
    assert "the server's own folder, the first of these, instead? [y/N] " in written
    async with open_desk(ScriptedKeyboard(None), cwd="/near") as desk:
        assert "works in /near\n" in await desk.end()


async def test_ctrl_c_at_that_question_leaves() -> None:
    keys = ScriptedKeyboard(terminal=True)
    async with open_desk(keys, server=_far(), cwd="/far") as desk:
        await desk.paper.until("[y/N] ")
        keys.ctrl_c.set()
        with pytest.raises(UsageError, match="No session was begun"):
            await desk.chat


async def test_a_model_is_named_for_a_new_session_and_for_one_that_goes_on() -> None:
    server = ScriptedServer()
    async with open_desk(ScriptedKeyboard(None), server=server, model="scripted/one") as desk:
        assert "scripted/one" in await desk.end()
        session = desk.session().id
    again = ScriptedKeyboard("/model", None)
    async with open_desk(again, server=server, session=session, model="scripted/two") as desk:
        assert "(asks scripted/two;" in await desk.end()


async def test_a_session_that_is_not_there_is_an_error_of_the_caller() -> None:
    async with open_desk(ScriptedKeyboard(), session=SessionId("ses_none")) as desk:
        with pytest.raises(CommandRejected, match="no such session"):
            await desk.chat


async def _odd(turn: ScriptedTurn, text: str) -> None:
    del text
    await turn.say("x" * 100 + "   ", "[bold]y[/bold]\t", ":smile: \\ é\x1b]0;title\x07", "  z  ")


async def test_text_is_written_as_it_stands_whatever_its_width_and_marks() -> None:
    async with open_desk(ScriptedKeyboard("go", None), _odd) as desk:
        written = await desk.end()
    assert "x" * 100 + "   [bold]y[/bold]\t:smile: \\ é␛]0;title␇  z  \n" in written


async def test_without_colour_no_colour_is_written_and_a_poor_encoding_does_not_stop_it() -> None:
    server = ScriptedServer(_tools)
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    console = Console(file=file, force_terminal=True, color_system="standard", no_color=True)
    async with (
        asyncio.timeout(10),
        server,
        Client("", transport=ScriptedTransport(server)) as client,
    ):
        await chat(client, None, console, keyboard=ScriptedKeyboard("test", "y", None))
    written = raw.getvalue()
    assert b"It went well: ? ?." in written
    assert re.search(rb"\x1b\[[0-9;]*[34][0-9]", written) is None

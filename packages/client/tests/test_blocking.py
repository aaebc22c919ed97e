"""The client for scripts that do not await: these tests run outside any loop."""

import asyncio
import os
import signal
import threading
import warnings
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from towline_client import CommandRejected, ConnectionLost, PersonNeeded, Session
from towline_client.blocking import BlockingClient, connect
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn
from towline_protocol import (
    CreateSession,
    Envelope,
    FileChange,
    FilesChanged,
    Option,
    Preview,
    QuestionItem,
    SessionClosed,
    SessionId,
    Text,
    TextDelta,
    UsageError,
)

_SIZE = QuestionItem(id="size", prompt="Which size?", options=(Option(id="s", label="Small"),))


@contextmanager
def _connect(server: ScriptedServer) -> Generator[BlockingClient]:
    transport = ScriptedTransport(server)
    with connect("http://here", "token", transport=transport) as client:
        yield client
        client.run(server.__aexit__())
    assert transport.closed


@pytest.mark.rules("D13")
def test_a_script_asks_and_reads_in_a_few_lines() -> None:
    with _connect(ScriptedServer()) as client:
        session = client.open(new=CreateSession(title="A talk"))
        assert session.ask("Hello") == "You said: Hello"
        assert session.view.title == "A talk"
        for view in session.views:
            if view.last_turn is not None:
                break
        with client.open(session.id) as again:
            assert again.ask("Again") == "You said: Again"
        assert again.api.closed


@pytest.mark.rules("D13")
def test_events_and_views_come_as_they_are_asked_for_and_end_with_the_session() -> None:
    async def close(turn: ScriptedTurn, text: str) -> None:
        await turn.say("You said: ", text)
        turn.session.emit(SessionClosed(reason="done"))
        await asyncio.Event().wait()

    with _connect(ScriptedServer(close)) as client:
        session = client.open()
        session.prompt([Text(text="Hello")], key="mine")
        deltas = [
            event.event.text
            for event in session.events
            if isinstance(event, Envelope) and isinstance(event.event, TextDelta)
        ]
        assert "".join(deltas) == "You said: Hello"
        assert [view.closed for view in session.views] == ["done"]


def test_a_script_answers_what_a_turn_needs() -> None:
    async def gated(turn: ScriptedTurn, text: str) -> None:
        preview = Preview(kind="command", text="make test")
        call, option = await turn.ask("run_program", "make test", preview=preview)
        turn.end_call(call, "fine")
        answers = await turn.question(_SIZE)
        await turn.say(text, option, *answers["size"])

    with _connect(ScriptedServer(gated)) as client:
        session = client.open()
        with pytest.raises(PersonNeeded) as needed:
            session.ask("!")
        accepted = needed.value.accepted
        session.answer(needed.value.permissions[0], "allow_once")
        with pytest.raises(PersonNeeded) as needed:
            session.wait_for(accepted)
        session.answer_question(needed.value.questions[0], {"size": "s"})
        assert session.wait_for(accepted) == "!allow_onces"


@pytest.mark.rules("D13")
def test_a_script_reads_what_a_turn_did_to_files_and_undoes_it() -> None:
    async def change(turn: ScriptedTurn, text: str) -> None:
        call = turn.propose("write_file", "Write", effect="write", arguments="{}")
        turn.emit(FilesChanged(call=call, changes=(FileChange(path=text, kind="created"),)))
        turn.end_call(call, "written")
        await turn.say("done")

    with _connect(ScriptedServer(change)) as client:
        session = client.open()
        session.ask("a.txt")
        turn = session.view.messages[0].turn
        assert turn is not None
        assert [change.path for change in session.diff(turn).changes] == ["a.txt"]
        reverted = session.revert(turn, conversation=True)
        assert (reverted.reverted, reverted.conversation) == (("a.txt",), True)


def test_all_that_the_client_can_do_is_one_step_away() -> None:
    with _connect(ScriptedServer()) as client:
        assert client.run(client.api.me()).user == "me"
        session = client.open()
        assert session.run(session.api.history()).messages == ()
        with pytest.raises(CommandRejected):
            client.run(client.api.get_session(SessionId("ses_none")))


@pytest.mark.rules("D13")
def test_all_scripts_of_a_process_share_one_loop_and_any_thread_may_call() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    with _connect(ScriptedServer()) as first, _connect(ScriptedServer()) as second:
        assert first.run(loop()) is second.run(loop())
        session = first.open()
        with ThreadPoolExecutor(3) as pool:
            said = list(pool.map(session.ask, ("one", "two", "three")))
        assert said == ["You said: one", "You said: two", "You said: three"]


@pytest.mark.rules("D13")
async def test_it_works_where_a_loop_runs_already() -> None:
    with _connect(ScriptedServer()) as client:
        assert client.open().ask("Hello") == "You said: Hello"


def test_on_its_own_loop_it_says_so_instead_of_waiting_for_itself() -> None:
    with _connect(ScriptedServer()) as client:

        async def ask() -> None:
            client.run(client.api.me())

        with pytest.raises(UsageError, match="await the call of `api`"):
            client.run(ask())


@contextmanager
def _heeding_ctrl_c() -> Generator[None]:
    """Python's own handling of it, which a shell switches off in what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_the_call_and_the_line_lives_on() -> None:
    begun = threading.Event()
    cancelled = threading.Event()

    async def hang(turn: ScriptedTurn, text: str) -> None:
        if text == "hang":
            begun.set()
            await asyncio.Event().wait()
        await turn.say(text)

    async def ask(session: Session) -> str:
        try:
            return await session.ask("hang")
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def interrupt() -> None:
        assert begun.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    with _connect(ScriptedServer(hang)) as client, _heeding_ctrl_c():
        session = client.open()
        helper = threading.Thread(target=interrupt)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            session.run(ask(session.api))
        helper.join(10)
        assert cancelled.is_set()
        assert session.interrupt().turn is not None
        assert session.ask("now") == "now"


def test_what_is_said_after_the_end_is_told_so() -> None:
    with _connect(ScriptedServer()) as client:
        session = client.open()
        session.close()
        session.close()
        with pytest.raises(UsageError, match="closed here"):
            session.prompt("Hello")
        lost = client.open()
        lost.api.stop()
    with pytest.raises((UsageError, ConnectionLost)):
        lost.ask("Hello")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NO FORK on this system.")
def test_a_forked_child_has_a_loop_of_its_own() -> None:
    with _connect(ScriptedServer()) as client:
        client.open().ask("Hello")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
            child = os.fork()
        if child == 0:
            code = 1
            try:
                with _connect(ScriptedServer()) as own:
                    code = 0 if own.open().ask("child") == "You said: child" else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert client.open().ask("parent") == "You said: parent"

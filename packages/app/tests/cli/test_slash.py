"""The commands of the plain chat: found by name, carried out against a scripted server."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from towline.cli.slash import COMMANDS, HELP, Came, find_command, list_lines, list_own
from towline_client import Client, CommandRejected, Reply, Session
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn, refuse
from towline_protocol import (
    CreateSession,
    FileChange,
    FileConflict,
    FilesChanged,
    PromptAccepted,
    QueueResumed,
    SessionClosed,
    SessionInfo,
    Text,
    TurnId,
    TurnReverted,
    UsageError,
    encode,
)


@asynccontextmanager
async def _open(server: ScriptedServer) -> AsyncGenerator[tuple[Client, Session]]:
    client = Client("", transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        yield client, await client.open()


async def _hang(turn: ScriptedTurn, text: str) -> None:
    if text == "hang":
        await asyncio.Event().wait()
    await turn.say(f"You said: {text}")


async def _do(client: Client, session: Session, line: str) -> Came:
    command, words = find_command(line)
    assert command.call is not None
    return await command.call(client, session, words)


def test_the_list_has_every_command_on_a_line_that_fits_a_screen() -> None:
    lines = HELP.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == list(COMMANDS)
    assert all(len(line) <= 80 for line in lines)
    assert [name for name, row in COMMANDS.items() if row.call is None] == [
        "/interrupt",
        "/new",
        "/clear",
        "/resume",
        "/quit",
        "/help",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/etc/hosts is odd", "There is no command '/etc/hosts'; /help"),
        ("/", "There is no command '/'"),
        ("/A", "There is no command '/A'"),
        ("/fork now please", "/fork stands alone, and 'now please' stands behind it"),
        ("/title  ", "/title needs WORDS"),
    ],
)
def test_a_line_that_is_no_command_is_said_to_be_none(line: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        find_command(line)


def test_words_behind_a_command_are_taken_as_they_are() -> None:
    command, words = find_command("/title  A  new one ")
    assert (command.name, words) == ("/title", "A  new one")


async def test_a_stopped_queue_is_taken_back_from_its_end_and_the_rest_resumed() -> None:
    async with _open(ScriptedServer(_hang)) as (client, session):
        assert await _do(client, session, "/withdraw") == "Nothing waits."
        assert await _do(client, session, "/continue") == "Nothing waits."
        for text in ("hang", "one", "two"):
            await session.prompt(text)
        async for view in session.views:
            if view.turn is not None and len(view.queue) == 2:
                break
        assert await _do(client, session, "/withdraw") == "(taken back)"
        await session.interrupt()
        assert await _do(client, session, "/continue") == QueueResumed(queued=1)
        async for view in session.views:
            if view.last_turn is not None and view.last_turn.outcome == "completed":
                assert not view.queue
                break


async def test_a_turn_is_had_again_and_a_session_gone_on_with_elsewhere() -> None:
    async with _open(ScriptedServer(_hang)) as (client, session):
        with pytest.raises(CommandRejected, match="Nothing has run"):
            await _do(client, session, "/retry")
        await session.ask("one")
        fork = await _do(client, session, "/fork")
        assert isinstance(fork, SessionInfo)
        assert fork.id != session.id
        assert isinstance(await _do(client, session, "/retry"), PromptAccepted)


async def _change(turn: ScriptedTurn, text: str) -> None:
    call = turn.propose("write_file", "Write", effect="write", arguments="{}")
    diff = f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+{text}\x1b[2J\n"
    change = FileChange(path="a.txt", kind="changed", diff=diff)
    turn.emit(FilesChanged(call=call, changes=(change,)))
    turn.end_call(call, "written")
    await turn.say("done")


@pytest.mark.rules("A5.73")
async def test_the_last_turn_is_shown_and_undone_with_its_files_then_the_one_before() -> None:
    async with _open(ScriptedServer(_change)) as (client, session):
        assert await _do(client, session, "/undo") == "Nothing is there to undo."
        assert await _do(client, session, "/diff") == "No turn has run here."
        for text in ("two", "three"):
            await session.ask(text)
        said = await _do(client, session, "/diff")
        assert said == ("changed a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+three␛[2J")
        for left in (1, 0):
            assert await _do(client, session, "/undo") is None
            async for view in session.views:
                if sum(m.role == "user" and not m.undone for m in view.messages) == left:
                    break
        assert await _do(client, session, "/undo") == "Nothing is there to undo."
        with pytest.raises(UsageError, match="nothing but the word 'skip'"):
            await _do(client, session, "/undo all")


@pytest.mark.rules("A5.74", "A5.75")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            TurnReverted(
                turn=TurnId("trn_1"), conflicts=(FileConflict(path="a\n.txt", what="changed"),)
            ),
            "Nothing was undone, for somebody has changed since:\n  a␊.txt: changed\n"
            "/undo skip leaves these alone and undoes the rest.",
        ),
        (
            TurnReverted(turn=TurnId("trn_1"), unkept=("command: make",), conversation=True),
            "not undone: command: make",
        ),
    ],
)
async def test_what_could_not_be_undone_is_said(answer: TurnReverted, said: str) -> None:
    server = ScriptedServer()
    head = {"towline-contract": "1", "content-type": "application/json"}
    async with _open(server) as (client, session):
        await session.ask("one")
        reply = Reply(status=200, headers=head, body=encode(answer))
        server.replies["revert_turn"] = deque([reply])
        assert await _do(client, session, "/undo skip") == said


async def test_a_session_is_summed_up_called_and_closed() -> None:
    server = ScriptedServer()
    async with _open(server) as (client, session):
        await session.ask("one")
        assert await _do(client, session, "/compact") is None
        assert await _do(client, session, "/title Two words") == "(called 'Two words' now)"
        assert await _do(client, session, "/close") is None
        log = server.sessions[session.id]
        assert isinstance(log.events[-1].event, SessionClosed)
        assert log.view.title == "Two words"


def test_sessions_are_listed_with_what_tells_them_apart() -> None:
    server = ScriptedServer()
    rows = [server.add_session(CreateSession(title=title)) for title in ("First", None)]
    rows[1].emit(SessionClosed(reason="done"))
    first = msgspec.structs.replace(rows[0].info, last_line="It is done.")
    assert list(list_lines((first, rows[1].info))) == [
        " 1 First · ses_0001",
        "   It is done.",
        " 2 (no title) · ses_0002 · closed",
    ]


@pytest.mark.rules("A5.77", "A5.78")
async def test_commands_of_ones_own_say_what_they_stand_for() -> None:
    server = ScriptedServer()
    server.commands["review"] = "Look over the changes."
    async with _open(server) as (client, session):
        assert isinstance(await _do(client, session, "/review main"), PromptAccepted)
        assert isinstance(await _do(client, session, "/init"), PromptAccepted)
        with pytest.raises(UsageError, match="no command '/nothing'"):
            await _do(client, session, "/nothing")
        async for view in session.views:
            if view.messages:
                assert view.messages[0].content == (Text(text="Look over the changes. main"),)
                break
        lines = list(await list_own(session))
        assert lines[0] == "Your own:"
        assert lines[1].split() == ["/review", "Look", "over", "the", "changes."]
        server.commands["review-the-branch"] = "Look over all."
        assert "/review-the-branch  Look over all." in list(await list_own(session))


@pytest.mark.rules("A5.45")
async def test_the_mode_goes_round_and_the_model_is_told_and_changed() -> None:
    async with _open(ScriptedServer()) as (client, session):
        assert "asks scripted/model;" in str(await _do(client, session, "/model"))
        assert "asks other/one from" in str(await _do(client, session, "/model other/one"))
        assert "mode 'accept_edits' from the next turn on" in str(
            await _do(client, session, "/mode")
        )
        assert "mode 'plan'" in str(await _do(client, session, "/mode plan"))


async def test_what_was_used_and_what_may_be_called_is_listed() -> None:
    async with _open(ScriptedServer()) as (client, session):
        assert "the cost is $0.0000" in str(await _do(client, session, "/cost"))
        tools = str(await _do(client, session, "/tools")).splitlines()
        assert [line.split()[:2] for line in tools] == [
            ["read_file", "read"],
            ["run_program", "exec"],
        ]


def test_other_names_that_people_type_are_known() -> None:
    assert find_command("/sessions")[0].name == "/resume"
    assert find_command("/exit")[0].name == "/quit"


@pytest.mark.rules("A5.51")
async def test_a_folder_is_trusted_as_it_was_shown_and_not_otherwise() -> None:
    async with _open(ScriptedServer()) as (client, session):
        shown = await _do(client, session, "/trust")
        assert isinstance(shown, str)
        assert "  .towline/permissions.toml\n  rule: allow shell(make)\n" in shown
        assert shown.endswith("Type /trust 00000000 to trust exactly these.")
        with pytest.raises(UsageError, match="names no files that are there now"):
            await _do(client, session, "/trust 11111111")
        assert not (await session.project.trust()).trusted
        assert "(trusted until" in str(await _do(client, session, "/trust 00000000"))
        assert (await session.project.trust()).trusted
        assert str(await _do(client, session, "/trust")).endswith("/trust no ends that.")
        await _do(client, session, "/trust no")
        assert not (await session.project.trust()).trusted


async def test_a_command_that_waits_for_trust_says_so() -> None:
    server = ScriptedServer()
    why = "This folder has a command '/review' of its own. See /trust."
    server.replies["run_command"] = deque([refuse("rejected", why, reason="untrusted_command")])
    async with _open(server) as (client, session):
        with pytest.raises(CommandRejected, match="'/review' of its own"):
            await _do(client, session, "/review")

"""What one does to a session beside saying something, against a scripted server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from towline_client import Client, CommandRejected, Session
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn
from towline_client.transport import Call
from towline_protocol import PromptId, SessionView, Text, TurnId, UpdateSession


@asynccontextmanager
async def _open(server: ScriptedServer) -> AsyncGenerator[tuple[Client, Session]]:
    client = Client("", "token", transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        yield client, await client.open()


async def _hang(turn: ScriptedTurn, text: str) -> None:
    if text == "hang":
        await asyncio.Event().wait()
    await turn.say(f"You said: {text}")


def _said(view: SessionView) -> list[str]:
    """What people said, and the marks between."""
    return [
        entry.mark.kind
        if entry.mark is not None
        else "".join(block.text for block in entry.content if isinstance(block, Text))
        for entry in view.messages
        if entry.role != "assistant"
    ]


async def _until(session: Session, *said: str) -> SessionView:
    """The view once this was said and no turn runs."""
    async for view in session.views:
        if _said(view) == [*said] and view.turn is None:
            return view
    raise AssertionError("the flow ended before that was said")


async def _running(session: Session) -> SessionView:
    async for view in session.views:
        if view.turn is not None:
            return view
    raise AssertionError("the flow ended before a turn began")


def _last(server: ScriptedServer, name: str) -> Call:
    return [call for call in server.calls if call.operation.name == name][-1]


@pytest.mark.rules("C2.11")
async def test_what_a_stop_holds_back_runs_when_it_is_resumed() -> None:
    async with _open(ScriptedServer(_hang)) as (_, session):
        await session.prompt("hang")
        await session.prompt("next")
        await _running(session)
        assert (await session.interrupt()).turn is not None
        view = await _until(session, "hang", "turn_cancelled")
        assert len(view.queue) == 1
        assert (await session.resume_queue()).queued == 1
        await _until(session, "hang", "turn_cancelled", "next")


@pytest.mark.rules("C2.11")
async def test_a_prompt_that_waits_can_be_taken_back_and_one_that_runs_cannot() -> None:
    async with _open(ScriptedServer(_hang)) as (_, session):
        runs = await session.prompt("hang")
        waits = await session.prompt("next")
        await _running(session)
        assert (await session.withdraw(waits.prompt)).prompt == waits.prompt
        assert (await session.withdraw(waits.prompt)).prompt == waits.prompt
        for prompt, code in ((runs.prompt, "gone"), (PromptId("pmt_none"), "not_found")):
            with pytest.raises(CommandRejected) as refused:
                await session.withdraw(prompt)
            assert refused.value.code == code
        async for view in session.views:
            if not view.queue:
                break


async def test_a_turn_can_be_had_once_more_or_with_other_words() -> None:
    server = ScriptedServer(_hang)
    async with _open(server) as (_, session):
        with pytest.raises(CommandRejected, match="Nothing has run"):
            await session.retry()
        await session.ask("one")
        first = session.view.messages[0].turn
        assert first is not None
        await session.retry(key="mine")
        view = await _until(session, "one", "reverted", "one")
        assert view.messages[-2].key == "mine"
        with pytest.raises(CommandRejected, match="undone already"):
            await session.resend(first, "two")
        again = view.messages[-1].turn
        assert again is not None
        accepted = await session.resend(again, "two", key="yours")
        assert await session.resend(again, "two", key="yours") == accepted
        await _until(session, "one", "reverted", "one", "reverted", "two")
        with pytest.raises(CommandRejected) as refused:
            await session.resend(TurnId("trn_none"), "two")
        assert refused.value.code == "not_found"


async def test_while_a_turn_runs_nothing_is_undone_or_summed_up() -> None:
    async with _open(ScriptedServer(_hang)) as (_, session):
        await session.ask("one")
        await session.prompt("hang")
        await _running(session)
        for refused in (session.retry, session.compact):
            with pytest.raises(CommandRejected) as caught:
                await refused()
            assert caught.value.code == "conflict"


async def test_a_fork_goes_on_from_a_turn_and_leaves_the_rest() -> None:
    async with _open(ScriptedServer(_hang)) as (client, session):
        await session.ask("one")
        first = session.view.messages[0].turn
        assert first is not None
        await session.ask("two")
        await session.compact()
        info = await session.fork(first, title="Another way", key="k")
        assert await session.fork(first, title="Another way", key="k") == info
        fork = await client.open(info.id)
        assert (fork.view.title, _said(fork.view)) == ("Another way", ["one"])
        assert await fork.ask("three") == "You said: three"
        whole = await client.open((await session.fork()).id)
        assert _said(whole.view) == ["one", "two"]
        with pytest.raises(CommandRejected, match="no such turn"):
            await session.fork(TurnId("trn_none"))
        await session.prompt("hang")
        running = (await _running(session)).turn
        assert running is not None
        with pytest.raises(CommandRejected, match="still runs"):
            await session.fork(running.id)


@pytest.mark.rules("C4.3")
async def test_history_is_read_page_by_page_before_what_the_view_holds() -> None:
    server = ScriptedServer()
    async with _open(server) as (_, session):
        assert (await session.history()).messages == ()
        for number in range(4):
            await session.ask(str(number))
        assert (await session.history()).messages == ()
        before = _last(server, "get_history").query
        assert before == {"before": str(session.view.messages[0].seq)}
        page = await session.history(before=session.view.seq + 1, limit=3)
        assert page.messages == session.view.messages[-3:]
        older = await session.history(before=page.next)
        assert (*older.messages, *page.messages) == session.view.messages
        assert older.next is None


async def test_a_read_mark_never_goes_back() -> None:
    async with _open(ScriptedServer()) as (client, session):
        await session.ask("one")
        assert (await client.get_session(session.id)).unread
        read = session.view.seq
        assert await session.mark_read() == read
        assert await session.mark_read(1) == read
        row = await client.get_session(session.id)
        assert (row.unread, row.read_seq) == (False, read)


@pytest.mark.rules("C2.6")
async def test_settings_that_another_one_changed_meanwhile_are_not_written_over() -> None:
    async with _open(ScriptedServer()) as (client, session):
        known = await client.life.read(session.id)
        changed = await client.life.update(
            session.id, UpdateSession(title="Mine"), if_match=known.tag
        )
        assert changed.info.title == "Mine"
        with pytest.raises(CommandRejected) as refused:
            await client.life.update(session.id, UpdateSession(title="Yours"), if_match=known.tag)
        assert (refused.value.code, refused.value.retry) == ("precondition_failed", "refresh")
        labels = UpdateSession(labels=("work",))
        assert (await client.life.update(session.id, labels)).info.labels == ("work",)
        assert (await client.list_sessions(label="work", search="mine")).sessions[0].title == "Mine"
        assert (await client.list_sessions(archived=True)).sessions == ()


@pytest.mark.rules("C2.10")
async def test_a_session_is_closed_with_what_waits_and_a_deleted_one_is_gone() -> None:
    async with _open(ScriptedServer(_hang)) as (client, session):
        await session.prompt("hang")
        await session.prompt("next")
        await _running(session)
        assert (await client.life.close(session.id, reason="enough")).closed
        async for view in session.views:
            if view.closed is not None:
                assert (view.closed, view.queue) == ("enough", ())
        with pytest.raises(CommandRejected) as refused:
            await session.prompt("more")
        assert refused.value.code == "gone"
        await client.life.delete(session.id)
        with pytest.raises(CommandRejected) as refused:
            await client.get_session(session.id)
        assert refused.value.code == "gone"

"""The last thing that was said in a session, as the list shows it."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    File,
    ForkSession,
    Mark,
    MessageView,
    RevertTurn,
    SessionId,
    SessionInfo,
    SessionList,
    SessionView,
    Text,
    Thinking,
    TurnId,
)
from towline_server.sessions.summary import LINE_CHARS, summarize
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

TIME = "2026-01-31T09:05:00.250Z"


def _entry(*texts: str, role: str = "assistant", undone: bool = False) -> MessageView:
    content = tuple(Text(text=text) for text in texts)
    mark = Mark(kind="turn_failed", text="a mark") if role == "mark" else None
    return MessageView(seq=1, role=role, time=TIME, content=content, undone=undone, mark=mark)


def _line(*messages: MessageView) -> str:
    view = SessionView(created=TIME, updated=TIME, messages=messages)
    return summarize(SessionId("ses_1"), "me", view).last_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("well", "well"),
        ("  two\n\n  lines\tof it \r\n", "two lines of it"),
        ("## Done\n\nAll *is* `well`.", "Done All *is* `well`."),
        ("```py\na = 2 ** 3  # a note\n```", "a = 2 ** 3 # a note"),
        ("#hash stays", "#hash stays"),
        ("\x1b[31mred\x00\x07\x9b\x7f!", "[31mred !"),
        ("pay \u202eevil\u2066 \u200eme\u061c", "pay evil me"),
        ("a\u2028b\u2029c\u0085d", "a b c d"),
        ("👩\u200d👧 \u0915\u094d\u200d\u0937", "👩\u200d👧 \u0915\u094d\u200d\u0937"),
        ("😀" * LINE_CHARS, "😀" * LINE_CHARS),
        ("😀" * (LINE_CHARS + 1), "😀" * (LINE_CHARS - 1) + "…"),
        ("word " * 1000, ("word " * 24)[: LINE_CHARS - 1] + "…"),
        ("\n" * 5000 + "late", "late"),
        (" \n\u202e\x00 ", ""),
    ],
)
def test_a_text_is_told_on_one_line_with_nothing_that_hides_or_turns(text: str, line: str) -> None:
    told = _line(_entry(text))
    assert told == line
    assert len(told) <= LINE_CHARS


def test_it_is_of_the_last_who_said_something() -> None:
    asked, answered = _entry("a question", role="user"), _entry("an answer")
    silent = MessageView(
        seq=2,
        role="assistant",
        time=TIME,
        content=(Thinking(text="hm"), File(name="a.txt", media_type="text/plain")),
    )
    assert _line() == ""
    assert _line(silent) == ""
    assert _line(asked, silent, _entry(role="mark")) == "a question"
    assert _line(asked, answered, _entry("", "  ", role="user")) == "an answer"
    assert _line(asked, answered, _entry(" ", "then this", "and that")) == "then this"
    assert _line(asked, _entry("what is undone", undone=True)) == "a question"


async def _row(client: AppClient, session: str) -> SessionInfo:
    (row,) = (await client.ask("GET", "/api/sessions")).read(SessionList).sessions
    assert row == (await client.ask("GET", f"/api/sessions/{session}")).read(SessionInfo)
    return row


async def _say(client: AppClient, session: SessionId, text: str, number: int) -> TurnId:
    await client.prompt(session, text)
    last = (await client.until(session, ran(number))).last_turn
    assert last is not None
    return last.id


@pytest.mark.rules("C2.10")
async def test_a_row_tells_what_was_said_last_and_after_going_back_what_is_left(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([gate], "first answer", "second answer")
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        assert (await _row(client, session)).last_line == ""
        await client.prompt(session, "first\nprompt")
        await client.until(session, lambda view: bool(view.messages))
        assert (await _row(client, session)).last_line == "first prompt"
        gate.set()
        await client.until(session, ran(1))
        second = await _say(client, session, "second prompt", 2)
        said = (await _row(client, session)).last_line
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        assert (await _row(client, session)).last_line == said
        assert built.sessions.live == ()  # it stands in the row
        made = await client.ask("POST", f"/api/sessions/{session}/fork", ForkSession())
        fork = made.read(SessionInfo)
        assert fork.last_line == said
        await client.ask("DELETE", f"/api/sessions/{fork.id}")
        back = await client.ask(
            "POST",
            f"/api/sessions/{session}/turns/{second}/revert",
            RevertTurn(conversation=True),
        )
        assert back.status == 200, back.body
        left = (await _row(client, session)).last_line
        assert (said, left) == ("second answer", "first answer")
    await store.close()


async def test_a_row_of_before_gets_its_line_when_the_session_is_read(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider("an answer"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await _say(client, session, "a prompt", 1)
        before = await _row(client, session)
    await store.write(_forget_lines)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        assert (await _row(client, session)).last_line == ""
        await client.view(session)
        assert await _stored_line(store, session) == "an answer"
        assert await _row(client, session) == before
    await store.close()


def _forget_lines(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE sessions SET last_line = ''")


async def _stored_line(store: SqliteStore, session: SessionId) -> str:
    row = await store.session(session)
    assert row is not None
    return row.last_line

"""What is remembered of calls that were begun, and what a program that comes back makes of it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from towline_client import Client, Scrollback, Session
from towline_client.bridge.journal import (
    MAX_BYTES,
    MAX_NOTES,
    FileJournal,
    Journal,
    MemoryJournal,
    Note,
)
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn
from towline_protocol import CallId, CallView, SessionView, Text

ONE = CallId("call_1")


async def _use(work: Callable[[sqlite3.Connection], Any]) -> Any:
    """A file that cannot be used."""


@asynccontextmanager
async def _open(path: Path) -> AsyncGenerator[FileJournal]:
    scrollback = Scrollback(path)
    async with asyncio.timeout(10):
        yield FileJournal(scrollback.use)
        await scrollback.close()


@pytest.mark.parametrize("kind", ["memory", "file", "no file"])
async def test_a_call_that_was_begun_is_known_until_it_is_forgotten(
    kind: str, tmp_path: Path
) -> None:
    async with _open(tmp_path / "calls.db") as filed:
        journals: dict[str, Journal] = {
            "memory": MemoryJournal(),
            "file": filed,
            "no file": FileJournal(_use),
        }
        journal = journals[kind]
        assert await journal.find(ONE) is None
        assert not journal.whole
        await journal.begin(ONE)
        assert await journal.find(ONE) == Note()
        await journal.end(ONE, b"{}")
        assert await journal.find(ONE) == Note(result=b"{}")
        await journal.forget(ONE)
        assert await journal.find(ONE) is None


async def test_a_file_is_whole_from_its_second_life_on_and_holds_what_the_first_one_did(
    tmp_path: Path,
) -> None:
    path = tmp_path / "calls.db"
    async with _open(path) as journal:
        assert await journal.find(ONE) is None
        await journal.begin(ONE)
        await journal.begin(CallId("call_2"))
        await journal.end(CallId("call_2"), b"{}")
        await journal.begin(CallId("call_3"))
        await journal.end(CallId("call_3"), bytes(MAX_BYTES + 1))
    async with _open(path) as journal:
        assert await journal.find(ONE) == Note()
        assert journal.whole
        assert await journal.find(CallId("call_2")) == Note(result=b"{}")
        assert await journal.find(CallId("call_3")) == Note()
        assert await journal.find(CallId("call_4")) is None


async def test_only_the_newest_calls_are_kept(tmp_path: Path) -> None:
    async with _open(tmp_path / "calls.db") as journal:
        memory = MemoryJournal()
        for number in range(MAX_NOTES + 1):
            await memory.begin(CallId(f"call_{number}"))
        assert await memory.find(CallId("call_0")) is None
        assert await memory.find(ONE) == Note()
        await journal.begin(CallId("call_0"))
        scrollback = Scrollback(tmp_path / "calls.db")
        await scrollback.use(lambda db: db.execute("UPDATE begun_calls SET number = -2000"))
        await scrollback.close()
        await journal.begin(ONE)
    async with _open(tmp_path / "calls.db") as journal:
        assert await journal.find(CallId("call_0")) is None
        assert await journal.find(ONE) == Note()


async def test_a_scrollback_that_is_closed_keeps_nothing_more(tmp_path: Path) -> None:
    scrollback = Scrollback(tmp_path / "calls.db")
    await scrollback.close()
    assert await scrollback.use(lambda db: db.execute("SELECT 1")) is None


async def _locate(turn: ScriptedTurn, text: str) -> None:
    found = await turn.call_client("locate", "Where")
    await turn.say(text, found.status)


async def _until(session: Session, holds: Callable[[SessionView], bool]) -> SessionView:
    async for view in session.views:
        if holds(view):
            return view
    raise AssertionError("the flow ended before it held")


async def _claimed(server: ScriptedServer) -> CallView:
    """A call that a program called `phone` has claimed, before it died."""
    async with Client("", "token", transport=ScriptedTransport(server)) as first:
        session = await first.open(reader="phone")
        await session.prompt("!")
        view = await _until(session, lambda view: any(c.expires_at for c in view.open_calls))
        await session.claim(view.open_calls[0].call)
    return server.sessions[session.id].view.open_calls[0]


async def _come_back(server: ScriptedServer, path: Path, ran: list[int], **facts: Any) -> str:
    """What the call comes to when the program is there again."""
    client = Client("", "token", transport=ScriptedTransport(server), scrollback=Scrollback(path))

    def locate() -> str:
        ran.append(1)
        return "here"

    client.tool(**facts)(locate)
    async with client:
        (session,) = server.sessions
        again = await client.open(session, reader="phone")
        view = await _until(again, lambda view: view.last_turn is not None and not view.turn)
    return " ".join(block.text for block in view.calls[-1].content if isinstance(block, Text))


_LOST = "may or may not have had its effect"


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize(
    ("noted", "facts", "told", "runs"),
    [
        ("nothing", {}, "here", 1),
        ("begun", {}, _LOST, 0),
        ("begun", {"effect": "read"}, "here", 1),
        ("begun", {"idempotent": True}, "here", 1),
        ("ended", {}, "was here", 0),
        ("of another version", {}, _LOST, 0),
        ("no file", {}, _LOST, 0),
    ],
)
async def test_a_program_that_comes_back_goes_on_with_its_calls_as_the_journal_says(
    noted: str, facts: dict[str, Any], told: str, runs: int, tmp_path: Path
) -> None:
    server, path, ran = ScriptedServer(_locate), tmp_path / "calls.db", list[int]()
    async with asyncio.timeout(10), server:
        call = (await _claimed(server)).call
        if noted != "no file":
            async with _open(path) as journal:
                await journal.find(call)
                if noted != "nothing":
                    await journal.begin(call)
                if noted == "ended":
                    result = b'{"content": [{"type": "text", "text": "was here"}]}'
                    await journal.end(call, result)
                if noted == "of another version":
                    await journal.end(call, b'{"content": 1}')
        assert told in await _come_back(server, path, ran, **facts)
    assert len(ran) == runs
    async with _open(path) as journal:
        assert await journal.find(call) is None

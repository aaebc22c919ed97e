"""A server that dies with SIGKILL while a session is deleted, closed or forked, and while a file
comes in: at each commit of these.
"""

import asyncio
import hashlib
import os
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from flow.crash_client import HastyClock, Keeper, Stall
from flow.lane import PATIENCE_S, Lane, decode, make_folder, open_lane, read_log

from towline_client import Client, CommandRejected, ConnectionLost
from towline_client.caller import Caller
from towline_client.http import HttpTransport
from towline_protocol import (
    TERMINAL_EVENTS,
    CloseSession,
    CreateSession,
    Envelope,
    Event,
    File,
    FileInfo,
    ForkSession,
    Notice,
    PromptAccepted,
    PromptAdmitted,
    PromptDelivered,
    PromptWithdrawn,
    QuestionResolved,
    SendPrompt,
    SessionClosed,
    SessionDeleted,
    SessionId,
    SessionInfo,
    SessionView,
    Text,
    ToolEnded,
    encode,
    format_time,
)
from towline_server.store.tombstones import REMOVED_ROWS

LANES: Final = 3
"""Points that are tried at once."""
AT: Final = "TOWLINE_CRASH_AT"
"""The environment variable that names the one point to try."""
LONG: Final = 2 * REMOVED_ROWS + 100
"""Events of a log that is removed in three pieces."""
SWEEPS: Final = 8
"""More writes than a start brings."""
FILE: Final = bytes(range(256)) * 9_000
"""A file of three pieces."""

pytestmark = pytest.mark.slow


class Town:
    """What a client does at one server after the other."""

    def __init__(self, client: Client, caller: Caller, folder: Path) -> None:
        self.client = client
        self._caller = caller
        self._folder = folder

    async def call(self, name: str, answer: Any, **more: Any) -> Any:
        """Make one call, under one key, until it is answered."""
        while True:
            try:
                return await self._caller.call(name, answer, key=f"once {name}", **more)
            except ConnectionLost:
                continue

    async def find(self) -> SessionId:
        """The session that the store began with."""
        rows = (await self.client.list_sessions()).sessions
        return next(row.id for row in rows if row.title == "First")

    async def wait_at_question(self) -> SessionId:
        """Let a turn wait for a person, and a prompt for the turn."""
        session = await self.client.open(await self.find())
        await session.prompt("ask which way")
        async for view in session.views:
            if view.questions:
                break
        await session.prompt("later", when="queue")
        return session.id

    async def serves(self) -> None:
        """The server takes what is new."""
        session = await self.client.open()
        assert await session.ask("and now?") == "and now?"

    async def refuses(self, session: SessionId) -> None:
        """A session takes no prompt any more."""
        body = SendPrompt(content=(Text(text="hello"),))
        with pytest.raises(CommandRejected) as caught:
            await self.call("send_prompt", PromptAccepted, params={"session": session}, body=body)
        assert caught.value.code == "gone"

    def rows(self, query: str, *values: object) -> list[Any]:
        """What the store holds."""
        with closing(sqlite3.connect(self._folder / "data" / "towline.db")) as connection:
            return connection.execute(query, values).fetchall()

    def events(self, session: SessionId) -> list[Event]:
        """A session's log, which has no hole."""
        return [decode(data).event for data in read_log(self._folder, session)]


class Case(Protocol):
    """Something that a client asks for, to be cut at each of its commits."""

    async def begin(self, town: Town) -> SessionId:
        """Come to where it is asked for."""
        ...

    async def act(self, town: Town, session: SessionId) -> Any:
        """Ask, until it is answered."""
        ...

    async def look(self, town: Town, session: SessionId, answer: Any) -> None:
        """See that it is done."""
        ...

    def check(self, town: Town, session: SessionId, answer: Any) -> None:
        """See that the store is clean, once the server is gone."""
        ...


class Deletion:
    """A session is deleted: what runs in it is ended, and nothing of it is left."""

    async def begin(self, town: Town) -> SessionId:
        return await town.wait_at_question()

    async def act(self, town: Town, session: SessionId) -> Any:
        return await town.call("delete_session", SessionDeleted, params={"session": session})

    async def look(self, town: Town, session: SessionId, answer: Any) -> None:
        assert answer.session == session
        await town.refuses(session)
        assert session not in {row.id for row in (await town.client.list_sessions()).sessions}
        while town.rows("SELECT 1 FROM events WHERE session = ? LIMIT 1", session):
            await town.client.health()  # a new server removes the rest while it serves

    def check(self, town: Town, session: SessionId, answer: Any) -> None:
        assert town.rows("SELECT emptied FROM tombstones WHERE session = ?", session) == [(1,)]
        for table in ("words", "marks", "file_uses"):
            assert not town.rows(f"SELECT 1 FROM {table} WHERE session = ?", session)
        assert not town.rows("SELECT 1 FROM files")
        assert not town.rows("SELECT 1 FROM file_pieces")


class Closing:
    """A session is closed: each thing that was open in it has its one end."""

    async def begin(self, town: Town) -> SessionId:
        return await town.wait_at_question()

    async def act(self, town: Town, session: SessionId) -> Any:
        return await town.call(
            "close_session", SessionInfo, params={"session": session}, body=CloseSession()
        )

    async def look(self, town: Town, session: SessionId, answer: Any) -> None:
        assert answer.closed
        await town.refuses(session)
        view = (await town.client.get_view(session)).view
        assert (view.turn, view.queue, view.questions) == (None, (), ())

    def check(self, town: Town, session: SessionId, answer: Any) -> None:
        events = town.events(session)
        assert isinstance(events[-1], SessionClosed)
        kinds = [type(event) for event in events]
        for kind in (QuestionResolved, SessionClosed, ToolEnded):
            assert kinds.count(kind) == 1, kind
        started = kinds.count(PromptDelivered)  # one more if the stop itself was cut
        assert kinds.count(PromptAdmitted) == started + kinds.count(PromptWithdrawn)
        assert sum(isinstance(event, TERMINAL_EVENTS) for event in events) == started


class Forking:
    """A session is forked: there is one new one, and it goes on."""

    async def begin(self, town: Town) -> SessionId:
        return await town.find()

    async def act(self, town: Town, session: SessionId) -> Any:
        return await town.call(
            "fork_session", SessionInfo, params={"session": session}, body=ForkSession(title="New")
        )

    async def look(self, town: Town, session: SessionId, answer: Any) -> None:
        rows = (await town.client.list_sessions()).sessions
        assert {row.id for row in rows} == {session, answer.id}
        fork = await town.client.open(answer.id)
        assert _said(fork.view) == _said((await town.client.get_view(session)).view)
        assert await fork.ask("and now?") == "and now?"

    def check(self, town: Town, session: SessionId, answer: Any) -> None:
        assert town.events(session)
        assert town.events(answer.id)


class Upload:
    """A file comes in: it is whole, it is there once, and no piece of another try stays."""

    async def begin(self, town: Town) -> SessionId:
        return await town.find()

    async def act(self, town: Town, session: SessionId) -> Any:
        return await town.call("upload_file", FileInfo, body=FILE)

    async def look(self, town: Town, session: SessionId, answer: Any) -> None:
        assert answer.file == hashlib.sha256(FILE).hexdigest()
        assert await town.client.download(answer.file) == FILE

    def check(self, town: Town, session: SessionId, answer: Any) -> None:
        whole = "SELECT place FROM files WHERE file IS NOT NULL"
        assert len(town.rows("SELECT 1 FROM files WHERE file = ?", answer.file)) == 1
        assert not town.rows("SELECT 1 FROM files WHERE file IS NULL")
        assert not town.rows(f"SELECT 1 FROM file_pieces WHERE place NOT IN ({whole})")


def _said(view: SessionView) -> list[tuple[str, object]]:
    return [(entry.role, entry.content) for entry in view.messages]


async def _fill(client: Client) -> None:
    """A session with a file and a long past."""
    file = await client.upload(b"some words", name="words.txt")
    session = await client.open(new=CreateSession(title="First"))
    assert await session.ask("hello") == "hello"
    asked = session.view.seq
    block = File(name="words.txt", media_type="text/plain", file=file.file)
    await session.prompt([Text(text="hello"), block])
    async for view in session.views:
        if view.turn is None and not view.queue and view.seq > asked:
            break


def _lengthen(data: Path) -> None:
    """Put many events behind the log, as a long time would."""
    with closing(sqlite3.connect(data / "towline.db")) as connection, connection:
        session, last, now_ms = connection.execute(
            "SELECT id, last_seq, updated_ms FROM sessions"
        ).fetchone()
        notice = Notice(code="tick", message="Time goes by.", scope="session")
        for seq in range(last + 1, last + 1 + LONG):
            envelope = Envelope(seq=seq, session=session, time=format_time(now_ms), event=notice)
            connection.execute(
                "INSERT INTO events (session, seq, time_ms, data) VALUES (?, ?, ?, ?)",
                (session, seq, now_ms, encode(envelope)),
            )
        connection.execute("UPDATE sessions SET last_seq = ?", (last + LONG,))


@asynccontextmanager
async def _open_town(url: str, token: str, folder: Path) -> AsyncGenerator[Town]:
    transport = HttpTransport(url)
    clock = HastyClock()
    keys = iter(range(1_000_000))
    caller = Caller(transport, token, clock=clock, mint_key=lambda: f"key {next(keys)}")
    async with Client(url, token, transport=transport, clock=clock) as client:
        yield Town(client, caller, folder)


async def _live(case: Case, stall: Stall, folder: Path, **more: object) -> None:
    """One server after the other; the first one dies where its order says."""
    order = stall.order(folder, watch="writes", **more)
    async with (
        Keeper(stall.lane, order).kept() as url,
        _open_town(url, stall.token, folder) as town,
    ):
        session = await case.begin(town)
        for seq in range(1, SWEEPS + 1):  # each waits for one of the writes that a start brings
            await town.client.life.mark_read(session, seq)
        (folder / "armed").touch()
        answer = await case.act(town, session)
        (folder / "armed").unlink()
        await case.look(town, session, answer)
    case.check(town, session, answer)


async def _try_all(
    case: Case, stall: Stall, parent: Path, points: Iterator[tuple[int, str]]
) -> None:
    for number, point in points:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await _live(case, stall, make_folder(parent, number), kill=point)
        except Exception as error:
            error.add_note(f"The server was killed at {point!r}; {AT}={point!r} tries it alone.")
            raise


async def _prepare(lane: Lane, parent: Path) -> Stall:
    stall = await Stall.prepare(lane, make_folder(parent, -1), _fill)
    _lengthen(stall.data)
    return stall


@pytest.mark.rules("C1.3", "C1.20", "C1.23", "C2.10", "C5.4", "S12", "S25")
@pytest.mark.parametrize(
    ("case", "commits"), [(Deletion(), 5), (Closing(), 1), (Forking(), 1), (Upload(), 4)]
)
async def test_what_was_cut_at_any_commit_is_done_when_it_is_asked_for_again(
    case: Case, commits: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        lanes: list[Lane] = [await stack.enter_async_context(open_lane()) for _ in range(LANES)]
        stall = await _prepare(lanes[0], tmp_path)
        clean = make_folder(tmp_path, 0)
        async with asyncio.timeout(PATIENCE_S):
            await _live(case, stall, clean, kill="", trace=True)
        points = (clean / "places").read_text(encoding="utf-8").splitlines()
        points = [point for point in points if "write" in point]
        assert len(points) >= 2 * commits
        if AT in os.environ:
            points = [os.environ[AT]]
        waiting = iter(enumerate(points, 1))
        async with asyncio.TaskGroup() as group:
            for beside in (stall, *map(stall.beside, lanes[1:])):
                group.create_task(_try_all(case, beside, tmp_path, waiting))
    with capfd.disabled():
        took_s = time.monotonic() - began
        name = type(case).__name__.lower()
        sys.stdout.write(f"[{name}: killed at {len(points)} points, {took_s:.0f} s] ")

"""A server that dies with SIGKILL while a session is deleted, closed or forked, and while a file
comes in: at each commit of these.
"""

import asyncio
import hashlib
import itertools
import os
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from flow.crash_client import HastyClock, Keeper, Stall
from flow.crash_law import check_law, check_prompts
from flow.lane import PATIENCE_S, Lane, decode, make_folder, open_lane, read_log

from towline_client import CallOptions, Client, CommandRejected, ConnectionLost
from towline_client.caller import Caller
from towline_client.http import HttpTransport
from towline_protocol import (
    OPERATIONS,
    CloseSession,
    CreateSession,
    Envelope,
    File,
    FileInfo,
    ForkSession,
    Notice,
    PromptAccepted,
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

_numbers: Final = itertools.count(1)

pytestmark = pytest.mark.slow


class Town:
    """What a client does at one server after the other."""

    def __init__(self, client: Client, caller: Caller, folder: Path) -> None:
        self.client = client
        self._caller = caller
        self._folder = folder

    async def call(self, name: str, answer: Any, **more: Any) -> Any:
        """Make one call, under one key, until it is answered."""
        options = CallOptions(key=f"once {name}") if OPERATIONS[name].idempotent else CallOptions()
        while True:
            try:
                return await self._caller.call(name, answer, options=options, **more)
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

    def log(self, session: SessionId) -> list[Envelope]:
        """A session's log, which has no hole."""
        return [decode(data) for data in read_log(self._folder, session)]


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
        events = [envelope.event for envelope in town.log(session)]
        assert isinstance(events[-1], SessionClosed)
        kinds = [type(event) for event in events]
        for kind in (QuestionResolved, SessionClosed, ToolEnded):
            assert kinds.count(kind) == 1, kind
        check_law(town.log(session))
        check_prompts(town.log(session), ())


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
        assert town.log(session)
        assert town.log(answer.id)


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


class Walk:
    """Before the first commit, after it, before the second one, and so on to where none is.

    How many commits something takes is not the same each time: the store puts together what waits.
    So nobody counts them first; a run that comes to its end uncut was beyond the last one.
    """

    def __init__(self) -> None:
        self.tried: list[str] = []
        """The points at which a server died."""
        self._points = itertools.count()
        self._over = False

    def __iter__(self) -> Iterator[str]:
        if AT in os.environ:
            alone, self._over = not self._over, True
            yield from (os.environ[AT],) if alone else ()
        while not self._over:
            number, late = divmod(next(self._points), 2)
            yield f"{'after' if late else 'before'} write {number + 1}"

    def note(self, point: str, *, cut: bool) -> None:
        """Take note of what came of a point."""
        if cut:
            self.tried.append(point)
        else:
            self._over = True


async def _live(case: Case, stall: Stall, folder: Path, point: str) -> bool:
    """One server after the other; gives whether the first one died at the point."""
    keeper = Keeper(stall.lane, stall.order(folder, watch="writes", kill=point))
    async with (
        keeper.kept(sure=False) as url,
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
    return keeper.died


async def _try_all(case: Case, stall: Stall, parent: Path, walk: Walk) -> None:
    for point in walk:
        folder = make_folder(parent, next(_numbers))
        try:
            async with asyncio.timeout(PATIENCE_S):
                walk.note(point, cut=await _live(case, stall, folder, point))
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
    case: Case, commits: int, tmp_path: Path, show_figures: Callable[[str], None]
) -> None:
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        lanes: list[Lane] = [await stack.enter_async_context(open_lane()) for _ in range(LANES)]
        stall = await _prepare(lanes[0], tmp_path)
        walk = Walk()
        async with asyncio.TaskGroup() as group:
            for beside in (stall, *map(stall.beside, lanes[1:])):
                group.create_task(_try_all(case, beside, tmp_path, walk))
    assert len(walk.tried) >= (1 if AT in os.environ else 2 * commits)
    took_s = time.monotonic() - began
    name = type(case).__name__.lower()
    show_figures(f"{name}: killed at {len(walk.tried)} points, {took_s:.0f} s")

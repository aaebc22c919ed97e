"""What was said the last time, kept on this machine: shown first, replaced by the truth."""

import asyncio
import os
import sqlite3
import stat
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from towline_client import Client, CommandRejected, LinkPolicy, Scrollback, Unauthorized, scrollback
from towline_client.scrollback import finished
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn, refuse
from towline_protocol import (
    Context,
    CreateSession,
    MessageId,
    MessageStarted,
    MessageView,
    SessionId,
    SessionView,
    TextDelta,
    Unknown,
    Usage,
    block_text,
    encode,
)

_QUICK = LinkPolicy(auth_ms=(0, 0))


@asynccontextmanager
async def _connect(server: ScriptedServer, kept: Scrollback) -> AsyncGenerator[Client]:
    transport = ScriptedTransport(server)
    async with (
        asyncio.timeout(10),
        Client("", "token", transport=transport, policy=_QUICK, scrollback=kept) as client,
    ):
        yield client


def _texts(view: SessionView) -> list[str]:
    return [block_text(entry.content) for entry in view.messages]


async def _talk(server: ScriptedServer, path: Path, *said: str) -> SessionId:
    async with _connect(server, Scrollback(path)) as client:
        session = await client.open()
        for text in said:
            await session.ask(text)
        return session.id


async def _load(path: Path, session: SessionId) -> SessionView | None:
    kept = Scrollback(path)
    try:
        return await kept.load(session)
    finally:
        await kept.close()


async def test_a_cold_start_shows_what_was_said_at_once_and_then_the_truth(tmp_path: Path) -> None:
    async with ScriptedServer() as server:
        id_ = await _talk(server, tmp_path / "kept.db", "Hello")
        async with _connect(server, Scrollback(tmp_path / "other.db")) as client:
            await (await client.open(id_)).ask("More")
        async with _connect(server, Scrollback(tmp_path / "kept.db")) as client:
            session = await client.open(id_)
            assert session.connection.value.phase == "connecting"
            assert _texts(session.view) == ["Hello", "You said: Hello"]
            assert session.view.title == "Hello"
            async for connection in session.connection:
                if connection.phase == "live":
                    break
            assert _texts(session.view) == ["Hello", "You said: Hello", "More", "You said: More"]
            assert session.view == server.sessions[id_].view


async def test_without_the_server_the_kept_view_stays_and_the_line_goes_on_trying(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello")
        server.lose.extend(["get_view"] * 3)
        async with _connect(server, Scrollback(path)) as client:
            session = await client.open(id_)
            async for connection in session.connection:
                if connection.phase == "retrying":
                    break
            assert _texts(session.view) == ["Hello", "You said: Hello"]


async def test_a_refused_credential_comes_out_of_the_flows_and_what_was_said_stays(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello")
        server.replies["get_view"] = deque([refuse("unauthorized", "Revoked.")] * 3)
        async with _connect(server, Scrollback(path)) as client:
            session = await client.open(id_)
            async for connection in session.connection:
                if connection.phase == "failed":
                    break
            assert _texts(session.view) == ["Hello", "You said: Hello"]
            assert session.view.fault is not None
            with pytest.raises(Unauthorized):
                await anext(session.events)
        assert await _load(path, id_) is not None


async def test_never_a_half_answer_is_kept_and_nothing_that_waits(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def writes(turn: ScriptedTurn, text: str) -> None:
        await turn.say("Whole.")
        message = MessageId("msg_half")
        turn.emit(MessageStarted(message=message, role="assistant"))
        turn.emit(TextDelta(message=message, block=0, at=0, text="Half"))
        begun.set()
        await asyncio.Event().wait()

    path = tmp_path / "kept.db"
    async with ScriptedServer(writes) as server:
        async with _connect(server, Scrollback(path)) as client:
            session = await client.open()
            await session.prompt("Hello")
            await session.prompt("and then")
            await begun.wait()
            async for view in session.views:
                if view.open_messages and view.queue:
                    break
        kept = await _load(path, session.id)
        assert kept is not None
        assert kept == finished(kept)
        assert _texts(kept) == ["Hello", "Whole."]
        assert (kept.turn, kept.queue, kept.open_messages) == (None, (), ())
        assert not any(b"Half" in body for body in _bodies(tmp_path))


@pytest.mark.parametrize("cost", [0.25, None])
def test_what_was_spent_is_kept_and_an_unknown_cost_does_not_read_as_free(
    cost: float | None,
) -> None:
    view = SessionView(
        seq=9,
        title="A long",
        title_truncated=True,
        usage=Usage(input=30, output=4),
        cost=cost,
        context=Context(used=34, window=100),
    )
    assert finished(view) == view


async def test_a_session_that_is_deleted_vanishes(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        ids = [await _talk(server, path, f"secret {number}") for number in range(3)]
        async with _connect(server, Scrollback(path)) as client:
            await client.life.delete(ids[0])  # by this client
        assert await _load(path, ids[0]) is None
        server.replies["get_view"] = deque([refuse("not_found", "There is none.")])
        async with _connect(server, Scrollback(path)) as client:
            session = await client.open(ids[1])  # found to be gone
            with pytest.raises(CommandRejected):
                async for _ in session.views:
                    pass
        assert await _load(path, ids[1]) is None
        async with _connect(server, Scrollback(path)) as client:
            feed = client.feed()
            await anext(feed)
            server.feed.drop(ids[2])  # told by the list
            await anext(feed)
            await feed.aclose()
        assert await _load(path, ids[2]) is None
        assert b"secret" not in path.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="modes of files are of POSIX systems")
async def test_the_file_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "kept.db"
    async with ScriptedServer() as server:
        await _talk(server, path, "Hello")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)
        await _talk(server, path, "Hello")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["text", "torn", "layout", "table"])
async def test_a_file_that_is_broken_never_stops_a_session(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello " * 2000)
        _damage(path, damage)
        kept = Scrollback(path)
        async with _connect(server, kept) as client:
            session = await client.open(id_)
            assert await session.ask("More") == "You said: More"
        codes = [notice.code for notice in kept.notices]
        assert codes == ([] if damage == "layout" else ["scrollback_broken"])
        assert (tmp_path / "kept.db.broken").exists() == (damage != "layout")
        found = await _load(path, id_)
        assert found is not None
        assert _texts(found)[-1] == "You said: More"


def _damage(path: Path, how: str) -> None:
    body = path.read_bytes()
    if how == "text":
        path.write_bytes(b"This is no database, it is a letter. " * 200)
    elif how == "torn":
        path.write_bytes(body[: len(body) // 3] + b"\xff" * 4000)
    else:
        db = sqlite3.connect(path)
        with db:
            db.execute("ALTER TABLE sessions DROP COLUMN view")
            if how == "layout":
                db.execute("PRAGMA user_version = 0")
        db.close()


async def test_a_kept_session_that_cannot_be_read_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello")
        db = sqlite3.connect(path)
        with db:
            db.execute("UPDATE sessions SET view = ?", (b'{"messages": 3}',))
        db.close()
        kept = Scrollback(path)
        assert await kept.load(id_) is None
        assert await kept.load(id_) is None
        await kept.close()
        assert [notice.code for notice in kept.notices] == ["scrollback_unreadable"]


async def test_a_file_that_cannot_be_used_is_told_once_and_done_without(tmp_path: Path) -> None:
    async with ScriptedServer() as server:
        for path in (tmp_path, tmp_path / "file" / "kept.db"):
            (tmp_path / "file").write_text("no folder")
            kept = Scrollback(path)
            async with _connect(server, kept) as client:
                session = await client.open()
                assert await session.ask("Hello") == "You said: Hello"
            assert [notice.code for notice in kept.notices] == ["scrollback_unavailable"]


async def test_a_view_of_another_reducer_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello")
        monkeypatch.setattr("towline_client.scrollback.REDUCER_VERSION", 99)
        assert await _load(path, id_) is None


async def test_only_so_many_sessions_and_bytes_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.db"
    monkeypatch.setattr(scrollback, "MAX_SESSIONS", 2)
    monkeypatch.setattr(scrollback, "MAX_BYTES", 4000)
    async with ScriptedServer() as server:
        ids = [await _talk(server, path, "Hello") for _ in range(2)]
        async with _connect(server, Scrollback(path)) as client:
            await (await client.open(ids[0])).ask("More")  # used last, so it stays
        ids.append(await _talk(server, path, "x" * 3000, "short"))
        found = [await _load(path, id_) for id_ in ids]
    assert [view is not None for view in found] == [True, False, True]
    last = found[2]
    assert last is not None
    assert _texts(last) == ["You said: short"]
    assert last.older
    assert len(encode(last)) <= 4000


def test_of_a_view_the_last_messages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrollback, "MAX_MESSAGES", 1)
    view = ScriptedServer().add_session(CreateSession(title="A talk")).view
    assert finished(view) == view, "there is nothing that may change"
    entries = tuple(MessageView(seq=seq, role="user", time="") for seq in (1, 2))
    kept = finished(msgspec.structs.replace(view, messages=entries))
    assert kept.messages == entries[1:]
    assert kept.older


async def test_a_block_of_a_newer_server_is_kept_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello")
    db = sqlite3.connect(path)
    with db:
        (body,) = db.execute("SELECT view FROM sessions").fetchone()
        newer = bytes(body).replace(b'"type":"text","text":"Hello"', b'"type":"hologram","w":3')
        db.execute("UPDATE sessions SET view = ?", (newer,))
    db.close()
    found = await _load(path, id_)
    assert found is not None
    assert isinstance(found.messages[0].content[0], Unknown)


async def test_after_its_end_it_takes_nothing_and_gives_nothing(tmp_path: Path) -> None:
    kept = Scrollback(tmp_path / "kept.db")
    await kept.close()
    kept.keep(SessionId("ses_1"), SessionView())
    assert await kept.load(SessionId("ses_1")) is None
    await kept.close()
    assert _bodies(tmp_path) == []


def _bodies(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


async def test_a_broken_file_that_cannot_be_set_aside_is_done_without(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    path.write_bytes(b"This is no database, it is a letter. " * 200)
    _block(tmp_path / "kept.db.broken")
    kept = Scrollback(path)
    assert await kept.load(SessionId("ses_1")) is None
    assert [notice.code for notice in kept.notices] == ["scrollback_unavailable"]
    await kept.close()


def _block(path: Path) -> None:
    (path / "in the way").mkdir(parents=True)


async def test_of_many_views_at_once_the_newest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    view = ScriptedServer().add_session(CreateSession(title="A talk")).view
    kept = Scrollback(path)
    for seq in range(200):
        kept.keep(SessionId("ses_1"), msgspec.structs.replace(view, seq=seq))
    await kept.close()
    found = await _load(path, SessionId("ses_1"))
    assert found is not None
    assert found.seq == 199


@pytest.mark.parametrize("mark", [0, 7])
async def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path, mark: int) -> None:
    path = tmp_path / "app.db"
    db = sqlite3.connect(path)
    with db:
        db.execute("CREATE TABLE sessions (what TEXT)")
        db.execute("INSERT INTO sessions VALUES ('dear')")
        db.execute(f"PRAGMA application_id = {mark}")
    db.close()
    path.chmod(0o640)
    before = path.read_bytes()
    async with ScriptedServer() as server:
        await _talk(server, path, "Hello")
    kept = Scrollback(path)
    kept.keep(SessionId("ses_1"), SessionView())
    assert await kept.load(SessionId("ses_1")) is None
    await kept.close()
    assert [notice.code for notice in kept.notices] == ["scrollback_unavailable"]
    assert "of another program" in kept.notices[0].message
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_the_file_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello")
        db = sqlite3.connect(path)
        with db:
            db.execute("PRAGMA user_version = 99")
        db.close()
        before = path.read_bytes()
        await _talk(server, path, "More")
        assert await _load(path, id_) is None
    assert path.read_bytes() == before


async def test_what_is_no_ordinary_file_is_done_without(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path, 0o644)
    async with ScriptedServer() as server:
        await _talk(server, path, "Hello")
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


async def test_a_file_that_another_program_holds_is_used_when_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrollback, "_BUSY_S", 0.01)
    path = tmp_path / "kept.db"
    async with ScriptedServer() as server:
        id_ = await _talk(server, path, "Hello")
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        kept = Scrollback(path)
        assert await kept.load(id_) is None
        holder.execute("ROLLBACK")
        holder.close()
        found = await kept.load(id_)
        await kept.close()
    assert found is not None
    assert _texts(found) == ["Hello", "You said: Hello"]
    assert not (tmp_path / "kept.db.broken").exists()


async def test_a_view_that_cannot_be_written_is_left_out_and_the_next_is_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kept.db"
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"in": deep}
    odd = MessageView(seq=1, role="user", time="", content=(Unknown(name="x", raw=deep),))
    kept = Scrollback(path)
    kept.keep(SessionId("ses_1"), SessionView(messages=(odd,)))
    kept.keep(SessionId("ses_2"), SessionView(title="next"))
    await kept.close()
    assert [notice.code for notice in kept.notices] == ["scrollback_unwritable"]
    assert await _load(path, SessionId("ses_1")) is None
    found = await _load(path, SessionId("ses_2"))
    assert found is not None
    assert found.title == "next"

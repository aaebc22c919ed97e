"""What was said in the sessions of the last time, kept on this machine for a cold start."""

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from towline_protocol import (
    REDUCER_VERSION,
    Notice,
    SessionId,
    SessionView,
    decode_answer,
    encode,
)

__all__ = ["MAX_BYTES", "MAX_MESSAGES", "MAX_SESSIONS", "Scrollback", "finished"]

MAX_SESSIONS: Final = 50
"""Sessions kept, those that were used last; as many as a list shows at first (C2.12)."""
MAX_MESSAGES: Final = 200
"""Messages kept of a session, the last ones; as many as a view holds (D4)."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes kept of a session; of a longer one fewer messages."""

_T = TypeVar("_T")


class Scrollback:
    """A file of finished messages, so that a program shows something before the server answers.

    ```python
    client = Client(url, token, scrollback=Scrollback("~/.cache/my-app/scrollback.db"))
    ```

    Never part of an answer, no request, no prompt that waits: what is shown of it stood in the log.
    The server's view takes its place as soon as it comes. The file is for one user, mode 0600, and
    is no more than a cache: one that cannot be read is set aside, and without one all works.
    Reading and writing happen in a thread of its own.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Name the file; nothing is opened before the first use.

        Args:
            path: Where it is; `~` is the home folder. Its folder is made when it is not there.
        """
        self._shelf = _Shelf(Path(path).expanduser())
        self._worker: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._waiting: dict[SessionId, SessionView | None] = {}
        self._writing: Future[None] | None = None
        self._closed = False

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What went wrong with the file, each thing once; it never stops a session."""
        return tuple(self._shelf.notices)

    async def load(self, session: SessionId) -> SessionView | None:
        """What is kept of a session; `None` for nothing."""
        if self._closed:
            return None
        work = self._pool().submit(self._shelf.read, session)
        return await asyncio.wrap_future(work)

    def keep(self, session: SessionId, view: SessionView | None) -> None:
        """Keep the finished messages of a view, in place of those kept before; does not wait.

        Args:
            session: The session.
            view: Its newest view; `None` to forget the session.
        """
        if self._closed:
            return
        with self._lock:
            self._waiting[session] = view
            if self._writing is not None:
                return  # the thread takes what waits when it is done with what it has
            self._writing = self._pool().submit(self._write)

    async def use(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Keep something else in the file; `None` when it cannot be used.

        Args:
            work: Runs in the file's own thread.
        """
        if self._closed:
            return None
        return await asyncio.wrap_future(self._pool().submit(self._shelf.use, work))

    async def close(self) -> None:
        """Write what waits and let go of the file. `Client.close` does it. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._worker is not None:
            await asyncio.wrap_future(self._worker.submit(self._shelf.close))
            self._worker.shutdown(wait=False)
        if self._writing is not None:
            self._writing.result()  # a bug in the thread comes out here

    def _pool(self) -> ThreadPoolExecutor:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="towline-scrollback")
        return self._worker

    def _write(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._writing = None
                    return
                session = next(iter(self._waiting))
                view = self._waiting.pop(session)
            self._shelf.write(session, view)


def finished(view: SessionView) -> SessionView:
    """A view with nothing in it that may still change: what a scrollback keeps. Pure."""
    messages = view.messages[-MAX_MESSAGES:]
    return SessionView(
        session=view.session,
        seq=view.seq,
        agent=view.agent,
        model=view.model,
        mode=view.mode,
        title=view.title,
        title_truncated=view.title_truncated,
        cwd=view.cwd,
        parent=view.parent,
        created=view.created,
        updated=view.updated,
        archived=view.archived,
        labels=view.labels,
        closed=view.closed,
        last_turn=view.last_turn,
        messages=messages,
        older=view.older or len(messages) < len(view.messages),
        calls=view.calls,
        usage=view.usage,
        cost=view.cost,  # left out it would read as free
        context=view.context,
    )


class _Shelf:
    """The file. All but the constructor runs in the one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._off = False
        self.notices: list[Notice] = []

    def read(self, session: SessionId) -> SessionView | None:
        body = self._try(lambda db: _select(db, session))
        if body is None:
            return None
        try:
            return decode_answer(body, SessionView)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._notice("scrollback_unreadable", "A kept session cannot be read and is left out.")
            self.write(session, None)
            return None

    def write(self, session: SessionId, view: SessionView | None) -> None:
        if view is None:
            self._try(lambda db: _delete(db, session))
        else:
            try:
                body = _encode(finished(view))
            except (ValueError, TypeError, RecursionError):  # as deep as a peer can make it
                self._notice("scrollback_unwritable", "A session cannot be kept and is left out.")
                body = None
            if body is None:
                self._try(lambda db: _delete(db, session))
                return
            self._try(lambda db: _upsert(db, session, body))

    def use(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        return self._try(work)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        self._off = True

    def _try(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Do something with the file; `None` when it cannot be done."""
        if self._off:
            return None
        try:
            return work(self._opened())
        except (sqlite3.Error, OSError) as error:
            if not _is_broken(error):
                self._give_up(error)
                return None
        try:
            self._set_aside()
            return work(self._opened())
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_file(self._path)
            db = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
            try:
                _prepare(db)
            except BaseException:
                db.close()
                raise
            self._path.chmod(0o600)  # also one that was there, once it is known to be a scrollback
            self._db = db
        return self._db

    def _set_aside(self) -> None:
        """Put a broken file out of the way, in place of one that was put there before."""
        if self._db is not None:
            self._db.close()
            self._db = None
        aside = self._path.with_name(f"{self._path.name}.broken")
        self._path.replace(aside)
        self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
        self._notice(
            "scrollback_broken",
            f"The scrollback could not be read and was set aside as {aside.name!r}; a new one "
            "fills by itself. Delete the old one when nobody wants to look at it.",
        )

    def _give_up(self, error: Exception) -> None:
        """Go on without this time; for good when there is no file."""
        self._off = self._db is None and not _is_busy(error)
        self._notice(
            "scrollback_unavailable",
            f"The scrollback {str(self._path)!r} cannot be used ({error}); check that its folder "
            "can be written and has room.",
        )

    def _notice(self, code: str, message: str) -> None:
        notice = Notice(code=code, message=message)
        if notice not in self.notices:
            self.notices.append(notice)


_BUSY_S: Final = 1.0  # for another program of the same user to be done
_LAYOUT: Final = 1  # of the table below; a file of an older one begins anew
_MARK: Final = 0x746F776C  # SQLite's `application_id` of a scrollback: no other file is touched

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS sessions (
    session TEXT PRIMARY KEY, reducer INTEGER NOT NULL, used INTEGER NOT NULL, view BLOB NOT NULL
)
"""
_UPSERT: Final = """
INSERT OR REPLACE INTO sessions
VALUES (?, ?, (SELECT coalesce(max(used), 0) + 1 FROM sessions), ?)
"""
_PRUNE: Final = """
DELETE FROM sessions WHERE session NOT IN (SELECT session FROM sessions ORDER BY used DESC LIMIT ?)
"""


def _make_file(path: Path) -> None:
    """Make a file that only its user reads, when there is none.

    Raises:
        OSError: It can't be made, or is a folder, a device or a pipe.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError("it is no ordinary file")
    finally:
        os.close(file)


def _prepare(db: sqlite3.Connection) -> None:
    """Make the table, in a new file or in one of an older layout.

    Raises:
        OSError: The file is another program's, or a newer scrollback: its owner wants it as it is.
    """
    (mark,) = db.execute("PRAGMA application_id").fetchone()
    (layout,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if mark != _MARK and (mark or layout or tables):
        raise OSError("it is the database of another program; name another file")
    if layout > _LAYOUT:
        raise OSError("a newer version of this program keeps it; name another file")
    db.execute("PRAGMA secure_delete = ON")  # what is deleted is not in the file any more
    if layout != _LAYOUT:
        db.execute("BEGIN IMMEDIATE")
        db.execute("DROP TABLE IF EXISTS sessions")
        db.execute(f"PRAGMA application_id = {_MARK}")
        db.execute(f"PRAGMA user_version = {_LAYOUT}")
        db.execute("COMMIT")
    db.execute(_TABLE)


def _select(db: sqlite3.Connection, session: SessionId) -> bytes | None:
    found = db.execute(
        "SELECT CAST(view AS BLOB) FROM sessions WHERE session = ? AND reducer = ?",
        (session, REDUCER_VERSION),
    ).fetchone()
    return None if found is None else bytes(found[0])


def _upsert(db: sqlite3.Connection, session: SessionId, body: bytes) -> None:
    db.execute(_UPSERT, (session, REDUCER_VERSION, body))
    db.execute(_PRUNE, (MAX_SESSIONS,))


def _delete(db: sqlite3.Connection, session: SessionId) -> None:
    db.execute("DELETE FROM sessions WHERE session = ?", (session,))


def _encode(view: SessionView) -> bytes:
    """A view as JSON, with as many of its last messages as fit."""
    body = encode(view)
    while len(body) > MAX_BYTES and view.messages:
        fewer = view.messages[len(view.messages) // 2 + 1 :]
        calls = view.calls if fewer else ()
        view = msgspec.structs.replace(view, messages=fewer, calls=calls, older=True)
        body = encode(view)
    return body


def _is_busy(error: Exception) -> bool:
    """Whether another program has the file just now."""
    primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _is_broken(error: Exception) -> bool:
    """Whether the file itself is no good, not merely out of reach."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)

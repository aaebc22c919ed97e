"""The store in one SQLite file, or in memory: the same code either way (D8)."""

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from towline_protocol import SessionId
from towline_server.errors import StoreError
from towline_server.store import log, meta
from towline_server.store.event_store import PAGE_ROWS, Done
from towline_server.store.lineage import check_lineage, note_lineage
from towline_server.store.lock import StoreLock, make_folder, take_lock
from towline_server.store.migration import migrate
from towline_server.store.readers import Readers
from towline_server.store.records import (
    EVERY,
    NEWEST,
    Append,
    SessionCursor,
    SessionFilter,
    SessionRow,
    StoredRow,
)
from towline_server.store.writer import CommitHook, Writer

__all__ = ["STORE_FILE", "SqliteStore", "open_memory_store", "open_store"]

_T = TypeVar("_T")
_Work = Callable[[sqlite3.Connection], Any]

STORE_FILE: Final = "towline.db"
"""The file's name in the data folder."""

_BUSY_S: Final = 5.0  # a person's `sqlite3` shell may hold the file for a moment
_WAL_BYTES: Final = 64 * 1024 * 1024  # what the WAL file is cut down to after a burst


class SqliteStore:
    """An `EventStore`, and a place for the plain SQL modules beside it.

    Made by `open_store` or `open_memory_store`, used on that event loop alone.
    """

    def __init__(
        self,
        log_id: str,
        writer: Writer,
        query: Callable[[_Work], Awaitable[Any]],
        lock: StoreLock | None,
    ) -> None:
        self._log = log_id
        self._writer = writer
        self._query = query
        self._lock = lock

    @property
    def log(self) -> str:
        """The lineage of this store, made with it."""
        return self._log

    def append(self, batch: Append, done: Done) -> None:
        """Add to a session's log; see `EventStore`."""
        self._writer.append(batch, done)

    async def read(
        self, session: SessionId, *, after: int, upto: int, limit: int = PAGE_ROWS
    ) -> list[StoredRow]:
        """A page of events; see `EventStore`."""
        return await self.query(
            functools.partial(log.read_rows, session=session, after=after, upto=upto, limit=limit)
        )

    async def session(self, session: SessionId) -> SessionRow | None:
        """One session's row."""
        return await self.query(functools.partial(log.get_session, session=session))

    async def sessions(
        self,
        *,
        user: str | None,
        after: SessionCursor = NEWEST,
        limit: int = PAGE_ROWS,
        only: SessionFilter = EVERY,
    ) -> list[SessionRow]:
        """A page of sessions; see `EventStore`."""
        return await self.query(
            functools.partial(log.list_sessions, user=user, after=after, limit=limit, only=only)
        )

    async def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do plain SQL in the writer's line; it shares a transaction with the appends that wait.

        The work must be statements alone, since it is run again by itself when that transaction
        fails. A cancel ends the wait, not the work.

        Raises:
            StoreError: It was not done, and left nothing.
        """
        return await self._writer.run(work)

    async def query(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Read with plain SQL, off the loop.

        Raises:
            StoreError: It failed.
        """
        return await self._query(work)

    def announce(self, url: str) -> None:
        """Note where this server can be reached, for a second one that finds the folder taken.

        Raises:
            StoreError: It cannot be noted.
        """
        if self._lock is not None:
            self._lock.announce(url)

    async def close(self) -> None:
        """Commit what waits and let the folder go; may be called twice."""
        await self._writer.close()


async def open_store(
    folder: Path, *, mint: Callable[[str], str], on_commit: CommitHook | None = None
) -> SqliteStore:
    """Own a data folder and open the store in it; both are made when missing.

    Args:
        folder: The data folder.
        mint: Makes the id of a new log, from its prefix.
        on_commit: Called round each commit, in the writer's thread: a seam for crash tests.

    Raises:
        StoreLocked: Another process owns the folder.
        StoreFull: The disk has no room.
        StoreCorrupt: The file is damaged, or no store of towline.
        StoreError: The folder cannot be written, or a newer towline wrote the store.
    """
    disk = _Disk(folder, mint)
    writer = Writer(disk.connect, disk.disconnect, str(disk.file), on_commit)
    await _started(writer)
    return SqliteStore(disk.log, writer, disk.readers.run, disk.lock)


async def open_memory_store(
    *, mint: Callable[[str], str], on_commit: CommitHook | None = None
) -> SqliteStore:
    """A store that lives as long as it is open: the fake of every test that needs a store.

    It is the same store on one connection; reads stand in the writer's line.
    """
    memory = _Memory(mint)
    writer = Writer(memory.connect, sqlite3.Connection.close, ":memory:", on_commit)
    await _started(writer)
    return SqliteStore(memory.log, writer, writer.run, None)


async def _started(writer: Writer) -> None:
    try:
        await asyncio.shield(writer.started)
    except asyncio.CancelledError:
        await writer.close()
        raise


class _Memory:
    """What the writer's thread makes of a store in memory."""

    def __init__(self, mint: Callable[[str], str]) -> None:
        self._mint = mint
        self.log = ""

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self.log = _prepare(connection, self._mint)
        return connection


class _Disk:
    """What the writer's thread makes of a data folder, and how it lets it go."""

    def __init__(self, folder: Path, mint: Callable[[str], str]) -> None:
        self._folder = folder
        self._mint = mint
        self.file = folder / STORE_FILE
        self.readers = Readers(self._connect_reader, str(self.file))
        self.lock: StoreLock | None = None
        self.log = ""

    def connect(self) -> sqlite3.Connection:
        make_folder(self._folder)
        self.lock = take_lock(self._folder)
        try:
            return self._open()
        except BaseException:
            self.lock.release()
            raise

    def disconnect(self, connection: sqlite3.Connection) -> None:
        self.readers.close()
        connection.close()  # the last one: it puts the WAL into the file
        if self.lock is not None:
            self.lock.release()

    def _open(self) -> sqlite3.Connection:
        check_lineage(self._folder, self.file)
        if not self.file.exists():
            self.file.touch(mode=0o600)  # SQLite gives its other files the same mode
        connection = sqlite3.connect(self.file, isolation_level=None, timeout=_BUSY_S)
        try:
            mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise StoreError(
                    f"The disk of {str(self.file)!r} cannot hold a write-ahead log: name a folder "
                    "on a local disk with TOWLINE_DATA_DIR."
                )
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
            self.log = _prepare(connection, self._mint)
            note_lineage(self._folder, self.log)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.file))}?mode=ro",
            uri=True,
            isolation_level=None,
            timeout=_BUSY_S,
            check_same_thread=False,  # the thread that closes the store closes it
        )
        # damaged text is shown as it can be, and hides no other row of its list
        connection.text_factory = _read_text
        return connection


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _prepare(connection: sqlite3.Connection, mint: Callable[[str], str]) -> str:
    """Bring the schema up to date and give the log's lineage, made on the first opening."""
    migrate(connection)
    return meta.claim(connection, "log", mint("log"))

"""Which calls were begun here, so that none runs twice (C5.12)."""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec

from towline_protocol import CallId

__all__ = ["MAX_BYTES", "MAX_NOTES", "FileJournal", "Journal", "MemoryJournal", "Note"]

MAX_NOTES: Final = 1000
"""Calls that are remembered, the newest: they live for minutes."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a result that are kept in a file; a larger one is known to be there, not what it was."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a call that was begun."""

    result: bytes | None = None
    """What it came to, as JSON; `None` when its function had not ended."""


class Journal(Protocol):
    """Remembers the calls that were begun.

    Contract: what `begin` was awaited for is found from then on, and `whole` says for how long.
    """

    @property
    def whole(self) -> bool:
        """Whether it goes back further than this program's start: what it lacks never began."""
        ...

    async def find(self, call: CallId) -> Note | None:
        """What is known of a call; `None` for nothing."""
        ...

    async def begin(self, call: CallId) -> None:
        """A call's function is about to run."""
        ...

    async def end(self, call: CallId, result: bytes) -> None:
        """It has come to this."""
        ...

    async def forget(self, call: CallId) -> None:
        """The call has ended for all."""
        ...


class MemoryJournal:
    """A journal for as long as the program runs."""

    def __init__(self) -> None:
        self._notes: dict[CallId, Note] = {}

    @property
    def whole(self) -> bool:
        """It begins with the program."""
        return False

    async def find(self, call: CallId) -> Note | None:
        """What is known of a call."""
        return self._notes.get(call)

    async def begin(self, call: CallId) -> None:
        """Note a call."""
        self._put(call, Note())

    async def end(self, call: CallId, result: bytes) -> None:
        """Note its result."""
        self._put(call, Note(result=result))

    async def forget(self, call: CallId) -> None:
        """Drop it."""
        self._notes.pop(call, None)

    def _put(self, call: CallId, note: Note) -> None:
        self._notes.pop(call, None)
        self._notes[call] = note
        while len(self._notes) > MAX_NOTES:
            del self._notes[next(iter(self._notes))]


Use = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Does something with a file; gives `None` when it cannot be used."""


class FileJournal:
    """A journal in a file, for programs that keep the name of their line over a restart.

    Where the file cannot be used, it lasts as long as the program.
    """

    def __init__(self, use: Use) -> None:
        """Touch nothing yet.

        Args:
            use: Does something with the file, such as `Scrollback.use`.
        """
        self._use = use
        self._memory = MemoryJournal()
        self._whole: bool | None = None

    @property
    def whole(self) -> bool:
        """Whether the file was there before this program; known once `find` has been awaited."""
        return bool(self._whole)

    async def find(self, call: CallId) -> Note | None:
        """What is known of a call."""
        if self._whole is None:
            self._whole = await self._use(_open)
        return await self._memory.find(call) or await self._use(lambda db: _select(db, call))

    async def begin(self, call: CallId) -> None:
        """Note a call; it is in the file when this returns."""
        await self._memory.begin(call)
        await self._use(lambda db: _upsert(db, call, None))

    async def end(self, call: CallId, result: bytes) -> None:
        """Note its result."""
        await self._memory.end(call, result)
        if len(result) <= MAX_BYTES:
            await self._use(lambda db: _upsert(db, call, result))

    async def forget(self, call: CallId) -> None:
        """Drop it."""
        await self._memory.forget(call)
        await self._use(lambda db: _delete(db, call))


_TABLE: Final = """
CREATE TABLE IF NOT EXISTS begun_calls (
    number INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT UNIQUE NOT NULL, result BLOB
)
"""
_PRUNE: Final = "DELETE FROM begun_calls WHERE number <= (SELECT max(number) FROM begun_calls) - ?"


def _open(db: sqlite3.Connection) -> bool:
    """Make the table; says whether it was there."""
    found = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'begun_calls'").fetchone()
    db.execute(_TABLE)
    return found is not None


def _select(db: sqlite3.Connection, call: CallId) -> Note | None:
    db.execute(_TABLE)  # the file may be a new one, in place of one that broke
    found = db.execute("SELECT result FROM begun_calls WHERE call = ?", (call,)).fetchone()
    return None if found is None else Note(result=found[0])


def _upsert(db: sqlite3.Connection, call: CallId, result: bytes | None) -> None:
    db.execute(_TABLE)
    db.execute("INSERT OR REPLACE INTO begun_calls (call, result) VALUES (?, ?)", (call, result))
    db.execute(_PRUNE, (MAX_NOTES,))


def _delete(db: sqlite3.Connection, call: CallId) -> None:
    db.execute(_TABLE)
    db.execute("DELETE FROM begun_calls WHERE call = ?", (call,))

"""Where checkpoints are kept: one SQLite file of bytes by their hash, and what stood where."""

import hashlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from towline_agent.errors import ToolError
from towline_agent.workspaces.tree import hash_open_file, read_pieces

__all__ = ["Vault"]

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS turn (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL, turn TEXT NOT NULL, root BLOB NOT NULL, time_ms INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'kept',
    UNIQUE (session, turn)
);
CREATE TABLE IF NOT EXISTS touch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    turn INTEGER NOT NULL REFERENCES turn (id) ON DELETE CASCADE, path BLOB NOT NULL,
    before BLOB NOT NULL, before_hash TEXT, after BLOB, after_hash TEXT,
    stamp TEXT NOT NULL DEFAULT '', undone INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS touch_path ON touch (turn, path);
CREATE INDEX IF NOT EXISTS touch_before ON touch (before_hash);
CREATE INDEX IF NOT EXISTS touch_after ON touch (after_hash);
CREATE TABLE IF NOT EXISTS command (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    turn INTEGER NOT NULL REFERENCES turn (id) ON DELETE CASCADE, line TEXT NOT NULL,
    paths BLOB NOT NULL DEFAULT '[]'
);
CREATE INDEX IF NOT EXISTS command_turn ON command (turn);
CREATE TABLE IF NOT EXISTS revert (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL, root BLOB NOT NULL, turns BLOB NOT NULL,
    skipped BLOB NOT NULL, done INTEGER NOT NULL DEFAULT 0, outcome BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS step (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    revert INTEGER NOT NULL REFERENCES revert (id) ON DELETE CASCADE, path BLOB NOT NULL,
    now BLOB NOT NULL, now_hash TEXT, target BLOB NOT NULL, target_hash TEXT
);
CREATE INDEX IF NOT EXISTS step_now ON step (now_hash);
CREATE INDEX IF NOT EXISTS step_target ON step (target_hash);
CREATE TABLE IF NOT EXISTS batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL, turn TEXT NOT NULL, root BLOB NOT NULL, prefix TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS batch_part (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch INTEGER NOT NULL REFERENCES batch (id) ON DELETE CASCADE, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS blob (
    id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, size INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS piece (
    blob INTEGER NOT NULL REFERENCES blob (id) ON DELETE CASCADE, n INTEGER NOT NULL,
    packed INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (blob, n)
);
"""
_VERSION: Final = 2
_DROP_ALL: Final = """
DELETE FROM blob WHERE NOT EXISTS (SELECT 1 FROM touch WHERE before_hash = hash)
AND NOT EXISTS (SELECT 1 FROM touch WHERE after_hash = hash)
AND NOT EXISTS (SELECT 1 FROM step WHERE now_hash = hash)
AND NOT EXISTS (SELECT 1 FROM step WHERE target_hash = hash)
"""
_DROP_ONE: Final = f"{_DROP_ALL} AND hash = ?"
_TRIES: Final = 3  # how often a file that is written to meanwhile is read
_PACK_MIN: Final = 512  # bytes below which packing saves no page of the file
_WAL_BYTES: Final = 8 * 2**20  # what the log beside the file shrinks to
_BUSY_S: Final = 10.0


class Vault:
    """Bytes and states on disk; any thread may use it, one at a time.

    A write is durable when it returns: after it, what it kept outlives a loss of power. With
    `lasting=False` it outlives the end of the process alone, which costs no wait for the disk.

    Args:
        folder: Where the file lies; made at the first write, for this user alone.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        """Where the file lies."""
        self.live: set[int] = set()
        """The batches of edits that go on right now, by number: nobody else may mend them."""
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None

    @property
    def there(self) -> bool:
        """Whether anything was ever kept here."""
        return self._open is not None or (self.folder / "kept.db").exists()

    @contextmanager
    def write(self, *, lasting: bool = True) -> Generator[sqlite3.Connection]:
        """A transaction: all of it or nothing.

        Raises:
            ToolError: The disk or the file does not allow it.
        """
        with self._lock, _told(self.folder):
            found = self._connection()
            found.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
            found.execute("BEGIN IMMEDIATE")
            try:
                yield found
                found.execute("COMMIT")
            except BaseException:
                found.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """What is kept, to be read.

        Raises:
            ToolError: It cannot be.
        """
        with self._lock, _told(self.folder):
            yield self._connection()

    def keep(self, vault: sqlite3.Connection, fd: int) -> str:
        """Keep an open file's bytes, within a transaction; gives their hash."""
        for _ in range(_TRIES):
            hashed = hash_open_file(fd)
            if vault.execute("SELECT 1 FROM blob WHERE hash = ?", (hashed,)).fetchone():
                return hashed
            if self._store(vault, hashed, read_pieces(fd)):
                return hashed
        raise ToolError("A file is being written to right now; try again when it is done.")

    def pieces(self, hashed: str) -> Generator[bytes]:
        """Kept bytes, piece by piece.

        Raises:
            ToolError: They are not here, or not as they were kept.
        """
        with self.read() as vault:
            row = vault.execute("SELECT id FROM blob WHERE hash = ?", (hashed,)).fetchone()
        made = hashlib.sha256()
        n = 0
        while row is not None and (piece := self._piece(row[0], n)) is not None:
            made.update(piece)
            yield piece
            n += 1
        if made.hexdigest() != hashed:
            raise ToolError(f"The kept bytes {hashed[:12]!r} are damaged or gone.")

    def intact(self, hashed: str) -> bool:
        """Whether bytes are kept under a hash, just as they were."""
        try:
            for _ in self.pieces(hashed):
                pass
        except ToolError:
            return False
        return True

    def size(self, hashed: str) -> int | None:
        """How many bytes are kept under a hash; `None` when none are."""
        with self.read() as vault:
            row = vault.execute("SELECT size FROM blob WHERE hash = ?", (hashed,)).fetchone()
        return None if row is None else row[0]

    def drop(self, vault: sqlite3.Connection, hashes: Iterable[str | None] | None = None) -> None:
        """Remove bytes that nothing names any more, within a transaction.

        Args:
            vault: The transaction.
            hashes: Which to look at; `None` for all.
        """
        if hashes is None:
            vault.execute(_DROP_ALL)
            return
        for hashed in {hashed for hashed in hashes if hashed}:
            vault.execute(_DROP_ONE, (hashed,))

    def bytes_used(self) -> int:
        """Bytes of the file."""
        with self.read() as vault:
            pages, free, size = (
                vault.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return (pages - free) * size

    def shrink(self) -> None:
        """Give the room of what was removed back to the disk."""
        with self.read() as vault:
            vault.executescript("PRAGMA incremental_vacuum;")  # `execute` takes but one step
            vault.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def damages(self) -> list[str]:
        """What is wrong with the file, a sentence each."""
        with self.read() as vault:
            found = [row[0] for row in vault.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
            hashes = [row[0] for row in vault.execute("SELECT hash FROM blob")]
        broken = [hashed for hashed in hashes if not self.intact(hashed)]
        return [*found, *(f"The kept bytes {hashed[:12]!r} are damaged." for hashed in broken)]

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    def _store(self, vault: sqlite3.Connection, hashed: str, pieces: Iterable[bytes]) -> bool:
        vault.execute("SAVEPOINT kept")
        blob = vault.execute("INSERT INTO blob (hash, size) VALUES (?, 0)", (hashed,)).lastrowid
        made, size = hashlib.sha256(), 0
        for n, piece in enumerate(pieces):
            made.update(piece)
            size += len(piece)
            packed = zlib.compress(piece, 1) if len(piece) >= _PACK_MIN else piece
            smaller = len(packed) < len(piece)
            row = (blob, n, smaller, packed if smaller else piece)
            vault.execute("INSERT INTO piece (blob, n, packed, data) VALUES (?, ?, ?, ?)", row)
        vault.execute("UPDATE blob SET size = ? WHERE id = ?", (size, blob))
        whole = made.hexdigest() == hashed
        if not whole:
            vault.execute("ROLLBACK TO kept")
        vault.execute("RELEASE kept")
        return whole

    def _piece(self, blob: int, n: int) -> bytes | None:
        with self.read() as vault:
            query = "SELECT packed, data FROM piece WHERE blob = ? AND n = ?"
            row: tuple[int, bytes] | None = vault.execute(query, (blob, n)).fetchone()
        if row is None:
            return None
        try:
            return zlib.decompress(row[1]) if row[0] else row[1]
        except zlib.error:
            return None

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self.folder / "kept.db"
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            found = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                _prepare(found)
            except BaseException:
                found.close()
                raise
            self._open = found
        return self._open


def _prepare(found: sqlite3.Connection) -> None:
    found.execute("PRAGMA auto_vacuum = INCREMENTAL")
    found.execute("PRAGMA journal_mode = WAL").fetchone()
    found.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}").fetchone()
    found.execute("PRAGMA foreign_keys = ON")
    found.execute("PRAGMA synchronous = FULL")
    version: tuple[Any] = found.execute("PRAGMA user_version").fetchone()
    if version[0] < _VERSION:  # each one only added tables
        found.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
    elif version[0] != _VERSION:
        raise ToolError(
            "The checkpoints were written by a newer towline; update this one, or move the folder "
            "away."
        )


@contextmanager
def _told(folder: Path) -> Generator[None]:
    """Say what the disk or the file refuses in words for people and the model."""
    try:
        yield
    except sqlite3.Error as error:
        raise ToolError(
            f"What is needed to undo changes cannot be kept or read ({error}); make room on the "
            f"disk of {str(folder)!r}, or look at it with `towline doctor`."
        ) from error
    except OSError as error:
        raise ToolError(
            f"What is needed to undo changes cannot be kept ({error.strerror}: "
            f"{str(error.filename)!r}); make it readable, and make room on the disk."
        ) from error

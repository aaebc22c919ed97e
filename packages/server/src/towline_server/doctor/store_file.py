"""The file of a store: opened as carefully as a look at it needs, and copied while it is used."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from towline_server.doctor.finding import Finding, fault, fine
from towline_server.errors import StoreCorrupt, StoreError
from towline_server.store import meta
from towline_server.store.failures import explain_failure
from towline_server.store.lineage import read_note
from towline_server.store.lock import unusable
from towline_server.store.sqlite_store import STORE_FILE

__all__ = [
    "BESIDE",
    "check_file",
    "copy_database",
    "copy_store",
    "open_reader",
    "open_writer",
    "said_plainly",
    "transaction",
]

BESIDE: Final = ("before-repair", "damaged")
"""What a repair leaves beside the store, as the middle of its name."""

_BUSY_S: Final = 5.0  # a server commits within milliseconds, a checkpoint takes a moment more
_LEAST_BYTES: Final = 512  # of the smallest database


def check_file(folder: Path) -> Finding | None:
    """Whether there is a store to look at: `None` when there is, else why not.

    Raises:
        StoreError: The folder cannot be read.
    """
    file = folder / STORE_FILE
    try:
        size = file.stat().st_size if file.exists() else None
        note = read_note(folder) if folder.is_dir() else None
        beside = sorted(path.name for path in folder.glob(f"{STORE_FILE}.*"))
    except OSError as error:
        raise unusable(folder, error) from error
    if size is not None and size >= _LEAST_BYTES:
        return None
    if note is None:
        return fine("store", f"There is no store in {str(folder)!r} yet; the first start makes it.")
    state = "is missing" if size is None else "is empty"
    there = f" Beside it lie: {', '.join(beside)}." if beside else ""
    return fault(
        "store",
        f"The store {str(file)!r} {state}, but this folder held the sessions of {note!r}. Put a "
        f"backup of that file in its place.{there}",
    )


def open_reader(file: Path, *, damaged: bool = False) -> sqlite3.Connection:
    """A connection that changes nothing, beside a server or not; reads any text there is.

    Args:
        file: The database.
        damaged: Read what can be read of a file whose end is missing.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    place = f"file:{quote(str(file))}?mode=ro"
    connection = sqlite3.connect(place, uri=True, isolation_level=None, timeout=_BUSY_S)
    if damaged:
        connection.execute("PRAGMA writable_schema = ON")  # SQLite's own way to mean this
    connection.text_factory = _read_text
    return connection


def open_writer(file: Path) -> sqlite3.Connection:
    """A connection for a repair, which owns the folder.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    connection = sqlite3.connect(file, isolation_level=None, timeout=_BUSY_S)
    connection.text_factory = _read_text
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def said_plainly(file: Path) -> Generator[None]:
    """What SQLite and the system refuse, as a `StoreError` with a next step."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain_failure(error, str(file)) from error
    except OSError as error:
        raise unusable(file.parent, error) from error


def copy_database(source: Path, target: Path) -> None:
    """Write a whole, consistent copy of a database, readable by this user alone.

    Raises:
        StoreError: It cannot be written; nothing is left of it.
    """
    with said_plainly(target):
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with contextlib.closing(open_reader(source)) as connection:
                connection.execute("VACUUM INTO ?", (str(target),))
        except BaseException:
            target.unlink(missing_ok=True)
            raise


def copy_store(folder: Path, target: Path, *, mint: Callable[[str], str]) -> None:
    """Copy a store, beside a server or not, to be put in its place some day.

    The copy is a log of its own: clients that knew the store further than the copy does build anew
    what they show (C3.2).

    Args:
        folder: The data folder.
        target: The file to write; it must not be there.
        mint: Makes the id of the copy's log, from its prefix.

    Raises:
        StoreCorrupt: There is no store, or it is damaged.
        StoreError: The copy cannot be written.
    """
    missing = check_file(folder)
    if missing is not None:
        raise StoreCorrupt(missing.message)
    if target.exists():
        raise StoreError(f"{str(target)!r} is there already: name a file that is not.")
    copy_database(folder / STORE_FILE, target)
    with said_plainly(target), contextlib.closing(open_writer(target)) as connection:
        meta.put(connection, "log", mint("log"))

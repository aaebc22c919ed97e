"""A note beside the store's file that says which log it holds.

SQLite makes a new database of a file that is missing or empty, without a word. The note lasts when
the file is lost, so that a lost store is told and not begun anew.
"""

import os
from pathlib import Path
from typing import Final

from towline_server.errors import StoreCorrupt
from towline_server.store.lock import unusable

__all__ = ["NOTE_FILE", "check_lineage", "note_lineage", "read_note"]

NOTE_FILE: Final = "store.log"
"""The note's name in the data folder; it holds the log's id in one line."""

_LEAST_BYTES: Final = 512  # of the smallest database; SQLite takes less for an empty one
_NOTE_BYTES: Final = 200  # an id is 30 characters


def check_lineage(folder: Path, file: Path) -> None:
    """Refuse to begin a new store where an older one was lost.

    Args:
        folder: The data folder, which this process owns.
        file: The store's file in it.

    Raises:
        StoreCorrupt: The note is there, and the file is missing or empty.
        StoreError: The folder cannot be read.
    """
    log = read_note(folder)
    size = _size(folder, file)
    if log is None or (size is not None and size >= _LEAST_BYTES):
        return
    state = "is missing" if size is None else "is empty"
    raise StoreCorrupt(
        f"The store {str(file)!r} {state}, but this folder held the sessions of {log!r}. Put a "
        "backup of that file in its place (`towline doctor` names what lies beside it); or, to "
        f"begin anew, delete the folder {str(folder)!r}."
    )


def note_lineage(folder: Path, log: str) -> None:
    """Write down which log the store holds, once it holds it.

    Raises:
        StoreFull: The disk has no room.
        StoreError: It cannot be written.
    """
    if read_note(folder) == log:
        return
    note = folder / NOTE_FILE
    fresh = note.with_suffix(".new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as text:
            text.write(f"{log}\n")
            text.flush()
            os.fsync(descriptor)
        fresh.replace(note)
    except OSError as error:
        raise unusable(folder, error) from error


def read_note(folder: Path) -> str | None:
    """The log that the note names; `None` when there is no note.

    Raises:
        StoreError: It cannot be read.
    """
    try:
        with (folder / NOTE_FILE).open("rb") as note:
            return note.read(_NOTE_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(folder, error) from error


def _size(folder: Path, file: Path) -> int | None:
    """The file's bytes; `None` when it is not there."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(folder, error) from error

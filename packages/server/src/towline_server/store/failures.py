"""What SQLite and the system say, as sentences with a next step."""

import sqlite3
from typing import Final

from towline_server.errors import StoreCorrupt, StoreError, StoreFull

__all__ = ["MEND", "explain_failure"]

MEND: Final = (
    "stop the server and run `towline doctor --repair`, or put a backup of the data folder in its "
    "place."
)
"""What to do about a log that cannot be read; ends a sentence."""

_RETRY_FULL_S: Final = 30.0  # time in which a person can make room

_PRIMARY: Final = 0xFF  # SQLite's extended codes carry the plain one in the low byte

_SENTENCES: Final = {
    sqlite3.SQLITE_READONLY: "is read-only: make the folder and the file writable",
    sqlite3.SQLITE_PERM: "may not be opened: give this user access to the folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: see that the folder exists and can be written",
    sqlite3.SQLITE_BUSY: "is kept locked by another program: close that program",
    sqlite3.SQLITE_LOCKED: "is kept locked by another program: close that program",
    sqlite3.SQLITE_IOERR: "cannot be read or written, the disk reports an error: check the disk",
}


def explain_failure(error: Exception, place: str) -> StoreError:
    """The exception to raise for what went wrong in a statement.

    Args:
        error: What the database raised, or a `StoreError`, which is given back as it is.
        place: The store's file, for the sentence.
    """
    if isinstance(error, StoreError):
        return error
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(
            f"The disk of the store {place!r} is full; nothing of this was saved. Make room, then "
            "try again.",
            retry_after_s=_RETRY_FULL_S,
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorrupt(
            f"The store {place!r} is damaged or is no store of towline. Run `towline doctor` to "
            "see what can be saved. Put a backup in its place, or name another folder with "
            "TOWLINE_DATA_DIR."
        )
    sentence = _SENTENCES.get(code)
    if sentence is not None:
        return StoreError(f"The store {place!r} {sentence}, then try again.")
    if "Could not decode" in str(error):  # text that is no UTF-8: only damage writes such
        return StoreCorrupt(f"The store {place!r} holds text that cannot be read; {MEND}")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(
        f"The store {place!r} refused a statement ({name}); nothing of it was saved. Report this "
        "with the server's log."
    )

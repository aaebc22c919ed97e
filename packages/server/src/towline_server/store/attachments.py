"""Files by the hash of their bytes: pictures, documents, outputs too long for an event (C1.10).

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`. The bytes stand
in the database, in pieces: so a file is there in the same moment as the event that names it, a full
disk or a crash leaves neither without the other, and a copy of the store is whole.
"""

import sqlite3
from typing import Final, NamedTuple

import msgspec

from towline_server.store.records import Append, NewFile
from towline_server.store.statements import load_statements

__all__ = [
    "HELD_MS",
    "PIECE_BYTES",
    "UPLOAD_MS",
    "FileRow",
    "Waiting",
    "abort",
    "add_piece",
    "apply_files",
    "begin",
    "drop_cut",
    "find",
    "finish",
    "forget_session",
    "hold",
    "put",
    "read_piece",
    "sweep",
    "waiting",
]

PIECE_BYTES: Final = 1024 * 1024
"""Bytes of every piece but the last: what one write or read holds in memory."""
HELD_MS: Final = 24 * 3600 * 1000
"""Milliseconds for which an upload waits for a prompt that names it."""
UPLOAD_MS: Final = 3600 * 1000
"""Milliseconds after which an upload that is not whole has died with its sender."""

_END_OF_TIME_MS: Final = 2**63 - 1  # the largest number that SQLite holds
_SQL: Final = load_statements("attachments")


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one file."""

    file: str
    """The hash: SHA-256 of the bytes, in hex."""
    media_type: str
    """What the bytes are, as they show it themselves."""
    size: int
    """Their number."""
    name: str = ""
    """What its owner calls it; may be empty."""


class Waiting(NamedTuple):
    """What a user uploaded and no prompt has named yet."""

    size: int
    """Bytes."""
    until_ms: int
    """When the first of them goes, in milliseconds since 1970."""


def waiting(connection: sqlite3.Connection, user: str, *, now_ms: int, beside: str = "") -> Waiting:
    """What of a user waits for a prompt that names it, but for the file `beside`."""
    values = (user, beside, now_ms)
    return Waiting(*connection.execute(_SQL["waiting_bytes"], values).fetchone())


def begin(connection: sqlite3.Connection, now_ms: int) -> int:
    """Make the place of an upload; gives its number."""
    place = connection.execute(_SQL["begin_file"], (now_ms,)).lastrowid
    assert place is not None
    return place


def add_piece(connection: sqlite3.Connection, place: int, number: int, data: bytes) -> bool:
    """Keep a piece of an upload, numbered from 0; `False` when its place is gone."""
    return connection.execute(_SQL["add_piece"], (number, data, place)).rowcount == 1


def finish(
    connection: sqlite3.Connection, place: int, row: FileRow, *, user: str, now_ms: int
) -> bool:
    """Make an upload a file that its sender owns; `False` when its place is gone.

    Bytes that are there already stay as they are, and the new ones go (C1.10).
    """
    if _place(connection, row.file) is not None:
        abort(connection, place)
    else:
        values = (row.file, row.media_type, row.size, place)
        if connection.execute(_SQL["finish_file"], values).rowcount != 1:
            return False
    owned = (row.file, user, row.name, now_ms, now_ms + HELD_MS)
    connection.execute(_SQL["own_file"], owned)
    return True


def abort(connection: sqlite3.Connection, place: int) -> None:
    """Forget an upload, or a file."""
    connection.execute(_SQL["drop_pieces"], (place,))
    connection.execute(_SQL["drop_file"], (place,))


def put(connection: sqlite3.Connection, new: NewFile, *, user: str, now_ms: int) -> None:
    """Keep a whole file for a user; it is held for as long as a session uses it."""
    if _place(connection, new.file) is None:
        place = begin(connection, now_ms)
        for number, start in enumerate(range(0, len(new.data), PIECE_BYTES)):
            add_piece(connection, place, number, new.data[start : start + PIECE_BYTES])
        values = (new.file, new.media_type, len(new.data), place)
        connection.execute(_SQL["finish_file"], values)
    connection.execute(_SQL["own_file"], (new.file, user, new.name, now_ms, 0))


def apply_files(connection: sqlite3.Connection, batch: Append) -> None:
    """Keep what an append brings along, and note which files its session uses from now on.

    A file that its user does not own is passed over: naming a hash gives nobody a right to it
    (C2.9).
    """
    if batch.summary is None:
        return
    user, now_ms = batch.summary.user, batch.summary.updated_ms
    for new in batch.files:
        put(connection, new, user=user, now_ms=now_ms)
    for file in batch.uses:
        connection.execute(_SQL["use_file"], (batch.session, file, user))
        connection.execute(_SQL["unhold_file"], (file, user))


def find(connection: sqlite3.Connection, user: str, file: str) -> FileRow | None:
    """A user's file; `None` when there is none, or it is somebody else's (C2.9)."""
    found = connection.execute(_SQL["find_file"], (file, user)).fetchone()
    if found is None:
        return None
    return FileRow(file=found[0], media_type=found[1], size=found[2], name=found[3])


def hold(connection: sqlite3.Connection, user: str, file: str, *, now_ms: int) -> FileRow | None:
    """Find a user's file, and keep it for the prompt that is about to name it.

    The session that used it so far may be deleted before that prompt is kept.
    """
    connection.execute(_SQL["hold_file"], (now_ms + HELD_MS, file, user))
    return find(connection, user, file)


def read_piece(connection: sqlite3.Connection, user: str, file: str, number: int) -> bytes | None:
    """A piece of a user's file, numbered from 0; `None` behind the last one."""
    found = connection.execute(_SQL["read_piece"], (file, user, number)).fetchone()
    return None if found is None else found[0]


def forget_session(connection: sqlite3.Connection, session: str, *, now_ms: int) -> None:
    """Take away what a session uses, in the transaction that deletes it.

    A file that no other session of its owner uses goes with it; the bytes, when it was the last
    owner's.
    """
    used = connection.execute(_SQL["files_of_session"], (session,)).fetchall()
    connection.execute(_SQL["drop_uses"], (session,))
    for file, user in used:
        _disown(connection, file, user, now_ms)


def sweep(connection: sqlite3.Connection, *, now_ms: int) -> int:
    """Forget uploads that died or that no prompt has named in time; gives how many they were."""
    unfinished = _abort_begun_before(connection, now_ms - UPLOAD_MS)
    unused = connection.execute(_SQL["unused_owners"], (now_ms,)).fetchall()
    for file, user in unused:
        _disown(connection, file, user, now_ms)
    return unfinished + len(unused)


def drop_cut(connection: sqlite3.Connection) -> int:
    """Forget the uploads that a crash cut; gives how many they were.

    For a start, before anything is served: then nobody is sending one.
    """
    return _abort_begun_before(connection, _END_OF_TIME_MS)


def _abort_begun_before(connection: sqlite3.Connection, time_ms: int) -> int:
    unfinished = connection.execute(_SQL["unfinished"], (time_ms,)).fetchall()
    for (place,) in unfinished:
        abort(connection, place)
    return len(unfinished)


def _disown(connection: sqlite3.Connection, file: str, user: str, now_ms: int) -> None:
    connection.execute(_SQL["disown_file"], (file, user, now_ms))
    found = connection.execute(_SQL["place_without_owner"], (file,)).fetchone()
    if found is not None:
        abort(connection, found[0])


def _place(connection: sqlite3.Connection, file: str) -> int | None:
    found = connection.execute(_SQL["find_place"], (file,)).fetchone()
    return None if found is None else found[0]

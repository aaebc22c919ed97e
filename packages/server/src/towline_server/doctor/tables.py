"""What stands beside the logs: files, graves, answers, what people read. All by plain SQL."""

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Final, NamedTuple

from towline_protocol import SessionId
from towline_server.doctor.finding import Finding, Progress, fault, fine, warning
from towline_server.store.idempotency import KEPT_MS
from towline_server.store.statements import load_statements

__all__ = ["PAGE", "DamagedFile", "check_tables", "damaged_files", "orphan_sessions"]

PAGE: Final = 256
"""Rows that one statement gives."""

_SQL: Final = load_statements("doctor")

_COUNTED: Final = (
    (
        "count_undead",
        "tombstones",
        "session(s) are noted as deleted and are there all the same, so they could not be deleted",
        "forget that note; the sessions stay",
    ),
    (
        "count_left_words",
        "words",
        "row(s) say by what to find sessions that are not there",
        "remove them",
    ),
    ("count_left_marks", "marks", "mark(s) are of sessions that are not there", "remove them"),
    ("count_far_marks", "marks", "mark(s) stand behind the end of their log", "move them there"),
)


class DamagedFile(NamedTuple):
    """A file whose bytes are not those that were kept."""

    place: int
    """Where its pieces lie."""
    file: str
    """The hash that they should have."""


def check_tables(
    connection: sqlite3.Connection, *, now_ms: int, on_progress: Progress
) -> Iterator[Finding]:
    """Look at all that is no log.

    Args:
        connection: The store.
        now_ms: The time.
        on_progress: Told of each page of files.

    Raises:
        sqlite3.Error: The database refused.
    """
    for session in orphan_sessions(connection):
        yield _describe_orphan(connection, session)
    for name, check, said, repair in _COUNTED:
        count = _count(connection, name)
        if count:
            yield fault(check, f"{count} {said}.", repair=repair)
    buried = _count(connection, "count_buried")
    if buried:
        yield warning(
            "tombstones",
            f"{buried} deleted session(s) are not removed whole yet; a server that runs does that, "
            "or the next start.",
            repair="remove the rest of them",
        )
    damaged = 0
    for found in damaged_files(connection, on_progress):
        damaged += 1
        yield fault(
            "files",
            f"The bytes of file {found.file[:12]!r} are not those that were kept.",
            repair="keep them apart, so that nobody is shown wrong bytes",
        )
    if not damaged:
        yield fine("files", f"The bytes of {_count(connection, 'count_files')} file(s) are right.")
    yield from _say_counts(connection, now_ms)


def _say_counts(connection: sqlite3.Connection, now_ms: int) -> Iterator[Finding]:
    old = connection.execute(_SQL["count_old_answers"], (now_ms - KEPT_MS,)).fetchone()[0]
    if old:
        yield fine(
            "idempotency",
            f"{old} kept answer(s) are older than a day; a server that runs forgets them.",
        )
    apart = _count(connection, "count_apart")
    if apart:
        yield fine("quarantine", f"{apart} row(s) that could not stay were kept by a repair.")


def orphan_sessions(connection: sqlite3.Connection) -> list[SessionId]:
    """The sessions of which there are events and no row, those that are being removed left out."""
    found = connection.execute(_SQL["orphan_sessions"]).fetchall()
    return [SessionId(str(columns[0])) for columns in found]


def _describe_orphan(connection: sqlite3.Connection, session: SessionId) -> Finding:
    count = connection.execute(_SQL["has_events"], (session,)).fetchone()[0]
    grave = connection.execute(_SQL["find_tombstone_of"], (session,)).fetchone()
    if grave is not None:
        return fault(
            "tombstones",
            f"{count} event(s) of the deleted session {session!r} were left behind.",
            repair="remove them, as was asked",
            session=session,
        )
    return fault(
        "list",
        f"{count} event(s) of session {session!r} have no row in the list, so nobody finds them.",
        repair="put the session back into its user's list, or the owner's when nothing names the "
        "user",
        session=session,
    )


def damaged_files(connection: sqlite3.Connection, on_progress: Progress) -> Iterator[DamagedFile]:
    """The files whose bytes do not have their hash; a piece in memory at a time.

    Raises:
        sqlite3.Error: The database refused.
    """
    total, done, place = _count(connection, "count_files"), 0, -1
    while True:
        page = connection.execute(_SQL["page_files"], (place, PAGE)).fetchall()
        if not page:
            return
        for place, file, size in page:
            on_progress("files", done, total)
            done += 1
            if _read_file(connection, place) != (file, size):
                yield DamagedFile(place, str(file))


def _read_file(connection: sqlite3.Connection, place: int) -> tuple[str, int] | None:
    """The hash and the size of what lies there; `None` when a piece is missing or is no bytes."""
    hashed, size = hashlib.sha256(), 0
    pieces = connection.execute(_SQL["file_pieces"], (place,))
    for expected, (number, data) in enumerate(pieces):
        if number != expected or not isinstance(data, bytes):
            return None
        hashed.update(data)
        size += len(data)
    return hashed.hexdigest(), size


def _count(connection: sqlite3.Connection, name: str) -> int:
    number: int = connection.execute(_SQL[name]).fetchone()[0]
    return number

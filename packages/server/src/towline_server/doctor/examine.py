"""A look at a whole store: it changes nothing, and a server may run meanwhile."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from towline_agent import Checkpoints, ToolError
from towline_protocol import SessionId, format_time
from towline_server.doctor.database import (
    check_lineage_note,
    check_schema,
    check_shape,
    check_whole,
    is_damage,
)
from towline_server.doctor.finding import Finding, Progress, fault, fine, warning
from towline_server.doctor.log_look import look_at_log, read_row
from towline_server.doctor.store_file import check_file, open_reader
from towline_server.doctor.tables import PAGE, check_tables
from towline_server.sessions.kept_files import CHECKPOINTS
from towline_server.store.failures import explain_failure
from towline_server.store.sqlite_store import STORE_FILE
from towline_server.store.statements import load_statements

__all__ = ["AHEAD_MS", "Listed", "examine_store", "find_user", "page_sessions"]

AHEAD_MS: Final = 60_000
"""Milliseconds that the newest event may lie ahead of the clock: clocks of one machine differ by
less, whatever sets them."""

_SHOWN: Final = 3  # damages that are told one by one
_SQL: Final = load_statements("doctor")

Listed = tuple[int, SessionId]
"""SQLite's own number of a session's row, and what it says is its id."""


def examine_store(
    folder: Path, *, now_ms: int, on_progress: Progress = lambda what, done, total: None
) -> Iterator[Finding]:
    """Look at a data folder's store, from the file to each event; a finding at a time.

    Args:
        folder: The data folder.
        now_ms: The time.
        on_progress: Told how far a long look is.

    Raises:
        StoreError: It cannot be looked at: no access, a disk that fails.
    """
    found = check_file(folder)
    if found is not None:
        yield found
        return
    file = folder / STORE_FILE
    try:
        with contextlib.closing(open_reader(file)) as connection:
            yield from _examine(connection, folder, now_ms, on_progress)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise explain_failure(error, str(file)) from error
        yield fault(
            "database",
            f"The file {str(file)!r} is damaged, or is no store of towline: {error}.",
            repair="copy row by row what can be read into a new file, if it can be read at all",
        )
    yield from _check_checkpoints(folder)


def _check_checkpoints(folder: Path) -> Iterator[Finding]:
    """What was kept of files, to undo turns (A5.71); nothing where nothing ever was."""
    kept = Checkpoints(folder / CHECKPOINTS, now_ms=lambda: 0)
    if not kept.there:
        return
    try:
        damages = kept.damages()
    except ToolError:
        damages = ["It cannot be read at all."]
    finally:
        kept.close()
    if not damages:
        yield fine("checkpoints", "What was kept of files is whole.")
        return
    more = f" And {len(damages) - _SHOWN} more." if len(damages) > _SHOWN else ""
    yield warning(
        "checkpoints",
        f"What was kept of files, to undo turns, is damaged. {' '.join(damages[:_SHOWN])}{more} "
        f"Turns that need it cannot be undone; conversations are not touched by this. To begin "
        f"anew, stop the server and move {str(folder / CHECKPOINTS)!r} away.",
    )


def _examine(
    connection: sqlite3.Connection, folder: Path, now_ms: int, on_progress: Progress
) -> Iterator[Finding]:
    on_progress("database", 0, 1)
    whole = check_whole(connection)
    yield whole
    if whole.level != "ok":
        return  # what the tables hold can be said once they can be read
    schema = check_schema(connection)
    yield schema
    if schema.level != "ok":
        return
    shape = check_shape(connection)
    if shape is not None:
        yield shape
        return
    yield from check_lineage_note(connection, folder)
    yield from _check_logs(connection, on_progress)
    yield from check_tables(connection, now_ms=now_ms, on_progress=on_progress)
    yield _check_clock(connection, now_ms)


def _check_logs(connection: sqlite3.Connection, on_progress: Progress) -> Iterator[Finding]:
    total: int = connection.execute(_SQL["count_sessions"]).fetchone()[0]
    done = wrong = events = 0
    for _, session in page_sessions(connection):
        on_progress("sessions", done, total)
        done += 1
        found, last = _check_log(connection, session)
        events += last
        wrong += any(one.level != "ok" for one in found)
        yield from found
    if not wrong:
        yield fine("log", f"{done} session(s) with {events} event(s) are whole.")


def _check_log(connection: sqlite3.Connection, session: SessionId) -> tuple[list[Finding], int]:
    """A session as one moment shows it, and how many events it has."""
    connection.execute("BEGIN")
    try:
        if read_row(connection, session) is None and not _is_listed(connection, session):
            return [_nameless(session)], 0
        look = look_at_log(connection, session, find_user(connection, session))
        return list(look.findings()), look.row.last_seq
    finally:
        connection.execute("COMMIT")


def _is_listed(connection: sqlite3.Connection, session: SessionId) -> bool:
    """Whether a row is found by that id: one with an id that is no text is not."""
    found = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone()
    return found is not None


def _nameless(session: SessionId) -> Finding:
    return fault(
        "list",
        f"A row of the list has an id that cannot be read ({session!r}).",
        repair="keep the row apart",
    )


def _check_clock(connection: sqlite3.Connection, now_ms: int) -> Finding:
    newest = connection.execute(_SQL["newest_event"]).fetchone()[0]
    if newest is None or newest <= now_ms + AHEAD_MS:
        return fine("clock", "No event lies in the future.")
    return warning(
        "clock",
        f"The newest event is of {_show_time(newest)}, and this machine's clock says "
        f"{_show_time(now_ms)}: one of the two is wrong. Set the clock; what was written in the "
        "meantime stands in its right order within each session.",
    )


def _show_time(time_ms: int) -> str:
    try:
        return format_time(time_ms)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"


def page_sessions(connection: sqlite3.Connection) -> Iterator[Listed]:
    """All rows of the list, in no order that a damaged column could disturb."""
    place = -(2**63)
    while True:
        page = connection.execute(_SQL["page_sessions"], (place, PAGE)).fetchall()
        if not page:
            return
        for place, session in page:
            yield place, SessionId(str(session))


def find_user(connection: sqlite3.Connection, session: SessionId) -> str:
    """Whose a session is, as far as anything says it; else the owner's, who may read the file."""
    for name in ("find_user", "find_user_elsewhere"):
        found = connection.execute(_SQL[name], (session,)).fetchone()
        if found is not None and found[0]:
            return str(found[0])
    return _OWNER


_OWNER: Final = "owner"  # as the second migration makes it

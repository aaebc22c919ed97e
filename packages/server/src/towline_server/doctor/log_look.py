"""One session's log and what stands beside it, looked at or rewritten."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from towline_protocol import SessionCreated, SessionId, TurnStarted
from towline_server.doctor.finding import Finding, fault, warning
from towline_server.doctor.log_mend import Flaw, LogMend, RawRow
from towline_server.errors import StoreCorrupt
from towline_server.sessions.agents import DEFAULT_AGENT
from towline_server.sessions.recovery import read_piece
from towline_server.sessions.summary import search_words, summarize
from towline_server.store.log import get_session
from towline_server.store.records import SessionRow, StoredRow
from towline_server.store.statements import load_statements

__all__ = ["LogLook", "look_at_log", "raw_rows", "read_row"]

_SQL: Final = load_statements("doctor")

_LIGHT: Final = frozenset({"last_line", "said_seq", "updated_ms", "words"})
"""Columns that only the looks of a list, its order, its marks and its search go by."""

_FLAWS: Final = {
    "unreadable": ("event(s) cannot be read", "put a notice in each place, keep the bytes apart"),
    "missing": ("event(s) are missing", "put a notice in each place"),
    "surplus": (
        "event(s) stand after the end of what they belong to",
        "put a notice in each place, keep the bytes apart",
    ),
    "unended": ("turn(s) have no end", "end each as failed"),
    "headless": ("event(s) belong to what has no beginning", "put a notice before them"),
    "open": ("turn(s) ended while something of them was open", "close it before their ends"),
    "columns": ("event(s) have columns that are out of step with them", "set the columns anew"),
    "doubted": (
        "waiting prompt(s) may have had their turn",
        "take them back; they stay to be read",
    ),
    "settings": ("setting(s) stand in the list alone", "write them into the log"),
}


class LogLook(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    mend: LogMend
    """The fold of the whole log."""
    row: SessionRow
    """The row as the log says it."""
    words: str
    """What the session is found by, as the log says it."""
    stale: tuple[str, ...]
    """Columns that say something else."""
    unnoted: tuple[str, ...]
    """Files that the log names and its user owns, and that are not noted as used."""
    lost: tuple[str, ...]
    """Files that the log names and that are not there."""

    @property
    def broken(self) -> bool:
        """Whether the log itself has to be written anew."""
        return bool(self.mend.flaws)

    def findings(self) -> Iterator[Finding]:
        """What is wrong, in words."""
        session = self.row.id
        for kind, flaw in self.mend.flaws.items():
            said, repair = _FLAWS[kind]
            message = f"Session {session!r}: {flaw.count} {said}{_numbers(flaw)}."
            yield fault("log", message, repair=repair, session=session)
        if self.mend.unknown:
            yield warning(
                "log",
                f"Session {session!r}: {self.mend.unknown} event(s) are of a kind that this "
                "towline does not know. A newer one wrote them, or they are damaged.",
                session=session,
            )
        if self.stale and not self.broken:
            light = _LIGHT.issuperset(self.stale)
            yield (warning if light else fault)(
                "list",
                f"Session {session!r}: its row in the list is out of step with its log "
                f"({', '.join(self.stale)}).",
                repair="set it anew from the log",
                session=session,
            )
        if self.unnoted:
            yield fault(
                "files",
                f"Session {session!r}: {len(self.unnoted)} file(s) that it shows are not noted as "
                "used, so they could be removed.",
                repair="note them",
                session=session,
            )
        if self.lost:
            yield warning(
                "files",
                f"Session {session!r}: {len(self.lost)} file(s) that it names are not there.",
                session=session,
            )


def look_at_log(
    connection: sqlite3.Connection,
    session: SessionId,
    user: str,
    *,
    on_row: Callable[[StoredRow], object] = lambda row: None,
    keep: Callable[[RawRow, str], None] = lambda raw, reason: None,
) -> LogLook:
    """Go through a session's log once; the caller holds a transaction.

    Args:
        connection: The store.
        session: The session.
        user: Whose it is.
        on_row: Told of each row of the mended log.
        keep: Told of each row that cannot stay, and why.

    Raises:
        sqlite3.Error: The database refused.
    """
    stands = read_row(connection, session)
    beginning = _beginning(connection, session, stands)
    mend = LogMend(session, row=stands, beginning=beginning, keep=keep)
    for row in mend.rows(raw_rows(connection, session)):
        on_row(row)
    row = summarize(session, user, mend.view)
    words = search_words(mend.view, mend.opening)
    unnoted, lost = _check_uses(connection, session, user, mend.uses)
    return LogLook(
        mend=mend,
        row=row,
        words=words,
        stale=_stale(connection, row, words, stands),
        unnoted=unnoted,
        lost=lost,
    )


def raw_rows(connection: sqlite3.Connection, session: SessionId) -> Iterator[RawRow]:
    """A session's events as they lie there, one in memory at a time."""
    for columns in connection.execute(_SQL["raw_events"], (session,)):
        yield RawRow(*columns)


def read_row(connection: sqlite3.Connection, session: SessionId) -> SessionRow | None:
    """A session's row of the list; `None` when there is none that can be read."""
    try:
        return get_session(connection, session)
    except StoreCorrupt:
        return None


def _beginning(
    connection: sqlite3.Connection, session: SessionId, row: SessionRow | None
) -> SessionCreated:
    """The first event of a session that has lost it, as far as anything knows it."""
    if row is not None:
        return SessionCreated(
            agent=row.agent,
            model=row.model,
            mode=row.mode,
            title=row.title,
            cwd=row.cwd,
            labels=row.labels,
        )
    for raw in raw_rows(connection, session):
        event = _event(raw)
        if isinstance(event, SessionCreated):
            return event
        if isinstance(event, TurnStarted):
            return SessionCreated(agent=DEFAULT_AGENT, model=event.model, mode="ask")
    newest = connection.execute(_SQL["newest_model"]).fetchone()
    model = str(newest[0]) if newest else ""
    return SessionCreated(agent=DEFAULT_AGENT, model=model, mode="ask")


def _event(raw: RawRow) -> object:
    if not isinstance(raw.data, bytes) or not isinstance(raw.seq, int):
        return None
    try:
        return read_piece(StoredRow(raw.seq, None, 0, raw.data)).envelope.event
    except StoreCorrupt:
        return None


def _stale(
    connection: sqlite3.Connection, row: SessionRow, words: str, stands: SessionRow | None
) -> tuple[str, ...]:
    """The names of what is stored and says something else than the log."""
    if stands is None:
        return ("row",)
    names = [
        field.name
        for field in msgspec.structs.fields(SessionRow)
        if field.name != "read_seq" and getattr(row, field.name) != getattr(stands, field.name)
    ]
    if not stands.last_line and "last_line" in names:
        names.remove("last_line")  # of a store from before: the session's next use brings it
    found = connection.execute(_SQL["find_words"], (row.id,)).fetchone()
    if (found[0] if found else "") != words:
        names.append("words")
    return tuple(names)


def _check_uses(
    connection: sqlite3.Connection, session: SessionId, user: str, uses: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that are not noted as used, and those that are not there."""
    unnoted: list[str] = []
    lost: list[str] = []
    for file in sorted(uses):
        if connection.execute(_SQL["has_file"], (file,)).fetchone() is None:
            lost.append(file)
        elif connection.execute(_SQL["is_unnoted"], (file, user, session)).fetchone() is not None:
            unnoted.append(file)
    return tuple(unnoted), tuple(lost)


def _numbers(flaw: Flaw) -> str:
    more = ", …" if flaw.count > len(flaw.numbers) else ""
    return f" (at {', '.join(map(str, flaw.numbers))}{more})"

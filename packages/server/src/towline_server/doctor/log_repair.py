"""Mends the logs of a store and the rows that are made of them, a session in each transaction."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from towline_protocol import Broken, SessionId, decode_envelope, encode
from towline_server.doctor.examine import find_user, page_sessions
from towline_server.doctor.finding import Progress
from towline_server.doctor.log_look import LogLook, look_at_log, read_row
from towline_server.doctor.log_mend import RawRow
from towline_server.doctor.store_file import transaction
from towline_server.doctor.tables import PAGE, orphan_sessions
from towline_server.store.log import replace_row
from towline_server.store.records import StoredRow
from towline_server.store.statements import load_statements

__all__ = ["LogRepair"]

_SQL: Final = load_statements("doctor")
_SESSIONS: Final = load_statements("sessions")

_SAID: Final = {
    "logs": "{} log(s) are written anew, with notices where events are lost.",
    "rows": "{} row(s) of the list are set anew from their logs.",
    "files": "{} file(s) are noted as used.",
    "apart": "{} row(s) that could not stay are kept in the table quarantine.",
    "moved": "{} event(s) are back in the session they name.",
    "found": "{} session(s) are back in the list.",
    "graves": "{} deleted session(s) are to be removed whole.",
}


class LogRepair:
    """Goes through all sessions, then through what belongs to none.

    Args:
        connection: The store, which nobody else uses.
        now_ms: The time.
        renew_log: Gives the store a new lineage, once: clients build anew what they show.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, now_ms: int, renew_log: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._now_ms = now_ms
        self._renew_log = renew_log
        self._counts: Counter[str] = Counter()
        connection.execute("DROP TABLE IF EXISTS temp.mended")
        connection.execute(_SQL["make_mended"])

    def run(self, on_progress: Progress) -> list[str]:
        """Mend, and tell what was done.

        Raises:
            sqlite3.Error: The database refused; what was mended before that stays.
        """
        self._place_strays()
        total: int = self._connection.execute(_SQL["count_sessions"]).fetchone()[0]
        for done, (place, session) in enumerate(page_sessions(self._connection)):
            on_progress("sessions", done, total)
            with transaction(self._connection):
                if not self._is_listed(session):
                    self._put_row_apart(place)
                else:
                    self._mend(session)
        self._take_up_orphans()
        return [
            said.format(self._counts[kind]) for kind, said in _SAID.items() if self._counts[kind]
        ]

    def _is_listed(self, session: SessionId) -> bool:
        found = self._connection.execute(_SESSIONS["get_last_seq"], (session,)).fetchone()
        return found is not None

    def _mend(self, session: SessionId) -> None:
        user = find_user(self._connection, session)
        look = look_at_log(self._connection, session, user)
        if look.broken:
            look = self._rewrite(session, user)
        if look.broken or look.stale:
            self._counts["rows"] += 1
            replace_row(self._connection, look.row)
            self._connection.execute(_SESSIONS["set_words"], (session, look.words))
        for file in look.unnoted:
            self._counts["files"] += 1
            self._connection.execute(_SQL["add_use"], (session, file, user))

    def _rewrite(self, session: SessionId, user: str) -> LogLook:
        """Write a session's log anew: in a table of its own first, so that memory stays small."""

        def put(row: StoredRow) -> None:
            values = (row.seq, row.turn, row.time_ms, row.data, row.private)
            self._connection.execute(_SQL["add_mended"], values)

        def keep(raw: RawRow, reason: str) -> None:
            self._keep_apart("events", session, raw.seq, reason, raw.data, raw.private)

        self._connection.execute(_SQL["clear_mended"])
        look = look_at_log(self._connection, session, user, on_row=put, keep=keep)
        self._connection.execute(_SQL["drop_events"], (session,))
        self._connection.execute(_SQL["take_mended"], (session,))
        self._renew_log()
        self._counts["logs"] += 1
        return look

    def _place_strays(self) -> None:
        """Put events of no session back where they say that they belong, if that place is free."""
        for place in self._orphan_places():
            raw = self._raw(place)
            envelope = (
                decode_envelope(raw.data) if isinstance(raw.data, bytes) else Broken(reason="")
            )
            if isinstance(envelope, Broken) or envelope.seq is None:
                continue
            target = (envelope.session, envelope.seq)
            if self._connection.execute(_SQL["has_event"], target).fetchone() is None:
                with transaction(self._connection):
                    self._connection.execute(_SQL["move_event"], (*target, place))
                    self._renew_log()
                self._counts["moved"] += 1

    def _take_up_orphans(self) -> None:
        """Give sessions without a row one; what no session can be made of is kept apart."""
        for session in orphan_sessions(self._connection):
            with transaction(self._connection):
                count = self._connection.execute(_SQL["has_events"], (session,)).fetchone()[0]
                grave = self._connection.execute(_SQL["find_tombstone_of"], (session,)).fetchone()
                if grave is not None:
                    self._connection.execute(_SQL["note_unemptied"], (session,))
                    self._counts["graves"] += 1
                elif count and read_row(self._connection, session) is None:
                    self._mend(session)
                    self._counts["found"] += 1
        for place in self._orphan_places():
            with transaction(self._connection):
                raw, session = self._raw(place), self._session_of(place)
                reason = "its session cannot be read"
                self._keep_apart("events", session, raw.seq, reason, raw.data, raw.private)
                self._connection.execute(_SQL["drop_event"], (place,))

    def _orphan_places(self) -> Iterator[int]:
        place = -(2**63)
        while True:
            page = self._connection.execute(_SQL["page_orphans"], (place, PAGE)).fetchall()
            if not page:
                return
            for (place,) in page:
                yield place

    def _raw(self, place: int) -> RawRow:
        return RawRow(*self._connection.execute(_SQL["raw_event"], (place,)).fetchone()[:6])

    def _session_of(self, place: int) -> object:
        return self._connection.execute(_SQL["raw_event"], (place,)).fetchone()[6]

    def _put_row_apart(self, place: int) -> None:
        """Take a row whose id is no text out of the list."""
        columns = self._connection.execute(_SQL["raw_session"], (place,)).fetchone()
        data = encode([repr(column) for column in columns])
        self._keep_apart("sessions", None, None, "its id cannot be read", data, None)
        self._connection.execute(_SQL["drop_session"], (place,))

    def _keep_apart(
        self, table: str, session: object, seq: Any, reason: str, data: object, private: object
    ) -> None:
        number = seq if isinstance(seq, int) else None
        values = (self._now_ms, table, session, number, reason, data, private)
        self._connection.execute(_SQL["keep_apart"], values)
        self._counts["apart"] += 1

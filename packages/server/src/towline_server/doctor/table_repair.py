"""Mends what is no log: graves, marks, files, answers."""

import sqlite3
from typing import Final

from towline_protocol import SessionId
from towline_server.doctor.finding import Progress
from towline_server.doctor.store_file import transaction
from towline_server.doctor.tables import DamagedFile, damaged_files
from towline_server.store import attachments, idempotency, tombstones
from towline_server.store.statements import load_statements

__all__ = ["TableRepair"]

_SQL: Final = load_statements("doctor")

_DROPPED: Final = (
    ("drop_undead", "{} note(s) of deleted sessions that are there are forgotten."),
    ("drop_left_words", "{} row(s) of search words without a session are removed."),
    ("drop_left_marks", "{} mark(s) without a session are removed."),
    ("pull_far_marks", "{} mark(s) are moved to the end of their log."),
)


class TableRepair:
    """Goes through the tables once the logs are in order.

    Args:
        connection: The store, which nobody else uses.
        now_ms: The time.
    """

    def __init__(self, connection: sqlite3.Connection, *, now_ms: int) -> None:
        self._connection = connection
        self._now_ms = now_ms

    def run(self, on_progress: Progress) -> list[str]:
        """Mend, and tell what was done.

        Raises:
            sqlite3.Error: The database refused; what was mended before that stays.
        """
        done: list[str] = []
        for name, said in _DROPPED:
            with transaction(self._connection):
                count = self._connection.execute(_SQL[name]).rowcount
            if count:
                done.append(said.format(count))
        emptied = tombstones.unfinished(self._connection)
        for session in emptied:
            self._empty(session)
        if emptied:
            done.append(f"{len(emptied)} deleted session(s) are removed whole.")
        damaged = list(damaged_files(self._connection, on_progress))
        for file in damaged:
            self._put_file_apart(file)
        if damaged:
            done.append(f"{len(damaged)} damaged file(s) are kept in the table quarantine.")
        with transaction(self._connection):
            count = idempotency.prune(self._connection, now_ms=self._now_ms)
        if count:
            done.append(f"{count} old answer(s) are forgotten.")
        return done

    def _empty(self, session: SessionId) -> None:
        more = True
        while more:
            with transaction(self._connection):
                more = tombstones.remove_some(self._connection, session)

    def _put_file_apart(self, damaged: DamagedFile) -> None:
        """Keep the pieces, and let the hash name nothing any more."""
        with transaction(self._connection):
            pieces = self._connection.execute(_SQL["file_pieces"], (damaged.place,)).fetchall()
            for number, data in pieces:
                reason = f"the bytes of {damaged.file} are others"
                values = (self._now_ms, "files", None, number, reason, data, None)
                self._connection.execute(_SQL["keep_apart"], values)
            attachments.abort(self._connection, damaged.place)
            self._connection.execute(_SQL["drop_file_uses"], (damaged.file,))
            self._connection.execute(_SQL["drop_file_owners"], (damaged.file,))

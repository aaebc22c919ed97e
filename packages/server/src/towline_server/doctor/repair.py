"""A repair: a copy first, then all that is understood, each piece whole or not at all."""

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from towline_server.doctor.examine import examine_store
from towline_server.doctor.finding import Finding, Progress
from towline_server.doctor.log_repair import LogRepair
from towline_server.doctor.salvage import salvage
from towline_server.doctor.store_file import (
    check_file,
    copy_database,
    open_writer,
    said_plainly,
    transaction,
)
from towline_server.doctor.table_repair import TableRepair
from towline_server.errors import StoreError
from towline_server.store import meta
from towline_server.store.lineage import note_lineage
from towline_server.store.lock import take_lock
from towline_server.store.migration import migrate
from towline_server.store.sqlite_store import STORE_FILE

__all__ = ["Repaired", "repair_store"]

_NEW_LOG: Final = "The store has a new log id: whoever was connected loads it anew."
_ROUNDS: Final = 3
"""Looks at most: what one repair has put right may show what the next one can."""


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair came to."""

    found: tuple[Finding, ...] = ()
    """What was wrong."""
    done: tuple[str, ...] = ()
    """What was done about it, a sentence each."""
    left: tuple[Finding, ...] = ()
    """What is wrong still: nothing here can mend it."""
    copy: Path | None = None
    """The store as it was before; `None` when it was too damaged to be copied, or not touched."""
    damaged: Path | None = None
    """The damaged file, if a new one stands in its place."""
    new_log: bool = False
    """Whether an event was changed, so that clients build anew what they show (C3.2)."""


def repair_store(
    folder: Path,
    *,
    now_ms: int,
    mint: Callable[[str], str],
    on_progress: Progress = lambda what, done, total: None,
) -> Repaired:
    """Mend a store that no server uses.

    Nothing is deleted that is not understood: what cannot stay goes into the table `quarantine`.

    Args:
        folder: The data folder.
        now_ms: The time.
        mint: Makes the id of a new log, from its prefix.
        on_progress: Told how far it is.

    Raises:
        StoreLocked: A server uses the store; the message names it.
        StoreFull: The disk has no room for the copy, or for the repair.
        StoreError: It cannot be looked at or changed.
    """
    if check_file(folder) is not None:
        return Repaired(left=tuple(_wrong(folder, now_ms, on_progress)))
    lock = take_lock(folder)
    try:
        return _Repair(folder, now_ms, mint, on_progress).run()
    finally:
        lock.release()


def _wrong(folder: Path, now_ms: int, on_progress: Progress) -> list[Finding]:
    found = examine_store(folder, now_ms=now_ms, on_progress=on_progress)
    return [one for one in found if one.level != "ok"]


class _Repair:
    """One repair, from the look before it to the look after it."""

    def __init__(
        self, folder: Path, now_ms: int, mint: Callable[[str], str], on_progress: Progress
    ) -> None:
        self._folder = folder
        self._file = folder / STORE_FILE
        self._now_ms = now_ms
        self._mint = mint
        self._on_progress = on_progress
        self._done: list[str] = []
        self._copy: Path | None = None
        self._damaged: Path | None = None
        self._new_log = False

    def run(self) -> Repaired:
        first = left = self._look()
        for _ in range(_ROUNDS):
            if not any(one.repair for one in left):
                break
            self._mend(left)
            left = self._look()
        return Repaired(
            found=tuple(first),
            done=tuple(self._done),
            left=tuple(left),
            copy=self._copy,
            damaged=self._damaged,
            new_log=self._new_log,
        )

    def _look(self) -> list[Finding]:
        return _wrong(self._folder, self._now_ms, self._on_progress)

    def _mend(self, found: list[Finding]) -> None:
        damaged = any(one.check == "database" and one.repair for one in found)
        if damaged:
            self._salvage()
        elif self._copy is None and self._damaged is None:
            self._copy = self._beside("before-repair")
            copy_database(self._file, self._copy)
        with said_plainly(self._file), contextlib.closing(open_writer(self._file)) as connection:
            steps = migrate(connection)
            if steps:
                self._done.append(f"The schema is brought up to version {steps[-1]}.")
            self._mend_rows(connection, renew=damaged)
            log = meta.get(connection, "log")
        if log is not None:
            note_lineage(self._folder, log)

    def _salvage(self) -> None:
        if self._damaged is not None:
            raise StoreError(
                f"The new file {str(self._file)!r} is found damaged too: check the disk. The old "
                f"one is {str(self._damaged)!r}."
            )
        old = self._beside("damaged")
        saved = salvage(self._file, old, self._on_progress)
        self._damaged = old
        refused = f", {saved.refused} could not be put in" if saved.refused else ""
        self._done.append(f"{saved.rows} row(s) are copied into a new file{refused}.")

    def _mend_rows(self, connection: sqlite3.Connection, *, renew: bool) -> None:
        def renew_log() -> None:
            if not self._new_log:
                meta.put(connection, "log", self._mint("log"))
                self._new_log = True
                self._done.append(_NEW_LOG)

        if renew or meta.get(connection, "log") is None:
            with transaction(connection):
                renew_log()
        logs = LogRepair(connection, now_ms=self._now_ms, renew_log=renew_log)
        self._done += logs.run(self._on_progress)
        tables = TableRepair(connection, now_ms=self._now_ms)
        self._done += tables.run(self._on_progress)

    def _beside(self, kind: str) -> Path:
        """A name beside the store that is not taken."""
        time = datetime.fromtimestamp(self._now_ms / 1000, UTC)
        name = f"{STORE_FILE}.{kind}-{time:%Y%m%d-%H%M%S}"
        path, number = self._folder / name, 1
        while path.exists():
            number += 1
            path = self._folder / f"{name}-{number}"
        return path

"""A new database out of what can still be read of a damaged one, row by row."""

import contextlib
import os
import sqlite3
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from towline_server.doctor.database import is_damage, schema_version
from towline_server.doctor.finding import Progress
from towline_server.doctor.store_file import open_reader, open_writer, said_plainly, transaction
from towline_server.errors import StoreCorrupt
from towline_server.store.migration import migrate
from towline_server.store.statements import load_migrations

__all__ = ["Salvaged", "salvage"]

_PROBES: Final = 20_000
"""Statements that look for rows behind damage, for each table: some seconds."""
_ROW_BYTES: Final = 64
"""No table has more rows than bytes by this: where the last one is cannot always be read."""
_WRITTEN: Final = 500  # rows that one transaction takes
_PARTS: Final = ("", "-wal", "-shm")  # what belongs to one database

_Row = tuple[Any, ...]


class Salvaged(NamedTuple):
    """What a salvage came to."""

    old: Path
    """Where the damaged file lies now."""
    rows: int
    """Rows that were read."""
    refused: int
    """Rows that are there twice or lack something: they stay in the damaged file."""


class _Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    numbered: bool  # has SQLite's own row numbers


def salvage(file: Path, old: Path, on_progress: Progress) -> Salvaged:
    """Put a new database in a damaged one's place, and keep the damaged one beside it.

    Args:
        file: The damaged database; nobody else may use it.
        old: Where it goes.
        on_progress: Told of each table.

    Raises:
        StoreCorrupt: Nothing can be read of it; it stays where it is.
        StoreError: The new one cannot be written; the damaged one stays where it is.
    """
    fresh = file.with_name(f"{file.name}.new")
    for part in _PARTS:
        fresh.with_name(f"{fresh.name}{part}").unlink(missing_ok=True)
    with said_plainly(file):
        most = file.stat().st_size // _ROW_BYTES
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT, 0o600))
        try:
            with (
                contextlib.closing(open_reader(file, damaged=True)) as source,
                contextlib.closing(open_writer(fresh)) as target,
            ):
                rows, refused = _copy_tables(source, target, most, on_progress)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        for part in _PARTS:  # the log of the damaged file must not be taken for the new one's
            piece = file.with_name(f"{file.name}{part}")
            if piece.exists():
                piece.rename(old.with_name(f"{old.name}{part}"))
        fresh.replace(file)
    return Salvaged(old, rows, refused)


def _copy_tables(
    source: sqlite3.Connection, target: sqlite3.Connection, most: int, on_progress: Progress
) -> tuple[int, int]:
    version = _version(source)
    migrate(target, [step for step in load_migrations() if step[0] <= version])
    tables = _tables(target)
    there = {table.name for table in _tables(source)}
    if not there & {table.name for table in tables}:
        raise StoreCorrupt("Nothing of the store can be read any more. Put a backup in its place.")
    rows = refused = 0
    for done, table in enumerate(tables):
        on_progress("tables", done, len(tables))
        if table.name in there:
            read, twice = _copy_table(source, target, table, most)
            rows += read
            refused += twice
    return rows, refused


def _version(source: sqlite3.Connection) -> int:
    """The version of the damaged store; the newest one when it does not say."""
    newest = load_migrations()[-1][0]
    try:
        version = schema_version(source)
    except sqlite3.Error as error:
        if is_damage(error):
            return newest
        raise
    return version if version and 0 < version <= newest else newest


def _tables(connection: sqlite3.Connection) -> list[_Table]:
    """The tables that hold something of ours, as the database says; none when it says nothing."""
    try:
        found = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite_%' AND name != 'schema_version'"
        ).fetchall()
        return [_table(connection, str(name), str(sql)) for name, sql in found]
    except sqlite3.Error as error:
        if is_damage(error):
            raise StoreCorrupt(
                "The part of the file that says where its tables lie is damaged, so nothing can be "
                "read of it. It stays as it is. Put a backup in its place."
            ) from error
        raise


def _table(connection: sqlite3.Connection, name: str, sql: str) -> _Table:
    info = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
    keys = sorted((place, column) for column, place in info if place)
    return _Table(
        name,
        tuple(column for column, _ in info),
        tuple(column for _, column in keys),
        not sql.upper().rstrip().endswith("WITHOUT ROWID"),
    )


def _copy_table(
    source: sqlite3.Connection, target: sqlite3.Connection, table: _Table, most: int
) -> tuple[int, int]:
    columns = ", ".join(table.columns)
    marks = ", ".join("?" * len(table.columns))
    # the names come out of our own schema
    insert = f"INSERT OR IGNORE INTO {table.name} ({columns}) VALUES ({marks})"  # noqa: S608
    with transaction(target):
        target.execute(f"DELETE FROM {table.name}")  # noqa: S608 - what a migration put there
    rows = refused = 0
    reader = _Reader(source, table, most)
    for batch in _batches(reader.rows()):
        with transaction(target):
            for row in batch:
                rows += 1
                refused += not target.execute(insert, row).rowcount
    return rows, refused


def _batches(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    batch: list[_Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _WRITTEN:
            yield batch
            batch = []
    yield batch


class _Reader:
    """Reads a table from both ends, and what lies between the places that cannot be read."""

    def __init__(self, source: sqlite3.Connection, table: _Table, most: int) -> None:
        self._source = source
        self._table = table
        self._most = most
        self._probes = 0
        self._columns = ", ".join(table.columns)

    def rows(self) -> Iterator[_Row]:
        """All that can be read; some of it twice when the table is badly torn."""
        if self._table.numbered:
            yield from self._by_number()
            return
        whole: list[bool] = []
        for direction in ("ASC", "DESC"):
            if not whole:
                order = ", ".join(f"{key} {direction}" for key in self._table.keys)
                yield from self._until_damage(self._columns, f"ORDER BY {order}", whole)

    def _by_number(self) -> Iterator[_Row]:
        """By SQLite's own numbers; what cannot be read is halved until the damage is found."""
        ranges = deque([(-(2**63), 2**63 - 1)])
        while ranges and self._probes < _PROBES:
            low, high = ranges.popleft()
            whole: list[bool] = []
            for number, *row in self._range(low, high, "ASC", whole):
                low = number + 1
                yield tuple(row)
            if not whole and low <= high:
                for number, *row in self._range(low, high, "DESC", whole):
                    high = number - 1
                    yield tuple(row)
            low = max(low, 0)
            high = min(high, low + self._most)
            if not whole and low < high:
                middle = (low + high) // 2
                ranges += (low, middle), (middle + 1, high)

    def _range(self, low: int, high: int, direction: str, whole: list[bool]) -> Iterator[_Row]:
        rest = f"WHERE rowid BETWEEN ? AND ? ORDER BY rowid {direction}"
        return self._until_damage(f"rowid, {self._columns}", rest, whole, low, high)

    def _until_damage(
        self, columns: str, rest: str, whole: list[bool], *values: int
    ) -> Iterator[_Row]:
        """Rows until one cannot be read, for whatever reason; `whole` gets an entry if none is."""
        self._probes += 1
        # the names come out of our own schema
        statement = f"SELECT {columns} FROM {self._table.name} NOT INDEXED {rest}"  # noqa: S608
        with contextlib.suppress(sqlite3.Error):
            yield from self._source.execute(statement, values)
            whole.append(True)

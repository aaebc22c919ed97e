"""The database itself: whether SQLite finds it whole, and whether it is of this version."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from towline_server.doctor.finding import Finding, fault, fine, warning
from towline_server.store import meta
from towline_server.store.lineage import read_note
from towline_server.store.migration import migrate
from towline_server.store.statements import load_migrations, load_statements

__all__ = [
    "check_lineage_note",
    "check_schema",
    "check_shape",
    "check_whole",
    "is_damage",
    "schema_version",
]

_SCHEMA: Final = load_statements("schema")

_SHOWN: Final = 3  # of SQLite's own words; the first ones say it all
_SALVAGE: Final = "copy row by row what can be read into a new file, and keep the old one beside it"
_PRIMARY: Final = 0xFF  # SQLite's extended codes carry the plain one in the low byte


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file is not what was written."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def check_whole(connection: sqlite3.Connection) -> Finding:
    """What SQLite says of the file, its indexes included. It reads all of it.

    Raises:
        sqlite3.Error: The database refused, for another reason than damage.
    """
    try:
        said = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        said = [str(error)]
    if said == ["ok"]:
        return fine("database", "SQLite finds the file whole.")
    words = "; ".join(" ".join(line.split()) for line in said[:_SHOWN])
    return fault(
        "database",
        f"SQLite finds the file damaged: {words}.",
        repair=_SALVAGE,
    )


def schema_version(connection: sqlite3.Connection) -> int | None:
    """The version of the store's schema; `None` for a database of another program.

    Raises:
        sqlite3.Error: The database refused.
    """
    known = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'"
    ).fetchone()[0]
    tables: int = connection.execute(_SCHEMA["foreign_tables"]).fetchone()[0]
    if not known:
        return None if tables else 0
    version = connection.execute(_SCHEMA["newest_version"]).fetchone()[0]
    return version if isinstance(version, int) else None


def check_schema(connection: sqlite3.Connection) -> Finding:
    """Whether this version can look into the tables: it can when this is `ok`.

    Raises:
        sqlite3.Error: The database refused.
    """
    version, newest = schema_version(connection), load_migrations()[-1][0]
    if version is None:
        return fault(
            "schema",
            "The file is a database of another program. Name another data folder with "
            "TOWLINE_DATA_DIR, or put a backup of the store in its place.",
        )
    if version > newest:
        return fault(
            "schema",
            f"The store has schema version {version}, this towline knows {newest}: a newer towline "
            "wrote it. Update towline.",
        )
    if version < newest:
        return warning(
            "schema",
            f"The store has schema version {version}, the newest is {newest}. The next start of "
            "the server brings it up to date; only then can its sessions be looked at.",
            repair="bring it up to date, then look at the sessions",
        )
    return fine("schema", f"The store has the newest schema, version {version}.")


def check_shape(connection: sqlite3.Connection) -> Finding | None:
    """Whether all tables, columns and indexes of the newest schema are there; `None` when so.

    Raises:
        sqlite3.Error: The database refused.
    """
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrate(model)
        missing = sorted(_shape(model) - _shape(connection))
    if not missing:
        return None
    return fault(
        "database",
        f"Parts of the schema are gone: {', '.join(missing[:_SHOWN])}.",
        repair=_SALVAGE,
    )


def _shape(connection: sqlite3.Connection) -> set[str]:
    found = connection.execute(
        "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c "
        "WHERE m.type = 'table'"
    ).fetchall()
    indexes = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
    return {f"{table}.{column}" for table, column in found} | {str(name) for (name,) in indexes}


def check_lineage_note(connection: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    """Whether the store knows which log it is, and the note beside it says the same.

    Raises:
        sqlite3.Error: The database refused.
        StoreError: The note cannot be read.
    """
    log, note = meta.get(connection, "log"), read_note(folder)
    if log is None:
        yield fault(
            "lineage",
            "The store does not say which log it is, so clients cannot tell it from another one.",
            repair="give it a new id",
        )
    elif note is None:
        yield fine("lineage", "The note beside the store is missing; the next start writes it.")
    elif note != log:
        yield warning(
            "lineage",
            f"The note beside the store names another log ({note!r}) than the store ({log!r}): a "
            "copy was put in its place. The next start of the server notes that.",
            repair="note it",
        )
    else:
        yield fine("lineage", "The note beside the store names its log.")

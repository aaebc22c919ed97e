"""From one schema to the next, one whole step at a time."""

import re
import sqlite3

import pytest

from towline_server.errors import StoreCorrupt, StoreError
from towline_server.store.migration import migrate
from towline_server.store.statements import load_migrations, load_statements, split_script

FIRST = (1, "first", "CREATE TABLE a (x TEXT);\n\nCREATE TABLE b (\n  y TEXT\n);\n")
SECOND = (2, "second", "ALTER TABLE a ADD COLUMN z TEXT;\nINSERT INTO a VALUES ('1', ';');\n")
BROKEN = (2, "broken", "CREATE TABLE c (x TEXT);\nINSERT INTO nowhere VALUES (1);\n")


@pytest.fixture
def connection() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def _versions(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    return connection.execute("SELECT version, name FROM schema_version").fetchall()


def test_each_step_is_done_once_and_written_down(connection: sqlite3.Connection) -> None:
    assert migrate(connection, [FIRST]) == [1]
    assert migrate(connection, [FIRST, SECOND]) == [2]
    assert migrate(connection, [FIRST, SECOND]) == []
    assert _versions(connection) == [(1, "first"), (2, "second")]
    assert connection.execute("SELECT x, z FROM a").fetchall() == [("1", ";")]


def test_a_step_that_fails_leaves_nothing_behind(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, [FIRST, BROKEN])
    assert _versions(connection) == [(1, "first")]
    assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'c'").fetchall() == []
    assert migrate(connection, [FIRST, SECOND]) == [2]


def test_a_store_of_a_newer_towline_is_left_alone(connection: sqlite3.Connection) -> None:
    migrate(connection, [FIRST, SECOND])
    with pytest.raises(StoreError, match=r"schema version 2, this towline knows 1.*Update towline"):
        migrate(connection, [FIRST])
    assert len(_versions(connection)) == 2


def test_a_database_of_another_program_is_left_alone(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(StoreCorrupt):
        migrate(connection, [FIRST])
    tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("songs",)]


def test_the_steps_of_this_package_are_numbered_on_from_one() -> None:
    numbers = [number for number, _, _ in load_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize(
    "file", ["events", "idempotency", "marks", "meta", "sessions", "tokens", "tombstones", "users"]
)
def test_every_statement_can_be_prepared(connection: sqlite3.Connection, file: str) -> None:
    migrate(connection)
    statements = load_statements(file)
    assert statements
    for statement in statements.values():
        values = [0] * statement.count("?")
        connection.execute(f"EXPLAIN {statement}", values).fetchall()


def test_a_script_is_split_at_line_ends_alone() -> None:
    script = "SELECT ';' AS x;\n-- a note\nSELECT\n  2;  \n"
    assert split_script(script) == ["SELECT ';' AS x", "-- a note\nSELECT\n  2"]


@pytest.mark.rules("C6", "S35")
@pytest.mark.parametrize(
    ("name", "values", "index"),
    [
        ("list_sessions", ("me", False, 1, "", 9), "sessions_listed"),
        ("search_sessions", ("me", True, 1, "", "a", "a", '["b"]', 9), "sessions_listed"),
        (
            "search_needing_sessions",
            ("me", False, 1, "", "", "", "[]", 9),
            "sessions_needing",
        ),
        ("list_open_sessions", (1, "", 9), "sessions_open"),
        ("get_session", ("ses_1",), "sqlite_autoindex_sessions_1"),
        ("advance_session", (1, 2, "ses_1", 1), "sqlite_autoindex_sessions_1"),
    ],
)
def test_no_list_grows_slow_with_what_is_stored(
    connection: sqlite3.Connection, name: str, values: tuple[object, ...], index: str
) -> None:
    migrate(connection)
    statement = load_statements("sessions")[name]
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    text = " ".join(str(step[-1]) for step in plan)
    assert f"USING INDEX {index}" in text
    assert "TEMP B-TREE" not in text
    assert not re.search(r"SCAN (?!word\b)", text)  # but the words that are searched for

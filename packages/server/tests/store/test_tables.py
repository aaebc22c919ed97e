"""The session list, and what a server knows beside its logs."""

import sqlite3
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_protocol import SessionId
from towline_server.errors import CursorExpired
from towline_server.store import idempotency, meta
from towline_server.store.event_store import append_and_wait
from towline_server.store.migration import migrate
from towline_server.store.records import (
    NEWEST,
    Append,
    IdempotencyRecord,
    SessionCursor,
    SessionRow,
    format_cursor,
    parse_cursor,
)
from towline_server.store.sqlite_store import SqliteStore

Build = Callable[..., Append]


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    return connection


async def test_the_list_is_newest_first_and_goes_on_from_its_cursor(
    memory: SqliteStore, build: Build
) -> None:
    for number, updated in enumerate((50, 10, 50, 40, 30)):
        await append_and_wait(memory, build(f"ses_{number}", updated_ms=updated))
    await append_and_wait(memory, build("ses_other", user="you"))
    seen: list[str] = []
    after = NEWEST
    while page := await memory.sessions(user="me", after=after, limit=2):
        assert len(page) <= 2
        seen += [row.id for row in page]
        after = parse_cursor(format_cursor(page[-1]))
    assert seen == ["ses_2", "ses_0", "ses_3", "ses_4", "ses_1"]


async def test_what_has_something_open_is_found_for_all_users(
    memory: SqliteStore, build: Build
) -> None:
    await append_and_wait(memory, build("ses_idle"))
    await append_and_wait(memory, build("ses_turn", turn="trn_1", updated_ms=1))
    await append_and_wait(memory, build("ses_asks", pending=1, user="you", updated_ms=2))
    await append_and_wait(memory, build("ses_waits", queued=3, updated_ms=3))
    found = [row.id for row in await memory.sessions(user=None)]
    assert found == ["ses_waits", "ses_asks", "ses_turn"]


async def test_a_session_that_nobody_made_is_none(memory: SqliteStore) -> None:
    assert await memory.session(SessionId("ses_none")) is None


@given(updated=st.integers(0, 2**62), name=st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=1))
def test_a_cursor_says_exactly_where_a_page_ended(updated: int, name: str) -> None:
    row = SessionRow(
        id=SessionId(f"ses_{name}"),
        user="me",
        agent="a",
        model="a/b",
        mode="ask",
        created_ms=0,
        updated_ms=updated,
    )
    assert parse_cursor(format_cursor(row)) == SessionCursor(updated, row.id)


@pytest.mark.parametrize("text", ["", "-", "1-", "-ses_1", "x-ses_1", "9" * 19 + "-s", "²-ses_1"])
def test_what_is_no_cursor_asks_for_the_first_page(text: str) -> None:
    with pytest.raises(CursorExpired, match="ask for the first page"):
        parse_cursor(text)


def _record(key: str, created_ms: int, status: int = 200) -> IdempotencyRecord:
    return IdempotencyRecord(
        user="me",
        operation="create_session",
        path="/api/sessions",
        key=key,
        body_sha256="00",
        status=status,
        answer=b"{}",
        created_ms=created_ms,
    )


def _find(connection: sqlite3.Connection, now_ms: int, **other: str) -> IdempotencyRecord | None:
    scope = {"user": "me", "operation": "create_session", "path": "/api/sessions", "key": "k"}
    return idempotency.find(connection, now_ms=now_ms, **{**scope, **other})  # pyright: ignore[reportArgumentType] - `other` names parts of the scope


@pytest.mark.rules("C2.5")
def test_an_answer_counts_for_a_day_in_its_own_scope(connection: sqlite3.Connection) -> None:
    idempotency.keep(connection, _record("k", 1000))
    assert _find(connection, 1000 + idempotency.KEPT_MS) == _record("k", 1000)
    assert _find(connection, 1001 + idempotency.KEPT_MS) is None
    for part in ("user", "operation", "path", "key"):
        assert _find(connection, 1000, **{part: "other"}) is None


@pytest.mark.rules("C2.5")
def test_an_old_answer_gives_way_and_is_forgotten(connection: sqlite3.Connection) -> None:
    idempotency.keep(connection, _record("k", 1000))
    later = 1001 + idempotency.KEPT_MS
    idempotency.keep(connection, _record("k", later, status=201))
    idempotency.keep(connection, _record("old", 1000))
    assert _find(connection, later) == _record("k", later, status=201)
    assert idempotency.prune(connection, now_ms=later) == 1
    assert _find(connection, later) is not None


def test_a_fact_is_kept_and_an_id_is_made_once(connection: sqlite3.Connection) -> None:
    assert meta.get(connection, "server") is None
    assert meta.claim(connection, "server", "srv_1") == "srv_1"
    assert meta.claim(connection, "server", "srv_2") == "srv_1"
    meta.put(connection, "server", "srv_3")
    assert meta.get(connection, "server") == "srv_3"

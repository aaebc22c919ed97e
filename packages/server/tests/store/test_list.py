"""How sessions are found among many, what is read of them, and how they are removed."""

import sqlite3
import time
from collections.abc import Callable
from functools import partial

import pytest

from towline_protocol import SessionId
from towline_server.store import marks, tombstones
from towline_server.store.event_store import append_and_wait
from towline_server.store.log import list_sessions
from towline_server.store.migration import migrate
from towline_server.store.records import (
    NEWEST,
    Append,
    IdempotencyRecord,
    SessionFilter,
    fold_words,
)
from towline_server.store.sqlite_store import SqliteStore

Build = Callable[..., Append]

ONE = SessionId("ses_1")


async def _fill(store: SqliteStore, build: Build) -> None:
    """Four sessions of one user and one of another."""
    for name, words, changes in (
        ("ses_1", "Über die Brücke\nhome", {"labels": ("home",)}),
        ("ses_2", "fix the 100% load_test\nwork", {"labels": ("work", "late")}),
        ("ses_3", "Fix the bridge", {"pending": 2}),
        ("ses_4", "the old bridge", {"archived": True, "labels": ("home",)}),
    ):
        batch = build(name, said_seq=1, **changes)
        await append_and_wait(store, _with_words(batch, words))
    await append_and_wait(store, _with_words(build("ses_5", user="you"), "the bridge"))


def _with_words(batch: Append, words: str) -> Append:
    return Append(
        session=batch.session,
        first_seq=batch.first_seq,
        rows=batch.rows,
        summary=batch.summary,
        words=fold_words(words),
    )


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (SessionFilter(), "321"),
        (SessionFilter(archived=True), "4"),
        (SessionFilter(needs=True), "3"),
        (SessionFilter(needs=True, archived=True), ""),
        (SessionFilter(label="home"), "1"),
        (SessionFilter(label="home", archived=True), "4"),
        (SessionFilter(label="hom"), ""),
        (SessionFilter(label="late"), "2"),
        (SessionFilter(label="work\nlate"), "2"),
        (SessionFilter(words=("über",)), "1"),
        (SessionFilter(words=("the", "fix")), "32"),
        (SessionFilter(words=("bridge",), needs=True), "3"),
        (SessionFilter(words=("brid",), archived=True), "4"),
        (SessionFilter(words=("100%",)), "2"),
        (SessionFilter(words=("%",)), "2"),
        (SessionFilter(words=("_",)), "2"),
        (SessionFilter(words=("load_test", "work")), "2"),
        (SessionFilter(words=("loadxtest",)), ""),
        (SessionFilter(words=("'", '"')), ""),
    ],
)
async def test_a_list_shows_what_was_asked_for_and_no_more(
    memory: SqliteStore, build: Build, only: SessionFilter, found: str
) -> None:
    await _fill(memory, build)
    rows = await memory.sessions(user="me", only=only)
    assert "".join(row.id.removeprefix("ses_") for row in rows) == found


async def test_a_row_comes_back_with_its_labels_and_what_was_read(
    memory: SqliteStore, build: Build
) -> None:
    await append_and_wait(memory, build(count=5, labels=("a b", "ü"), archived=True, said_seq=4))
    assert await memory.write(partial(marks.advance, session=ONE, user="me", seq=3)) == 3
    row = await memory.session(ONE)
    assert row is not None
    assert (row.labels, row.archived, row.said_seq) == (("a b", "ü"), True, 4)
    assert (row.last_seq, row.read_seq) == (5, 3)
    assert await memory.sessions(user="me", only=SessionFilter(archived=True)) == [row]


async def test_words_that_an_append_does_not_name_stay(memory: SqliteStore, build: Build) -> None:
    await append_and_wait(memory, _with_words(build(), "first"))
    await append_and_wait(memory, build(first=2))
    only = SessionFilter(words=("first",))
    assert len(await memory.sessions(user="me", only=only)) == 1
    await append_and_wait(memory, _with_words(build(first=3), "second"))
    assert await memory.sessions(user="me", only=only) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("STRASSE", "straße"), ("e\u0301", "é"), ("ＡＢＣ", "abc"), ("ﬁx", "FIX"), ("ΣΑΣ", "σας")],  # noqa: RUF001 - odd forms on purpose
)
def test_two_ways_to_write_a_word_are_one(one: str, other: str) -> None:
    assert fold_words(one) == fold_words(other)


async def test_a_mark_goes_neither_back_nor_beyond_the_log_and_is_each_user_s_own(
    memory: SqliteStore, build: Build
) -> None:
    await append_and_wait(memory, build(count=5))

    async def mark(seq: int, user: str = "me", session: SessionId = ONE) -> int | None:
        return await memory.write(partial(marks.advance, session=session, user=user, seq=seq))

    assert await mark(2) == 2
    assert await mark(1) == 2
    assert await mark(99) == 5
    assert await mark(0) == 5
    assert await mark(3, user="you") is None
    assert await mark(3, session=SessionId("ses_none")) is None
    row = await memory.session(ONE)
    assert row is not None
    assert row.read_seq == 5


async def _bury(
    store: SqliteStore, user: str = "me", answer: IdempotencyRecord | None = None
) -> bool:
    return await store.write(
        partial(tombstones.bury, session=ONE, user=user, now_ms=1000, answer=answer)
    )


async def _buried(store: SqliteStore, now_ms: int, user: str = "me") -> bool:
    return await store.query(partial(tombstones.is_buried, session=ONE, user=user, now_ms=now_ms))


@pytest.mark.rules("C2.10")
async def test_a_buried_session_is_out_of_the_list_at_once_and_told_of_for_a_day(
    memory: SqliteStore, build: Build
) -> None:
    await append_and_wait(memory, _with_words(build(count=3), "words"))
    await memory.write(partial(marks.advance, session=ONE, user="me", seq=1))
    assert not await _bury(memory, user="you")
    assert await _bury(memory)
    assert not await _bury(memory)
    assert await memory.session(ONE) is None
    assert await memory.sessions(user="me") == []
    assert await memory.query(lambda c: c.execute("SELECT * FROM words").fetchall()) == []
    assert await memory.query(lambda c: c.execute("SELECT * FROM marks").fetchall()) == []
    day = 24 * 3600 * 1000
    assert await _buried(memory, 999 + day)
    assert not await _buried(memory, 1000 + day)
    assert not await _buried(memory, 1001, user="you")


async def test_a_long_log_is_removed_in_pieces_and_its_tombstone_waits_for_the_last(
    memory: SqliteStore, build: Build
) -> None:
    count = tombstones.REMOVED_ROWS + 1
    await append_and_wait(memory, build(count=count))
    await append_and_wait(memory, build("ses_2"))
    await _bury(memory)
    late = 1000 + tombstones.KEPT_MS
    assert await memory.query(tombstones.unfinished) == [ONE]
    assert await memory.write(partial(tombstones.remove_some, session=ONE))
    assert len(await memory.read(ONE, after=count - 1, upto=count)) == 1
    assert await memory.write(partial(tombstones.prune, now_ms=late)) == 0
    assert not await memory.write(partial(tombstones.remove_some, session=ONE))
    assert await memory.query(tombstones.unfinished) == []
    assert await memory.query(lambda c: c.execute("SELECT session FROM events").fetchall()) == [
        ("ses_2",)
    ]
    assert await memory.write(partial(tombstones.prune, now_ms=late - 1)) == 0
    assert await memory.write(partial(tombstones.prune, now_ms=late)) == 1


async def test_nothing_is_appended_to_a_buried_session(memory: SqliteStore, build: Build) -> None:
    await append_and_wait(memory, build())
    await _bury(memory)
    told: list[object] = []
    memory.append(build(first=2), told.append)
    await memory.session(ONE)
    assert [getattr(error, "reason", None) for error in told] == ["stale"]


@pytest.fixture(scope="module")
def many() -> sqlite3.Connection:
    """A store of 10,000 sessions."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    connection.execute("BEGIN")
    for number in range(10_000):
        name = f"ses_{number:05}"
        connection.execute(
            "INSERT INTO sessions (id, user, agent, model, mode, title, created_ms, updated_ms, "
            "last_seq, pending, queued, closed) VALUES (?, 'me', 'a', 'a/b', 'ask', ?, 0, ?, 9, 0, "
            "0, 0)",
            (name, f"Session {number}", number),
        )
        connection.execute("INSERT INTO words VALUES (?, ?)", (name, f"session {number} " * 20))
    connection.execute("COMMIT")
    return connection


@pytest.mark.rules("C6", "S35")
@pytest.mark.parametrize(
    ("user", "only", "most_ms"),
    [
        ("me", SessionFilter(), 20),
        ("me", SessionFilter(needs=True), 20),
        (None, SessionFilter(), 20),
        ("me", SessionFilter(words=("9999", "session")), 500),  # each row is looked at
        ("me", SessionFilter(label="none"), 500),
    ],
)
def test_a_page_out_of_ten_thousand_sessions_is_there_at_once(
    many: sqlite3.Connection, user: str | None, only: SessionFilter, most_ms: float
) -> None:
    took: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        list_sessions(many, user, NEWEST, 50, only)
        took.append(time.perf_counter() - start)
    assert min(took) * 1000 < most_ms

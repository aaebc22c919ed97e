"""Numbers without holes, nothing told before it is durable, one transaction for all that waits."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_protocol import SessionId
from towline_server.errors import StoreError
from towline_server.store import idempotency
from towline_server.store.event_store import append_and_wait
from towline_server.store.log import PAGE_BYTES
from towline_server.store.records import Append, IdempotencyRecord, SessionRow, StoredRow
from towline_server.store.sqlite_store import (
    STORE_FILE,
    SqliteStore,
    open_memory_store,
    open_store,
)

Build = Callable[..., Append]
Mint = Callable[[str], str]

ONE = SessionId("ses_1")


async def _seqs(store: SqliteStore, session: str = "ses_1") -> list[int]:
    rows = await store.read(SessionId(session), after=0, upto=10**6)
    return [row.seq for row in rows]


async def test_what_was_appended_is_read_back_as_it_was(memory: SqliteStore, build: Build) -> None:
    batch = build(count=3, title="A title", turn="trn_1", pending=1, queued=2)
    await append_and_wait(memory, batch)
    assert await memory.read(ONE, after=0, upto=3) == list(batch.rows)
    assert await memory.read(ONE, after=1, upto=2) == [batch.rows[1]]
    row = await memory.session(ONE)
    assert row is not None
    assert (row.title, row.turn, row.pending, row.queued, row.last_seq) == (
        "A title",
        "trn_1",
        1,
        2,
        3,
    )


async def test_private_parts_stay_beside_the_event(memory: SqliteStore, build: Build) -> None:
    row = StoredRow(1, None, 1, b"{}", b"signature")
    whole = build()
    await append_and_wait(
        memory, Append(session=ONE, first_seq=1, rows=(row,), summary=whole.summary)
    )
    assert await memory.read(ONE, after=0, upto=1) == [row]


@pytest.mark.rules("C1.3")
@pytest.mark.parametrize("first", [1, 2, 4, 99])
async def test_an_append_that_does_not_continue_the_log_is_refused_as_stale(
    memory: SqliteStore, build: Build, first: int
) -> None:
    await append_and_wait(memory, build(count=2))
    with pytest.raises(StoreError, match="load the session again") as caught:
        await append_and_wait(memory, build(first=first))
    assert caught.value.reason == "stale"
    assert await _seqs(memory) == [1, 2]


@pytest.mark.rules("C1.3")
async def test_rows_with_a_hole_are_refused(memory: SqliteStore, build: Build) -> None:
    rows = (StoredRow(1, None, 1, b"{}"), StoredRow(3, None, 1, b"{}"))
    batch = Append(session=ONE, first_seq=1, rows=rows, summary=build().summary)
    with pytest.raises(StoreError, match="without a hole"):
        await append_and_wait(memory, batch)
    assert await memory.session(ONE) is None


async def test_an_append_without_a_summary_moves_only_the_end(
    memory: SqliteStore, build: Build
) -> None:
    await append_and_wait(memory, build(title="kept"))
    await append_and_wait(memory, build(first=2, bare=True))
    row = await memory.session(ONE)
    assert row is not None
    assert (row.title, row.last_seq, row.updated_ms) == ("kept", 2, 1002)


async def test_a_first_append_without_a_summary_is_refused(
    memory: SqliteStore, build: Build
) -> None:
    with pytest.raises(StoreError):
        await append_and_wait(memory, build(bare=True))
    assert await _seqs(memory) == []


@pytest.mark.rules("C1.4")
async def test_nobody_is_told_before_the_commit(tmp_path: Path, mint: Mint, build: Build) -> None:
    seen: list[tuple[str, int]] = []
    store = await open_store(
        tmp_path, mint=mint, on_commit=lambda phase, batches: seen.append((phase, len(batches)))
    )
    outside = sqlite3.connect(tmp_path / STORE_FILE)
    told = asyncio.Event()

    def done(error: StoreError | None) -> None:
        assert error is None
        count = outside.execute("SELECT count(*) FROM events").fetchone()[0]
        seen.append(("told", count))
        told.set()

    store.append(build(count=2), done)
    async with asyncio.timeout(5):
        await told.wait()
    outside.close()
    await store.close()
    assert seen == [("before", 1), ("after", 1), ("told", 2)]


@pytest.mark.rules("C5.15")
async def test_all_that_waits_becomes_one_transaction_told_in_order(
    mint: Mint, build: Build
) -> None:
    first_runs, go_on = threading.Event(), threading.Event()
    commits: list[int] = []

    def hook(phase: str, batches: tuple[Append, ...]) -> None:
        if phase == "before":
            commits.append(len(batches))
            first_runs.set()
            assert go_on.wait(5)

    store = await open_memory_store(mint=mint, on_commit=hook)
    told: list[int] = []
    store.append(build(), lambda _: told.append(1))
    assert first_runs.wait(5)
    for seq in range(2, 102):
        store.append(build(first=seq), lambda _, seq=seq: told.append(seq))
    go_on.set()
    await store.close()
    assert commits == [1, 100]
    assert told == list(range(1, 102))


@pytest.mark.rules("C5.15")
async def test_a_cancelled_caller_does_not_reach_the_writer(
    memory: SqliteStore, build: Build
) -> None:
    waiting = asyncio.create_task(append_and_wait(memory, build()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await append_and_wait(memory, build(first=2))
    assert await _seqs(memory) == [1, 2]


async def test_one_bad_append_does_not_take_the_others_of_its_transaction_with_it(
    mint: Mint, build: Build
) -> None:
    store = await open_memory_store(mint=mint)
    told: dict[str, StoreError | None] = {}
    for name, first in (("ses_1", 1), ("ses_2", 7), ("ses_3", 1)):
        store.append(build(name, first), lambda error, name=name: told.update({name: error}))
    await store.close()
    assert [name for name, error in told.items() if error is None] == ["ses_1", "ses_3"]
    assert list(told) == ["ses_1", "ses_2", "ses_3"]


async def test_a_listener_that_fails_does_not_silence_the_others(mint: Mint, build: Build) -> None:
    reported: list[BaseException | None] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context.get("exception")))
    store = await open_memory_store(mint=mint)
    told: list[int] = []

    def fail(_: StoreError | None) -> None:
        raise LookupError

    store.append(build(), fail)
    store.append(build(first=2), lambda _: told.append(2))
    await append_and_wait(store, build(first=3))
    await store.close()
    loop.set_exception_handler(None)
    assert told == [2]
    assert [type(error) for error in reported] == [LookupError]


@pytest.mark.rules("C2.5")
async def test_an_answer_is_kept_in_the_transaction_of_its_effect(
    memory: SqliteStore, build: Build
) -> None:
    record = IdempotencyRecord(
        user="me",
        operation="send_prompt",
        path="/p",
        key="k",
        body_sha256="00",
        status=202,
        answer=b"{}",
        created_ms=5,
    )

    def find(connection: sqlite3.Connection) -> IdempotencyRecord | None:
        return idempotency.find(
            connection, user="me", operation="send_prompt", path="/p", key="k", now_ms=5
        )

    with pytest.raises(StoreError):
        await append_and_wait(memory, build(first=9, answer=record))
    assert await memory.query(find) is None
    await append_and_wait(memory, build(answer=record))
    assert await memory.query(find) == record


async def test_a_page_ends_early_rather_than_fill_the_memory(
    memory: SqliteStore, build: Build
) -> None:
    await append_and_wait(memory, build(count=5, size=PAGE_BYTES // 2))
    page = await memory.read(ONE, after=0, upto=5)
    assert [row.seq for row in page] == [1, 2]
    assert [row.seq for row in await memory.read(ONE, after=2, upto=5, limit=1)] == [3]


async def test_a_missing_number_is_an_error_and_no_silence(
    memory: SqliteStore, build: Build
) -> None:
    await append_and_wait(memory, build(count=3))
    await memory.write(lambda connection: connection.execute("DELETE FROM events WHERE seq = 2"))
    with pytest.raises(StoreError, match="Event 2 of session 'ses_1' is missing"):
        await memory.read(ONE, after=0, upto=3)


async def test_a_closed_store_says_so(memory: SqliteStore, build: Build) -> None:
    await memory.close()
    with pytest.raises(StoreError, match="closed"):
        await append_and_wait(memory, build())
    with pytest.raises(StoreError, match="closed"):
        await memory.session(ONE)
    await memory.close()


async def test_closing_commits_what_waits(tmp_path: Path, mint: Mint, build: Build) -> None:
    store = await open_store(tmp_path, mint=mint)
    told: list[StoreError | None] = []
    for seq in range(1, 31):
        store.append(build(first=seq), told.append)
    await store.close()
    assert told == [None] * 30
    again = await open_store(tmp_path, mint=mint)
    assert await _seqs(again) == list(range(1, 31))
    await again.close()


@pytest.mark.rules("C1.3")
@settings(max_examples=40)
@given(
    plan=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 4), st.booleans()), min_size=1, max_size=40
    )
)
def test_numbers_stay_dense_whatever_comes_at_once(plan: list[tuple[int, int, bool]]) -> None:
    """Appends of several sessions in one burst, some of them stale."""

    async def run() -> None:
        store = await open_memory_store(mint=lambda prefix: prefix)
        ends = [0, 0, 0, 0]
        told: list[StoreError | None] = []
        for which, count, stale in plan:
            session = SessionId(f"ses_{which}")
            first = ends[which] + (2 if stale else 1)
            row = SessionRow(
                id=session,
                user="me",
                agent="a",
                model="a/b",
                mode="ask",
                created_ms=0,
                updated_ms=first,
            )
            rows = tuple(StoredRow(first + n, None, 0, b"{}") for n in range(count))
            store.append(
                Append(session=session, first_seq=first, rows=rows, summary=row), told.append
            )
            if not stale:
                ends[which] += count
        for which, end in enumerate(ends):
            assert await _seqs(store, f"ses_{which}") == list(range(1, end + 1))
            found = await store.session(SessionId(f"ses_{which}"))
            assert (0 if found is None else found.last_seq) == end
        await store.close()
        assert [error is None for error in told] == [not stale for _, _, stale in plan]

    asyncio.run(run())

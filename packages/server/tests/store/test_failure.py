"""What a full, read-only, damaged or busy disk does: a sentence, and nothing half written."""

import errno
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from towline_protocol import SessionId
from towline_server.errors import StoreCorrupt, StoreError, StoreFull
from towline_server.store import tokens
from towline_server.store.event_store import append_and_wait
from towline_server.store.failures import explain_failure
from towline_server.store.records import Append
from towline_server.store.sqlite_store import (
    STORE_FILE,
    SqliteStore,
    open_memory_store,
    open_store,
)
from towline_server.store.tokens import Token

Build = Callable[..., Append]
Mint = Callable[[str], str]

ONE = SessionId("ses_1")


def _sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("injected")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_INJECTED"
    return error


async def test_a_full_disk_is_said_to_each_and_works_again_with_room(
    tmp_path: Path, mint: Mint, build: Build
) -> None:
    store = await open_store(tmp_path, mint=mint)
    await append_and_wait(store, build())
    pages: int = await store.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    await store.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    told: list[StoreError | None] = []
    store.append(build(first=2, size=50_000), told.append)
    store.append(build("ses_2", size=50_000), told.append)
    with pytest.raises(StoreFull, match="Make room, then try again") as caught:
        await append_and_wait(store, build("ses_3", size=50_000))
    assert [type(error) for error in told] == [StoreFull, StoreFull]
    fault = caught.value.fault()
    assert (fault.code, fault.scope, fault.retry) == ("store_full", "store", "same_request")
    assert fault.retry_after_s is not None
    assert fault.retry_after_s >= 1
    row = await store.session(ONE)
    assert row is not None
    assert row.last_seq == 1
    assert await store.session(SessionId("ses_2")) is None

    await store.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    await append_and_wait(store, build(first=2, size=50_000))
    assert len(await store.read(ONE, after=0, upto=2)) == 2
    await store.close()


async def test_a_small_append_still_fits_when_a_large_one_of_its_transaction_does_not(
    tmp_path: Path, mint: Mint, build: Build
) -> None:
    store = await open_store(tmp_path, mint=mint)
    await append_and_wait(store, build())
    pages: int = await store.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    await store.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    told: list[StoreError | None] = []
    store.append(build("ses_2", size=50_000), told.append)
    store.append(build(first=2), told.append)
    await store.close()
    assert [type(error) for error in told] == [StoreFull, type(None)]


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_FULL, StoreFull, "is full; nothing of this was saved. Make room"),
        (sqlite3.SQLITE_READONLY, StoreError, "is read-only: make the folder"),
        (sqlite3.SQLITE_IOERR, StoreError, "check the disk"),
        (sqlite3.SQLITE_IOERR | (4 << 8), StoreError, "check the disk"),
        (sqlite3.SQLITE_BUSY, StoreError, "close that program"),
        (sqlite3.SQLITE_CORRUPT, StoreCorrupt, "Put a backup in its place"),
        (sqlite3.SQLITE_ERROR, StoreError, "refused a statement (SQLITE_INJECTED)"),
    ],
)
@pytest.mark.rules("C1.3")
async def test_a_commit_that_fails_shows_nothing_and_says_why(
    mint: Mint, build: Build, code: int, kind: type[StoreError], words: str
) -> None:
    failing = False

    def hook(phase: str, _: tuple[Append, ...]) -> None:
        if failing and phase == "before":
            raise _sqlite_error(code)

    store = await open_memory_store(mint=mint, on_commit=hook)
    await append_and_wait(store, build())
    failing = True
    with pytest.raises(kind) as caught:
        await append_and_wait(store, build(first=2))
    assert words in caught.value.message
    failing = False
    assert len(await store.read(ONE, after=0, upto=9)) == 1
    await append_and_wait(store, build(first=2))
    await store.close()


async def test_a_store_that_became_read_only_says_so(memory: SqliteStore, build: Build) -> None:
    await memory.write(lambda connection: connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(StoreError, match="is read-only"):
        await append_and_wait(memory, build())


async def test_text_that_is_no_unicode_is_refused_and_the_store_lives_on(
    memory: SqliteStore, build: Build
) -> None:
    with pytest.raises(StoreError, match="refused a statement"):
        await append_and_wait(memory, build(title="half \ud83d pair"))
    await append_and_wait(memory, build())


async def test_work_beside_the_log_fails_alone(memory: SqliteStore, build: Build) -> None:
    token = Token(sha256="aa", id="tok_1", user="me", name="n", created_ms=0, last_used_ms=0)
    await memory.write(lambda connection: tokens.add(connection, token))
    told: list[StoreError | None] = []
    memory.append(build(), told.append)
    with pytest.raises(StoreError):
        await memory.write(lambda connection: tokens.add(connection, token))
    assert told == [None]


async def test_a_query_that_fails_is_a_store_error(tmp_path: Path, mint: Mint) -> None:
    store = await open_store(tmp_path, mint=mint)
    with pytest.raises(StoreError, match="is read-only"):
        await store.query(lambda connection: connection.execute("DELETE FROM events"))
    await store.close()


@pytest.fixture
def bugs(monkeypatch: pytest.MonkeyPatch) -> "queue.SimpleQueue[type[BaseException]]":
    """The kinds of exception that ended a thread."""
    found: queue.SimpleQueue[type[BaseException]] = queue.SimpleQueue()

    def note(ended: threading.ExceptHookArgs) -> None:
        found.put(ended.exc_type)

    monkeypatch.setattr(threading, "excepthook", note)
    return found


async def test_a_bug_in_the_writer_is_loud_and_leaves_nobody_waiting(
    mint: Mint, build: Build, bugs: "queue.SimpleQueue[type[BaseException]]"
) -> None:
    broken = False

    def hook(phase: str, _: tuple[Append, ...]) -> None:
        if broken and phase == "before":
            raise LookupError

    store = await open_memory_store(mint=mint, on_commit=hook)
    broken = True
    with pytest.raises(StoreError, match="closed"):
        await append_and_wait(store, build())
    assert bugs.get(timeout=5) is LookupError
    with pytest.raises(StoreError, match="closed"):
        await append_and_wait(store, build())
    await store.close()


async def test_a_bug_in_the_start_is_loud_and_lets_the_folder_go(
    tmp_path: Path, mint: Mint, bugs: "queue.SimpleQueue[type[BaseException]]"
) -> None:
    def fail(_: str) -> str:
        raise LookupError

    with pytest.raises(StoreError):
        await open_store(tmp_path, mint=fail)
    assert bugs.get(timeout=5) is LookupError
    store = await open_store(tmp_path, mint=mint)
    await store.close()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path, mint: Mint) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"this is no database, " * 200)
    with pytest.raises(StoreCorrupt, match=STORE_FILE):
        await open_store(tmp_path, mint=mint)
    (tmp_path / STORE_FILE).unlink()
    store = await open_store(tmp_path, mint=mint)
    await store.close()


async def test_the_file_of_another_program_is_left_alone(tmp_path: Path, mint: Mint) -> None:
    other = sqlite3.connect(tmp_path / STORE_FILE)
    other.execute("CREATE TABLE songs (title TEXT)")
    other.commit()
    other.close()
    with pytest.raises(StoreCorrupt, match="another program"):
        await open_store(tmp_path, mint=mint)


async def test_a_data_folder_that_is_a_file_is_named(tmp_path: Path, mint: Mint) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(StoreError, match=r"cannot be written.*TOWLINE_DATA_DIR"):
        await open_store(tmp_path / "data", mint=mint)


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EROFS, StoreError, "Read-only file system"),
        (errno.EACCES, StoreError, "Permission denied"),
        (errno.ENOSPC, StoreFull, "full disk: make room"),
    ],
)
async def test_a_folder_that_cannot_be_written_is_named_with_the_next_step(
    tmp_path: Path,
    mint: Mint,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[StoreError],
    words: str,
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(kind, match=words) as caught:
            await open_store(tmp_path, mint=mint)
    assert repr(str(tmp_path)) in caught.value.message


def test_a_store_error_is_given_back_as_it_is() -> None:
    error = StoreFull("full")
    assert explain_failure(error, "x") is error

"""Files in the store: whole or not there, one for the same bytes, gone with their last user."""

import asyncio
import hashlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from towline_protocol import SessionId, UsageError
from towline_server.errors import BodyTooLarge, FileNotFound, StoreFull, UploadsFull
from towline_server.sessions.bulk import MAX_FILE
from towline_server.sessions.files import Files
from towline_server.store import attachments
from towline_server.store.attachments import HELD_MS, PIECE_BYTES, UPLOAD_MS
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, NewFile
from towline_server.store.sqlite_store import SqliteStore, open_store

Build = Callable[..., Append]
Mint = Callable[[str], str]

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 10
BIG = b"x" * (2 * PIECE_BYTES + 5)


class Now:
    """A time that tests set."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def files(memory: SqliteStore, now: Now) -> Files:
    return Files(memory, now)


async def _read(files: Files, user: str, file: str) -> bytes:
    parts: list[bytes] = []
    while part := await files.piece(user, file, len(parts)):
        parts.append(part)
    return b"".join(parts)


async def _count(store: SqliteStore) -> tuple[int, int, int]:
    """Files, pieces and owners."""

    def work(connection: sqlite3.Connection) -> tuple[int, int, int]:
        tables = ("files", "file_pieces", "file_owners")
        one, two, three = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables
        )
        return one, two, three

    return await store.query(work)


def _new(data: bytes) -> NewFile:
    return NewFile(file=hashlib.sha256(data).hexdigest(), media_type="image/png", data=data)


def _with(batch: Append, *new: NewFile, uses: tuple[str, ...] = ()) -> Append:
    names = tuple(file.file for file in new)
    return msgspec.structs.replace(batch, files=new, uses=(*names, *uses))


@pytest.mark.rules("C1.10")
async def test_a_file_comes_back_as_it_came_whatever_its_pieces_were(
    files: Files, memory: SqliteStore
) -> None:
    async def body() -> AsyncIterator[bytes]:
        for start in range(0, len(BIG), 300_007):
            yield BIG[start : start + 300_007]

    row = await files.upload("me", body(), name="a.txt")
    assert (row.file, row.size) == (hashlib.sha256(BIG).hexdigest(), len(BIG))
    assert (row.media_type, row.name) == ("text/plain", "a.txt")
    assert await _read(files, "me", row.file) == BIG
    assert await files.find("me", row.file) == row
    assert await _count(memory) == (1, 3, 1)


@pytest.mark.rules("C1.10")
async def test_the_same_bytes_twice_are_one_file(files: Files, memory: SqliteStore) -> None:
    first = await files.add("me", BIG, name="a")
    second = await files.add("me", BIG, name="b")
    assert first.file == second.file
    assert (await files.find("me", first.file)).name == "b"
    assert await _count(memory) == (1, 3, 1)


@pytest.mark.rules("C2.9")
async def test_two_users_of_the_same_bytes_see_each_their_own_file(
    files: Files, memory: SqliteStore, build: Build
) -> None:
    mine = await files.add("me", PNG, name="mine")
    with pytest.raises(FileNotFound):
        await files.find("you", mine.file)
    assert await files.piece("you", mine.file, 0) is None
    await files.add("you", PNG, name="yours")
    assert (await files.find("me", mine.file)).name == "mine"
    assert (await files.find("you", mine.file)).name == "yours"
    await append_and_wait(memory, _with(build("ses_1"), uses=(mine.file,)))
    await memory.write(partial(attachments.forget_session, session="ses_1", now_ms=2_000_000))
    with pytest.raises(FileNotFound):
        await files.find("me", mine.file)
    assert await _read(files, "you", mine.file) == PNG


@pytest.mark.rules("C6")
async def test_a_file_has_a_bound_and_what_is_too_large_leaves_nothing(
    files: Files, memory: SqliteStore
) -> None:
    with pytest.raises(BodyTooLarge):
        await files.add("me", b"x" * (MAX_FILE + 1))
    assert await _count(memory) == (0, 0, 0)
    row = await files.add("me", b"x" * MAX_FILE)
    assert await _count(memory) == (1, 20, 1)
    assert row.size == MAX_FILE
    with pytest.raises(UsageError, match="empty"):
        await files.add("me", b"")


async def test_a_sender_that_goes_away_leaves_nothing(files: Files, memory: SqliteStore) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield BIG
        assert (await _count(memory))[1] == 2  # it was on its way in
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await files.upload("me", body())
    assert await _count(memory) == (0, 0, 0)


async def test_what_a_dead_upload_left_is_swept_and_one_that_goes_on_is_not(
    files: Files, memory: SqliteStore, now: Now
) -> None:
    def half(connection: sqlite3.Connection) -> None:
        place = attachments.begin(connection, now.ms)
        assert attachments.add_piece(connection, place, 0, b"x")

    await memory.write(half)  # as a kill between two pieces leaves it
    sweep = partial(attachments.sweep, now_ms=now.ms + UPLOAD_MS)
    assert await memory.write(sweep) == 0
    assert await memory.write(partial(attachments.sweep, now_ms=now.ms + UPLOAD_MS + 1)) == 1
    assert await _count(memory) == (0, 0, 0)


async def test_an_upload_that_was_swept_away_is_told_so(
    files: Files, memory: SqliteStore, now: Now
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield BIG
        await memory.write(partial(attachments.sweep, now_ms=now.ms + 2 * UPLOAD_MS))
        yield b"more"

    with pytest.raises(UsageError, match="too long"):
        await files.upload("me", body())
    assert await _count(memory) == (0, 0, 0)


async def test_an_upload_that_no_prompt_names_is_kept_for_a_day(
    files: Files, memory: SqliteStore, build: Build, now: Now
) -> None:
    unused = await files.add("me", b"unused")
    used = await files.add("me", b"used")
    await append_and_wait(memory, _with(build(), uses=(used.file,)))
    assert await memory.write(partial(attachments.sweep, now_ms=now.ms + HELD_MS - 1)) == 0
    assert await memory.write(partial(attachments.sweep, now_ms=now.ms + HELD_MS)) == 1
    with pytest.raises(FileNotFound):
        await files.find("me", unused.file)
    assert await _read(files, "me", used.file) == b"used"


class SlowBody:
    """A body that stops behind its first part until it may go on."""

    def __init__(self, *parts: bytes) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part
            self.begun.set()
            await self.go_on.wait()


@pytest.mark.rules("C2.2", "C2.4")
async def test_uploads_that_no_prompt_names_have_a_bound_for_each_user(
    memory: SqliteStore, build: Build, now: Now
) -> None:
    files = Files(memory, now, max_waiting=10)
    used, unused = await files.add("me", b"used"), await files.add("me", b"unused")
    with pytest.raises(UploadsFull, match="10 bytes of yours") as refused:
        await files.add("me", b"x")
    fault = refused.value.fault()
    assert (fault.code, fault.scope, fault.reason) == (
        "capacity_exceeded", "limit", "upload_limit",
    )  # fmt: skip
    assert fault.retry_after_s == HELD_MS / 1000
    await files.add("you", b"somebody's")
    await append_and_wait(memory, _with(build(), uses=(used.file,)))  # now a prompt names it
    await files.add("me", b"four")
    with pytest.raises(UploadsFull):
        await files.add("me", b"x")
    now.ms += HELD_MS  # before anything is swept
    await files.add("me", b"unused too")
    assert await memory.write(partial(attachments.sweep, now_ms=now.ms)) == 3
    with pytest.raises(FileNotFound):
        await files.find("me", unused.file)


async def test_an_upload_counts_as_soon_as_its_bytes_come(memory: SqliteStore, now: Now) -> None:
    files = Files(memory, now, max_waiting=10)
    body = SlowBody(b"123456")
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        slow = group.create_task(files.upload("me", body))
        await body.begun.wait()
        with pytest.raises(UploadsFull):
            await files.add("me", b"abcdef")
        assert await _count(memory) == (0, 0, 0)
        body.go_on.set()
    assert await _read(files, "me", slow.result().file) == b"123456"
    await files.add("me", b"abcd")


async def test_an_upload_is_refused_at_its_end_when_others_took_the_room_meanwhile(
    memory: SqliteStore, now: Now
) -> None:
    files = Files(memory, now, max_waiting=10)
    body = SlowBody(b"1", b"23456")
    async with asyncio.timeout(10):
        slow = asyncio.create_task(files.upload("me", body))
        await body.begun.wait()
        await files.add("me", b"abcdef")
        body.go_on.set()
        with pytest.raises(UploadsFull, match="6 bytes of yours"):
            await slow
    assert await _count(memory) == (1, 1, 1)


@pytest.mark.rules("C1.10")
async def test_what_an_event_brings_along_is_there_in_its_transaction_or_not_at_all(
    files: Files, memory: SqliteStore, build: Build
) -> None:
    new = _new(BIG)
    told: list[object] = []
    memory.append(_with(build(first=7), new), told.append)  # stale: nothing of it is stored
    await append_and_wait(memory, build("ses_2"))
    assert told != [None]
    assert await _count(memory) == (0, 0, 0)
    await append_and_wait(memory, _with(build(), new))
    assert await _read(files, "me", new.file) == BIG


@pytest.mark.rules("C2.9")
async def test_naming_a_hash_gives_nobody_a_right_to_it(
    files: Files, memory: SqliteStore, build: Build
) -> None:
    mine = await files.add("me", PNG)
    await append_and_wait(memory, _with(build("ses_9", user="you"), uses=(mine.file, "f" * 64)))
    with pytest.raises(FileNotFound):
        await files.find("you", mine.file)
    await memory.write(partial(attachments.forget_session, session="ses_9", now_ms=2**50))
    assert await _read(files, "me", mine.file) == PNG


async def test_a_file_goes_with_the_last_session_that_uses_it(
    files: Files, memory: SqliteStore, build: Build
) -> None:
    new = _new(PNG)
    await append_and_wait(memory, _with(build("ses_1"), new))
    await append_and_wait(memory, _with(build("ses_2"), uses=(new.file,)))
    for session, left in (("ses_1", 1), ("ses_2", 0)):
        gone = partial(attachments.forget_session, session=SessionId(session), now_ms=1)
        await memory.write(gone)
        assert await _count(memory) == (left, left, left)


async def test_an_upload_for_a_new_prompt_outlives_the_session_that_used_it_before(
    files: Files, memory: SqliteStore, build: Build, now: Now
) -> None:
    row = await files.add("me", PNG)
    await append_and_wait(memory, _with(build(), uses=(row.file,)))
    await files.add("me", PNG)  # again, for another one
    await memory.write(partial(attachments.forget_session, session="ses_1", now_ms=now.ms))
    assert await _read(files, "me", row.file) == PNG
    assert await memory.write(partial(attachments.sweep, now_ms=now.ms + HELD_MS)) == 1
    assert await _count(memory) == (0, 0, 0)


async def test_an_upload_onto_a_full_disk_says_so_and_leaves_nothing(
    tmp_path: Path, mint: Mint, now: Now
) -> None:
    store = await open_store(tmp_path, mint=mint)
    files = Files(store, now)
    pages: int = await store.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    await store.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 300}").fetchone())
    with pytest.raises(StoreFull):
        await files.add("me", BIG)
    assert await _count(store) == (0, 0, 0)
    await store.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    row = await files.add("me", BIG)
    await store.close()
    again = await open_store(tmp_path, mint=mint)
    assert await _read(Files(again, now), "me", row.file) == BIG
    await again.close()


COMMITS = 4
"""Of the child's upload: its place, two pieces, and the last one with its end."""


@pytest.mark.slow
@pytest.mark.rules("C1.10")
@pytest.mark.parametrize(
    ("phase", "number"),
    [
        *((phase, number) for number in range(1, COMMITS + 1) for phase in ("before", "after")),
        ("never", 0),
    ],
)
async def test_a_kill_between_any_two_steps_leaves_a_whole_file_or_none(
    tmp_path: Path, mint: Mint, phase: str, number: int
) -> None:
    done = _run_child(tmp_path, phase, number)
    if phase == "never":
        assert done.stdout.split() == [hashlib.sha256(BIG).hexdigest(), str(COMMITS)]
    else:
        assert done.returncode == -signal.SIGKILL, done.stderr
    store = await open_store(tmp_path, mint=mint)
    whole = phase == "never" or (phase, number) == ("after", COMMITS)
    kept = await _read(Files(store, lambda: 0), "me", hashlib.sha256(BIG).hexdigest())
    assert kept == (BIG if whole else b"")
    await store.write(partial(attachments.sweep, now_ms=UPLOAD_MS + 1))
    assert await _count(store) == ((1, 3, 1) if whole else (0, 0, 0))
    await store.close()


def _run_child(folder: Path, phase: str, number: int) -> subprocess.CompletedProcess[str]:
    child = Path(__file__).parent / "file_child.py"
    command = [sys.executable, str(child), str(folder), phase, str(number)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

"""Files that are cut, flipped, emptied or somebody else's: said in a sentence, and saved."""

import asyncio
import os
import random
import re
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from towline_agent import mint_now, tool
from towline_agent.testing import ScriptedProvider
from towline_protocol import SessionId, SessionView
from towline_server.doctor.examine import examine_store
from towline_server.doctor.finding import Finding
from towline_server.doctor.repair import Repaired, repair_store
from towline_server.doctor.store_file import copy_store
from towline_server.errors import StoreCorrupt, StoreError
from towline_server.store.sqlite_store import STORE_FILE, open_store
from towline_server.testing import AppClient, open_test_app

pytestmark = pytest.mark.wide

NOW_MS = 4_000_000_000_000
PAGE = 4096
FLIPS = 12
"""Damaged files of each kind: enough to meet every table, index and page kind of the store."""

Examine = Callable[[], list[Finding]]
Serve = Callable[[], Awaitable[dict[SessionId, SessionView]]]


@tool
async def change() -> str:
    """Change something."""
    return "changed"


async def _use(folder: Path) -> str | None:
    """Start, list, open and read all; gives the sentence with which it could not be used."""
    try:
        store = await open_store(folder, mint=mint_now)
    except StoreError as error:
        return error.message
    said = None
    try:
        async with open_test_app(
            ScriptedProvider(*["well"] * 9), root=folder.parent.parent, store=store, tools=(change,)
        ) as built:
            client = AppClient(built)
            listed = await client.ask("GET", "/api/sessions")
            ids = {SessionId(str(row[0])) for row in await _ids(folder)}
            answers = [listed] + [
                await client.ask("GET", f"/api/sessions/{id_}/view")
                for id_ in sorted(ids)
                if id_.isascii() and id_.isprintable() and not set("/?#%") & set(id_)
            ]
            for answer in answers:
                if answer.status not in (200, 404, 410):
                    assert b'"scope":"store"' in answer.body, answer.body
                    said = answer.body.decode()
    except StoreError as error:
        said = error.message
    finally:
        await store.close()
    return said


async def _ids(folder: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(folder / STORE_FILE)
    connection.text_factory = _read_text
    try:
        return connection.execute("SELECT id FROM sessions").fetchall()
    except sqlite3.Error:
        return []
    finally:
        connection.close()


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _flip(file: Path, seed: int, count: int) -> None:
    """Change single bits at places that the seed says; the file's own format line stays."""
    chance = random.Random(seed)
    data = bytearray(file.read_bytes())
    for _ in range(count):
        data[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def _log_spot(file: Path, seed: int) -> None:
    """Change a bit within what the events say: where a random place seldom lies."""
    chance = random.Random(seed)
    data = bytearray(file.read_bytes())
    spots = [found.start() for found in re.finditer(rb'{"seq":', data)]
    place = chance.choice(spots) + chance.randrange(120)
    data[min(place, len(data) - 1)] ^= 1 << chance.randrange(7)
    file.write_bytes(data)


def _junk_page(file: Path, seed: int) -> None:
    """Fill a page with what another program wrote there."""
    chance = random.Random(seed)
    pages = file.stat().st_size // PAGE
    with file.open("r+b") as raw:
        raw.seek(chance.randrange(1, pages) * PAGE)
        raw.write(chance.randbytes(PAGE))


def _mend(folder: Path) -> Repaired | None:
    """A repair; `None` when the file does not say any more where its tables lie."""
    try:
        return repair_store(folder, now_ms=NOW_MS, mint=mint_now)
    except StoreCorrupt as error:
        if "says where its tables lie" in error.message:
            return None
        raise


@pytest.mark.parametrize("seed", range(FLIPS))
@pytest.mark.parametrize("kind", ["bits", "log", "page"])
async def test_a_store_with_changed_bytes_works_or_says_so_and_can_be_mended(
    folder: Path, caplog: pytest.LogCaptureFixture, kind: str, seed: int
) -> None:
    file = folder / STORE_FILE
    if kind == "bits":
        _flip(file, seed, 1 + seed % 20)
    elif kind == "log":
        _log_spot(file, seed)
    else:
        _junk_page(file, seed)
    async with asyncio.timeout(60):
        said = await _use(folder)
    assert said is None or "towline doctor" in said or "Put a backup" in said, said
    assert "Traceback" not in caplog.text
    found = list(examine_store(folder, now_ms=NOW_MS))
    if said is not None:
        assert any(one.level == "fault" for one in found), said
    if all(one.level == "ok" for one in found):
        return
    before = file.read_bytes()
    repaired = _mend(folder)
    if repaired is None:
        assert file.read_bytes() == before
        return
    assert [one for one in repaired.left if one.level == "fault"] == []
    async with asyncio.timeout(60):
        assert await _use(folder) is None
    assert [o for o in examine_store(folder, now_ms=NOW_MS) if o.level == "fault"] == []


BROKEN_ROWS = [
    "updated_ms = 9000000000000000000",
    "updated_ms = -9000000000000000000",
    "created_ms = 'soon'",
    "created_ms = 9000000000000000000",
    "labels = x'ff'",
    "title = CAST(x'ff' AS TEXT)",
    "title = x'ff'",
    "agent = 17",
    "mode = x''",
    "turn = 17",
    "pending = 'many'",
    "queued = x'01'",
    "said_seq = 'none'",
    "last_line = x'ff'",
    "last_seq = 'none'",
    "last_seq = 9000000000000000000",
    "cwd = 1.5",
    "user = x'00'",
]


@pytest.mark.parametrize("change_", BROKEN_ROWS)
async def test_a_row_of_the_list_that_cannot_be_read_keeps_no_other_session_from_working(
    folder: Path, caplog: pytest.LogCaptureFixture, examine: Examine, change_: str
) -> None:
    connection = sqlite3.connect(folder / STORE_FILE, isolation_level=None)
    broken, good = (
        str(row[0]) for row in connection.execute("SELECT id FROM sessions ORDER BY id LIMIT 2")
    )
    connection.execute(f"UPDATE sessions SET {change_} WHERE id = ?", (broken,))
    connection.close()
    store = await open_store(folder, mint=mint_now)
    async with open_test_app(
        ScriptedProvider(*["well"] * 9), root=folder.parent.parent, store=store, tools=(change,)
    ) as built:
        client = AppClient(built)
        listed = await client.ask("GET", "/api/sessions")
        assert listed.status == 200, listed.body
        assert good.encode() in listed.body
        view = await client.view(good)
        await client.prompt(good, "go on")
        await client.until(good, lambda v: v.seq > view.seq + 2 and v.turn is None)
        answer = await client.ask("GET", f"/api/sessions/{broken}/view")
        assert answer.status == 200 or b'"scope":"store"' in answer.body or answer.status == 404
    await store.close()
    assert "Traceback" not in caplog.text
    assert any(one.check == "list" or one.check == "log" for one in examine())
    assert repair_store(folder, now_ms=NOW_MS, mint=mint_now).left == ()


@pytest.mark.rules("C1.3")
@pytest.mark.parametrize("left", [0.3, 0.5, 0.7, 0.9, 0.99])
async def test_a_file_that_was_cut_is_refused_and_its_beginning_saved(
    folder: Path, examine: Examine, serve: Serve, left: float
) -> None:
    file = folder / STORE_FILE
    size = int(file.stat().st_size * left)
    os.truncate(file, size)
    with pytest.raises(StoreCorrupt, match=r"is damaged.*towline doctor"):
        await open_store(folder, mint=mint_now)
    assert [(one.level, one.check) for one in examine()] == [("fault", "database")]
    repaired = repair_store(folder, now_ms=NOW_MS, mint=mint_now)
    assert [one for one in repaired.left if one.level == "fault"] == []
    assert repaired.damaged is not None
    assert repaired.damaged.stat().st_size == size
    assert repaired.new_log
    assert [one for one in examine() if one.level == "fault"] == []
    for view in (await serve()).values():
        assert view.agent


@pytest.mark.rules("C1.4")
async def test_a_torn_last_piece_of_the_write_ahead_log_loses_nothing_that_was_committed_before(
    folder: Path, examine: Examine
) -> None:
    connection = sqlite3.connect(folder / STORE_FILE, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    for number in range(3):
        connection.execute("INSERT INTO meta VALUES (?, ?)", (f"probe_{number}", "x" * 5000))
    wal = folder / f"{STORE_FILE}-wal"
    torn = wal.read_bytes()
    (folder / STORE_FILE).read_bytes()
    kept = (folder / STORE_FILE).read_bytes()
    connection.close()
    (folder / STORE_FILE).write_bytes(kept)
    wal.write_bytes(torn[:-1000])  # as a machine leaves it that lost its power in a write
    store = await open_store(folder, mint=mint_now)
    rows = await store.query(
        lambda c: c.execute("SELECT key FROM meta WHERE key LIKE 'probe%' ORDER BY key").fetchall()
    )
    await store.close()
    assert rows == [("probe_0",), ("probe_1",)]
    assert examine() == []


@pytest.mark.parametrize("beside", [False, True])
def test_a_lost_file_is_told_with_what_lies_beside_it(
    folder: Path, examine: Examine, beside: bool
) -> None:
    (folder / STORE_FILE).unlink()
    if beside:
        (folder / f"{STORE_FILE}.before-repair-1").touch()
    (found,) = examine()
    assert (found.level, found.check, found.repair) == ("fault", "store", "")
    assert ("before-repair-1" in found.message) == beside
    repaired = repair_store(folder, now_ms=NOW_MS, mint=mint_now)
    assert [one.message for one in repaired.left] == [found.message]
    assert not (folder / STORE_FILE).exists()


def test_a_folder_without_a_store_is_no_fault(tmp_path: Path) -> None:
    (found,) = examine_store(tmp_path / "none", now_ms=NOW_MS)
    assert found.level == "ok"


def test_the_file_of_another_program_and_of_a_newer_version_are_left_alone(
    folder: Path, examine: Examine
) -> None:
    file = folder / STORE_FILE
    connection = sqlite3.connect(file)
    connection.execute("INSERT INTO schema_version VALUES (999, 'later')")
    connection.commit()
    connection.close()
    before = file.read_bytes()
    (found,) = examine()
    assert "newer towline" in found.message
    assert repair_store(folder, now_ms=NOW_MS, mint=mint_now).left == (found,)
    assert file.read_bytes() == before
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.commit()
    connection.close()
    (found,) = examine()
    assert "another program" in found.message
    assert repair_store(folder, now_ms=NOW_MS, mint=mint_now).left == (found,)


def test_a_file_that_is_no_database_is_told_and_kept(folder: Path, examine: Examine) -> None:
    file = folder / STORE_FILE
    file.write_bytes(b"this is no database, " * 400)
    (found,) = examine()
    assert (found.level, found.check) == ("fault", "database")
    with pytest.raises(StoreCorrupt, match="Put a backup"):
        repair_store(folder, now_ms=NOW_MS, mint=mint_now)
    assert file.read_bytes().startswith(b"this is no database")
    assert sorted(path.name for path in folder.glob("towline.db*")) == [STORE_FILE]


@pytest.mark.rules("C3.2")
async def test_a_copy_can_be_made_beside_a_server_and_is_a_log_of_its_own(
    folder: Path, tmp_path: Path, examine: Examine
) -> None:
    target = tmp_path / "copy.db"
    store = await open_store(folder, mint=mint_now)
    copy_store(folder, target, mint=mint_now)
    await store.close()
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StoreError, match="is there already"):
        copy_store(folder, target, mint=mint_now)
    target.replace(folder / STORE_FILE)
    assert [one.check for one in examine()] == ["lineage"]
    restored = await open_store(folder, mint=mint_now)
    await restored.close()
    assert restored.log != store.log
    assert examine() == []


async def test_a_look_works_while_a_server_writes(folder: Path, examine: Examine) -> None:
    store = await open_store(folder, mint=mint_now)
    async with open_test_app(
        ScriptedProvider("one", "two"), root=folder.parent.parent, store=store
    ) as built:
        client = AppClient(built)
        session = await client.create()
        assert [one for one in examine() if one.level == "fault"] == []
        await client.prompt(session, "go on")
        assert [one for one in examine() if one.level == "fault"] == []
    await store.close()

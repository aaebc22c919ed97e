"""A store that lost its file is told; one that never was is made."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from towline_protocol import SessionId
from towline_server.errors import StoreCorrupt, StoreError
from towline_server.store.event_store import append_and_wait
from towline_server.store.lineage import NOTE_FILE
from towline_server.store.records import Append
from towline_server.store.sqlite_store import STORE_FILE, open_store

Build = Callable[..., Append]
Mint = Callable[[str], str]

ONE = SessionId("ses_1")


@pytest.fixture
async def folder(tmp_path: Path, mint: Mint, build: Build) -> Path:
    """A data folder with one session."""
    folder = tmp_path / "data"
    store = await open_store(folder, mint=mint)
    await append_and_wait(store, build(count=50, size=2000))
    await store.close()
    return folder


async def _log(folder: Path, mint: Mint) -> str:
    store = await open_store(folder, mint=mint)
    await store.close()
    return store.log


async def test_the_note_names_the_log_and_a_start_finds_both_as_they_were(
    folder: Path, mint: Mint
) -> None:
    note = folder / NOTE_FILE
    before = note.read_text()
    assert await _log(folder, mint) == before.strip()
    assert note.read_text() == before
    assert note.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("lost", "state"), [("emptied", "is empty"), ("removed", "is missing")])
async def test_a_store_that_lost_its_file_is_told_with_what_to_do_and_left_as_it_is(
    folder: Path, mint: Mint, lost: str, state: str
) -> None:
    file = folder / STORE_FILE
    if lost == "emptied":
        os.truncate(file, 0)
    else:
        file.unlink()
    log = (folder / NOTE_FILE).read_text().strip()
    for _ in range(2):  # the first refusal changes nothing
        with pytest.raises(StoreCorrupt, match=state) as caught:
            await open_store(folder, mint=mint)
        assert log in caught.value.message
        assert f"delete the folder {str(folder)!r}" in caught.value.message
    assert file.exists() == (lost == "emptied")


async def test_a_store_begins_anew_once_its_folder_is_deleted(folder: Path, mint: Mint) -> None:
    before = await _log(folder, mint)
    shutil.rmtree(folder)
    assert await _log(folder, mint) != before


async def test_a_backup_put_in_place_of_a_lost_file_is_taken(
    folder: Path, mint: Mint, tmp_path: Path
) -> None:
    log = await _log(folder, mint)
    (folder / STORE_FILE).rename(tmp_path / "backup")
    with pytest.raises(StoreCorrupt):
        await open_store(folder, mint=mint)
    (tmp_path / "backup").rename(folder / STORE_FILE)
    store = await open_store(folder, mint=mint)
    assert store.log == log
    assert len(await store.read(ONE, after=0, upto=50)) == 50
    await store.close()


async def test_a_store_without_a_note_gets_one_and_one_of_another_log_a_new_one(
    folder: Path, mint: Mint
) -> None:
    note = folder / NOTE_FILE
    log = note.read_text()
    for text in (None, "log_of_another\n", "", "\xff" * 5000):
        note.unlink() if text is None else note.write_text(text, encoding="latin-1")
        assert await _log(folder, mint) == log.strip()
        assert note.read_text() == log


@pytest.mark.parametrize("left", [1, 100, 511, 512, 4096, 8192, 20_000])
async def test_a_store_cut_short_is_no_new_store(folder: Path, mint: Mint, left: int) -> None:
    os.truncate(folder / STORE_FILE, left)
    with pytest.raises(StoreCorrupt, match="Put a backup"):
        await open_store(folder, mint=mint)
    assert (folder / STORE_FILE).stat().st_size == left


async def test_a_note_that_cannot_be_read_is_told(folder: Path, mint: Mint) -> None:
    (folder / NOTE_FILE).unlink()
    (folder / NOTE_FILE).mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        await open_store(folder, mint=mint)

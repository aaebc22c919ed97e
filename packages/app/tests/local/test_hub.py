from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from towline.local import hub as hub_module
from towline.local.errors import SourceFailed
from towline.local.facts import HubFile
from towline.local.fetch import Fetch
from towline.local.hub import MAX_BREAKS, download_hub_file
from towline.local.part_file import PartFile
from towline.local.testing import small_model, stand_in_hub


class Fetching:
    """One attempt at the hub, with a part file that can be opened again by the next one."""

    def __init__(self, folder: Path, content: bytes) -> None:
        self.folder = folder
        self.model = small_model(content)
        self.pauses: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def run(self, hub: HubFile) -> bytes:
        part = PartFile(self.folder / "m.part", hub.name)
        with ThreadPoolExecutor(max_workers=1) as pool:
            fetch = Fetch(self.model, part, self.folder, pool, hub.name, lambda _d, _t, _s: None)
            part.open()
            while part.rehash_some():
                pass
            try:
                await download_hub_file(hub, fetch, pause=self.pause)
                part.publish(self.folder / "m", self.model.sha256)
            finally:
                part.close()
        return (self.folder / "m").read_bytes()


@pytest.fixture
def fetching(tmp_path: Path, content: bytes) -> Fetching:
    return Fetching(tmp_path, content)


async def test_a_broken_connection_goes_on_at_the_byte_it_broke_at(
    fetching: Fetching, content: bytes
) -> None:
    async with stand_in_hub(content) as hub:
        hub.break_after = [100_000, 50_000]
        assert await fetching.run(hub.file) == content
    assert hub.asked == ["", "bytes=100000-", "bytes=150000-"]
    assert fetching.pauses == [1.0, 2.0]


async def test_a_new_run_goes_on_where_the_last_one_gave_up(
    fetching: Fetching, content: bytes
) -> None:
    async with stand_in_hub(content) as hub:
        hub.break_after = [1000] * (MAX_BREAKS + 1)
        with pytest.raises(SourceFailed, match=f"broke {MAX_BREAKS + 1} times"):
            await fetching.run(hub.file)
        assert await fetching.run(hub.file) == content
    assert hub.asked[-1] == f"bytes={1000 * (MAX_BREAKS + 1)}-"


async def test_a_hub_that_ignores_ranges_is_read_from_the_start(
    fetching: Fetching, content: bytes
) -> None:
    async with stand_in_hub(content) as hub:
        hub.ranges = False
        hub.break_after = [100_000]
        assert await fetching.run(hub.file) == content
    assert hub.asked == ["", "bytes=100000-"]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
async def test_a_refusal_is_told_with_its_status(
    fetching: Fetching, content: bytes, status: int
) -> None:
    async with stand_in_hub(content) as hub:
        hub.status = status
        with pytest.raises(SourceFailed, match=f"answered {status} for '/owner/small/resolve/main"):
            await fetching.run(hub.file)
    assert len(hub.asked) == 1


async def test_a_file_of_another_size_is_refused_before_it_is_read(
    fetching: Fetching, content: bytes
) -> None:
    async with stand_in_hub(content + b"more") as hub:
        with pytest.raises(SourceFailed, match=f"another file there .*not {len(content)}"):
            await fetching.run(hub.file)
    assert (fetching.folder / "m.part").stat().st_size == 0


async def test_a_file_that_became_shorter_drops_what_was_fetched(
    fetching: Fetching, content: bytes
) -> None:
    async with stand_in_hub(content) as hub:
        hub.break_after = [100_000]
        hub.ranges = True
        hub_file = hub.file

        async def shrink(seconds: float) -> None:
            fetching.pauses.append(seconds)
            hub.content = content[:1000]

        fetching.pause = shrink
        with pytest.raises(SourceFailed, match="shorter than what was fetched"):
            await fetching.run(hub_file)
    assert not (fetching.folder / "m.part").exists()


async def test_a_hub_that_refuses_connections_is_left_at_once(
    fetching: Fetching, content: bytes
) -> None:
    async with stand_in_hub(content) as hub:
        gone = hub.file
    with pytest.raises(SourceFailed, match=r"http://127.0.0.1:\d+ cannot be reached"):
        await fetching.run(gone)
    assert fetching.pauses == []


async def test_a_hub_that_accepts_and_says_nothing_is_left_after_the_limit(
    fetching: Fetching, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "SILENCE_TIMEOUT_S", 0.05)
    async with stand_in_hub(content) as hub:
        hub.silent = True
        with pytest.raises(SourceFailed, match="cannot be reached"):
            await fetching.run(hub.file)
    assert fetching.pauses == []

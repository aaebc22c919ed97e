"""What the sources of a model share: where the bytes go, and who is told."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from towline.local.facts import LocalModelFacts
from towline.local.part_file import PartFile

__all__ = ["Fetch", "OnNote", "OnProgress"]

Result = TypeVar("Result")

OnProgress = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all and the source's name. What it raises ends the fetch."""

OnNote = Callable[[str], None]
"""Called with one line a person should read, such as why a source was left for the next."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """One source's attempt at the model."""

    model: LocalModelFacts
    """What is fetched."""
    part: PartFile
    """The bytes so far."""
    scratch: Path
    """A folder the source may fill; it is removed afterwards."""
    pool: Executor
    """One thread for the disk, so that the event loop never waits for it."""
    source: str
    """The source's name for the person."""
    on_progress: OnProgress
    """Told after each block."""

    async def on_disk(self, work: Callable[..., Result], *args: object) -> Result:
        """Run blocking `work` on the disk thread. Keep it short: a cancel waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *args)

    def report(self, ahead: int = 0) -> None:
        """Tell how far the fetch is, `ahead` bytes being under way but not yet in the file."""
        total = self.model.size_bytes
        self.on_progress(min(self.part.size + ahead, total), total, self.source)

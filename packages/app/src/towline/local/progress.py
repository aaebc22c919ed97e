"""Show the fetch of a model: a bar in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

__all__ = ["FetchProgress"]

LINES = 10
"""How many lines a whole fetch prints where there is no terminal."""

_MB = 1_000_000
"""Decimal, like the rate that rich shows and the sizes that people are told."""


class _SizeColumn(ProgressColumn):
    """Done and total in megabytes. Rich's own column shows a model as `0.2/1.1 GB`."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed / _MB:.0f}/{(task.total or 0) / _MB:.0f} MB")


class FetchProgress:
    """Use as a context manager; give `advance` and `note` to `ensure_model`.

    A terminal gets a bar with size, rate and time left, anything else (a log, a pipe) ten lines.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._source = ""
        self._tenth = 0
        self._began = (0.0, 0)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                _SizeColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def note(self, text: str) -> None:
        """Print one line that stays."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def advance(self, done: int, total: int, source: str) -> None:
        """Show `done` of `total` bytes from `source`.

        What an earlier run left counts as done but not for the rate.
        """
        if source != self._source:
            self._begin(done, total, source)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)
        elif self._bar is None:
            self._print_line(done, total)

    def _begin(self, done: int, total: int, source: str) -> None:
        self._source = source
        self._began = (self._clock(), done)
        self._tenth = done * LINES // total
        if self._bar is None:
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(f"Model from the {source}", total=total, completed=done)

    def _print_line(self, done: int, total: int) -> None:
        tenth = done * LINES // total
        if tenth <= self._tenth:
            return
        self._tenth = tenth
        began_s, began_done = self._began
        rate = (done - began_done) / max(self._clock() - began_s, 1e-3)
        self.note(
            f"Model from the {self._source}: {done * 100 // total} % of {total / _MB:.0f} MB, "
            f"{rate / _MB:.1f} MB/s"
        )

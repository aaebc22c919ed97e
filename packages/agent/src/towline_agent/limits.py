"""The bounds of a turn, of time, and cutting text to them."""

import asyncio
import math
import re
from types import TracebackType
from typing import Any, Final, Self
from weakref import WeakKeyDictionary, ref

import msgspec

from towline_protocol import Limits, ResultBlock, Text, Usage

__all__ = [
    "MAX_RESULT_CHARS",
    "Slot",
    "Spent",
    "TimeLimit",
    "cut_result",
    "first_sentence",
    "forget_closed",
    "result_cap",
]

MAX_RESULT_CHARS: Final = 50_000
"""Characters of one tool result (A4.19)."""
_WINDOW_SHARE: Final = 0.15
"""Of the model's window that one result may fill (A4.19)."""
_CHARS_PER_TOKEN: Final = 4
_MARKER_CHARS: Final = 64
"""Room for the marker that stands for what was cut."""
_SUMMARY_CHARS: Final = 200
_SENTENCE_END: Final = r"[.!?](?= |\Z)"


class Spent(msgspec.Struct, kw_only=True):
    """What a turn has used so far."""

    steps: int = 0
    """Steps begun; a hand-over is none."""
    usage: Usage = Usage()
    """Tokens of all requests."""
    cost: float | None = 0.0
    """US dollars; `None` once a price was unknown (A4.49)."""
    known_cost: float = 0.0
    """The part of it that is known: a budget is held against this."""

    def add(self, usage: Usage, cost: float | None) -> None:
        """Count one request."""
        if cost is not None and not math.isfinite(cost):
            cost = None  # a price that is no number holds no budget
        self.usage = self.usage + usage
        self.cost = None if self.cost is None or cost is None else self.cost + cost
        self.known_cost += cost or 0.0

    def over(self, limits: Limits) -> str | None:
        """The stop reason of the first bound that is reached; `None` while none is (A4.8)."""
        if self.steps >= limits.max_steps:
            return "max_steps"
        return self.used_up(limits)

    def used_up(self, limits: Limits) -> str | None:
        """The stop reason once tokens or money are gone; `None` while they are not."""
        if limits.max_tokens is not None and self._tokens() >= limits.max_tokens:
            return "budget"
        if limits.max_cost is not None and self.known_cost >= limits.max_cost:
            return "budget"
        return None

    def _tokens(self) -> int:
        usage = self.usage
        return usage.input + usage.output + usage.cache_read + usage.cache_write


class Slot:
    """The places of a model that serves few at once, shared by all who ask it (A2.91)."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._open = asyncio.Event()
        self._open.set()
        self._why = ""
        self.first: str | None = None
        """What who gets a place must wait for before the model answers; `None` for nothing."""

    @property
    def waits_for(self) -> str | None:
        """Why one would have to wait now: `slot`, the word of `hold`, or `first`; else `None`."""
        if not self._open.is_set():
            return self._why
        return "slot" if self._places.locked() else self.first

    def hold(self, why: str) -> None:
        """Let nobody in until `release`, for example while the model is loaded."""
        self._why = why
        self._open.clear()

    def release(self) -> None:
        """End a hold."""
        self._open.set()

    async def __aenter__(self) -> None:
        await self._open.wait()
        await self._places.acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._places.release()


class TimeLimit:
    """Cancels the block that takes longer, and raises `TimeoutError` at its end.

    ```python
    with TimeLimit(2.0) as limit:
        await work()
    ```

    As with `asyncio.timeout`, a cancel from outside goes on as a cancel. But nearly no limit is
    ever reached, so all of a loop share one timer, which is set anew only when it rings, or for a
    limit that is due before.

    Args:
        seconds: The most that the block may take; `None` for no limit.
    """

    __slots__ = ("_before", "_loop", "_seconds", "_task", "_watch", "due_s", "expired")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._watch: _Watch | None = None
        self.due_s = math.inf
        """When it is up, on the loop's clock."""
        self.expired = False
        """Whether the time was up before the block was left."""

    def __enter__(self) -> Self:
        if self._seconds is None:
            return self
        loop = self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("A TimeLimit cancels a task, and none is running; await it in one.")
        self._task = task
        self._before = task.cancelling()
        self.due_s = loop.time() + self._seconds
        self._watch = _watch_of(loop)
        self._watch.add(self, loop)
        return self

    def restart(self, seconds: float) -> float:
        """Give the open block of a limit so many seconds from now on; cheap enough for each chunk.

        Returns:
            The time now, on the loop's clock.
        """
        now_s = self._loop.time()
        if self._watch is not None and not self.expired:
            self.due_s = now_s + seconds
            self._watch.add(self, self._loop)
        return now_s

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._watch is not None:
            self._watch.remove(self)
            self._watch = None
        if self.expired:
            ours_alone = self._task.uncancel() <= self._before
            if ours_alone and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def expire(self) -> None:
        """Say that the time is up."""
        self.expired = True
        self._task.cancel()


class _Watch:
    """The open limits of a loop. It keeps neither the loop nor a timer, which would keep it."""

    def __init__(self) -> None:
        self._open: set[TimeLimit] = set()
        self._rings_at_s = [math.inf]  # when its timers ring, the next one last

    def add(self, limit: TimeLimit, loop: asyncio.AbstractEventLoop) -> None:
        self._open.add(limit)
        if limit.due_s < self._rings_at_s[-1]:
            self._ring_at(limit.due_s, loop)

    def remove(self, limit: TimeLimit) -> None:
        self._open.discard(limit)

    def _ring_at(self, due_s: float, loop: asyncio.AbstractEventLoop) -> None:
        self._rings_at_s.append(due_s)
        loop.call_at(due_s, self._ring, due_s, loop)

    def _ring(self, due_s: float, loop: asyncio.AbstractEventLoop) -> None:
        self._rings_at_s.remove(due_s)
        for limit in [limit for limit in self._open if limit.due_s <= due_s]:
            self._open.remove(limit)
            limit.expire()
        next_s = min((limit.due_s for limit in self._open), default=math.inf)
        if next_s < self._rings_at_s[-1]:  # else a timer of before rings soon enough
            self._ring_at(next_s, loop)


_watches: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch]] = WeakKeyDictionary()


_latest: tuple[ref[asyncio.AbstractEventLoop] | None, _Watch | None] = (None, None)
"""The loop that asked last, which is nearly always the one that asks next, and its watch."""


def _watch_of(loop: asyncio.AbstractEventLoop) -> _Watch:
    global _latest  # one pair, so that threads never see half of it
    known, watch = _latest
    if watch is None or known is None or known() is not loop:
        watch = _watches.get(loop)
        if watch is None:
            forget_closed(_watches)
            watch = _watches[loop] = _Watch()
        _latest = ref(loop), watch
    return watch


def forget_closed(kept: WeakKeyDictionary[asyncio.AbstractEventLoop, Any]) -> None:
    """Let go what is kept for loops that are closed.

    What still waited in one, such as an open limit or lock, holds its loop, which so would keep
    itself.
    """
    for known in kept.keyrefs():  # a copy: other threads add theirs
        loop = known()
        if loop is not None and loop.is_closed():
            kept.pop(loop, None)


def result_cap(window: int | None) -> int:
    """Characters that one tool result may have with this window (A4.19, A4.20)."""
    if window is None:
        return MAX_RESULT_CHARS
    return min(MAX_RESULT_CHARS, int(window * _WINDOW_SHARE * _CHARS_PER_TOKEN))


def cut_result(content: tuple[ResultBlock, ...], cap: int) -> tuple[ResultBlock, ...]:
    """A result itself, or the head and the tail of its text with a marker between (R49, S33).

    The end of an output often holds the error, so it is never cut alone. The cap holds for the text
    of all blocks together; other blocks stay.
    """
    total = 0
    for block in content:
        if isinstance(block, Text):
            total += len(block.text)
    if total <= cap:
        return content
    keep = max(0, cap - _MARKER_CHARS)
    marker = f"\n[… {total - keep} characters left out …]\n"
    head = keep // 2
    tail = total - (keep - head)  # where it begins
    kept: list[ResultBlock] = []
    at = 0
    for block in content:
        if not isinstance(block, Text):
            kept.append(block)
            continue
        end = at + len(block.text)
        middle = marker if at <= head < end else ""
        text = block.text[: max(0, head - at)] + middle + block.text[max(0, tail - at) :]
        at = end
        if text:
            kept.append(Text(text=text))
    return tuple(kept)


def first_sentence(text: str) -> str | None:
    """The first sentence of an answer, 200 characters at most; `None` for no words (A4.29)."""
    begin = text.split(maxsplit=_SUMMARY_CHARS)[:_SUMMARY_CHARS]  # an answer may be long
    words = " ".join(begin)[: _SUMMARY_CHARS + 1]
    if not words:
        return None
    end = re.search(_SENTENCE_END, words)
    return words[: min(end.end() if end else len(words), _SUMMARY_CHARS)]

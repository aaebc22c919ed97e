"""The two kinds of flow a session gives: the newest value, and every item in order."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

__all__ = ["Feed", "Latest"]

_T = TypeVar("_T")


class _End:
    """How a flow ends: not yet, in order, or with an error that every reader gets."""

    def __init__(self) -> None:
        self.ended = False
        self.error: BaseException | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error
        if self.ended:
            raise StopAsyncIteration


class Latest(Generic[_T]):
    """A value that changes; a reader gets the newest one and skips what it was too slow for.

    Any number of readers may iterate at once; each starts with the value as it stands.
    """

    def __init__(self, value: _T) -> None:
        self.value = value
        """The newest value."""
        self._version = 0
        self._changed = asyncio.Event()
        self._end = _End()

    def set(self, value: _T) -> None:
        """Put a newer value in place."""
        self.value = value
        self._version += 1
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """No more values: readers get the last one, then the end or the error."""
        self._end.ended = True
        self._end.error = error
        self._wake()

    def reopen(self) -> None:
        """Values may come again after an end."""
        self._end = _End()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def __aiter__(self) -> AsyncIterator[_T]:
        return _Reader(self.after)

    async def after(self, seen: int) -> tuple[int, _T]:
        """Wait for a value that is newer than version `seen`.

        Returns:
            The version and the value.

        Raises:
            StopAsyncIteration: The flow has ended in order.
        """
        while self._version <= seen:
            self._end.check()
            await self._changed.wait()
        return self._version, self.value


class _Reader(Generic[_T]):
    """One reader's place in a `Latest`."""

    def __init__(self, after: Callable[[int], Awaitable[tuple[int, _T]]]) -> None:
        self._after = after
        self._seen = -1

    def __aiter__(self) -> "_Reader[_T]":
        return self

    async def __anext__(self) -> _T:
        self._seen, value = await self._after(self._seen)
        return value


class Feed(Generic[_T]):
    """Every item once, in order, for one reader; what nobody has read yet waits.

    It never holds more than its bound: when it is full, all that waits is replaced by one item that
    `replacement` makes.
    """

    def __init__(self, bound: int, replacement: Callable[[], _T]) -> None:
        self._items: deque[_T] = deque()
        self._bound = bound
        self._replacement = replacement
        self._changed = asyncio.Event()
        self._end = _End()

    def put(self, item: _T) -> bool:
        """Add an item; says whether it was, or the replacement of all that waits came instead."""
        full = len(self._items) >= self._bound
        if full:
            self._items.clear()
            item = self._replacement()
        self._items.append(item)
        self._changed.set()
        return not full

    def end(self, error: BaseException | None = None) -> None:
        """No more items: the reader gets what waits, then the end or the error."""
        self._end.ended = True
        self._end.error = error
        self._changed.set()

    def reopen(self) -> None:
        """Items may come again after an end."""
        self._end = _End()

    def __aiter__(self) -> AsyncIterator[_T]:
        return self

    async def __anext__(self) -> _T:
        while not self._items:
            self._end.check()
            self._changed.clear()
            await self._changed.wait()
        return self._items.popleft()

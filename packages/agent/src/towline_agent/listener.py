"""A TCP server on loopback that ends with whoever opened it, and all its callers with it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

__all__ = ["Listener"]


class Listener:
    """Listens on 127.0.0.1 at any free port. An async context manager.

    Args:
        serve: Answers one caller; what the caller does wrong (it leaves, or sends no end of
            a line) ends the connection and nothing else.
        limit: The most bytes that a caller's line or head may have.
        at_once: Callers at once at the most; one more is hung up on.
    """

    def __init__(
        self,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        *,
        limit: int = 65_536,
        at_once: int = 1_000,
    ) -> None:
        self.port = 0
        """Where it listens."""
        self._handle = serve
        self._limit = limit
        self._at_once = at_once
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0, limit=self._limit)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for caller in self._callers:
            caller.cancel()
        if self._callers:
            await asyncio.wait(self._callers)
        await self._server.wait_closed()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._callers) >= self._at_once:
            writer.close()
            return
        self._callers.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError):
                await self._handle(reader, writer)
        finally:
            self._callers.discard(task)
            writer.close()

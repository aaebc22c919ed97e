"""How far a call is, on its way to the server."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from towline_client.bridge.line import Line
from towline_client.errors import ClientError
from towline_protocol import CallId, UsageError, mend_text

__all__ = ["Progress"]


class Progress:
    """Sends what a tool says of its progress: one word after the other, always the newest.

    A context: at its end nothing more is sent. What is lost on the way stays lost; the next word
    is better.
    """

    def __init__(self, call: CallId, line: Line) -> None:
        """Say nothing yet.

        Args:
            call: The call.
            line: Where it goes.
        """
        self._call = call
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._newest: tuple[str, float | None] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._open = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    def show(self, text: str, fraction: float | None) -> None:
        """Send this next; any thread may call it.

        Raises:
            UsageError: The fraction is none.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise UsageError(f"fraction={fraction!r} is no number from 0 to 1.")
        with suppress(RuntimeError):  # the loop is closed: the call ended long ago
            self._loop.call_soon_threadsafe(self._take, mend_text(text), fraction)

    def _take(self, text: str, fraction: float | None) -> None:
        if not self._open:
            return
        self._newest = (text, fraction)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._newest is not None:
            (text, fraction), self._newest = self._newest, None
            with suppress(ClientError):
                await self._line.report_progress(self._call, text, fraction=fraction)

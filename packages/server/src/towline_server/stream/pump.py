"""Puts a stream on the wire, and is the one who notices that nobody takes it (C3.8)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION
from towline_server.stream.connection import transport_of, unsent_bytes
from towline_server.stream.follow import HEARTBEAT
from towline_server.stream.hub import Subscriber

__all__ = ["HEARTBEAT_S", "STALL_S", "STREAM_HEADERS", "EventStream"]

HEARTBEAT_S: Final = 15.0
"""Seconds between two heartbeats (C3.7)."""
STALL_S: Final = 10.0
"""Seconds in which a reader takes not one byte, then it is cut (C3.8)."""
STREAM_HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
    (CONTRACT_HEADER.encode(), CONTRACT_VERSION.encode()),
)
"""The head of every stream (C3.1)."""

_LOOKS: Final = 4  # how often a stall is looked for within the time it may last

_Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class EventStream:
    """An ASGI answer that streams one reader's frames; used once.

    It ends, and leaves no task behind, when the client disconnects, when the subscriber ends, when
    not one byte is taken for `stall_s`, or when it is cancelled. It always gives the subscriber's
    place up.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        catch_up: AsyncGenerator[bytes, None],
        *,
        headers: Iterable[tuple[bytes, bytes]] = (),
        heartbeat_s: float = HEARTBEAT_S,
        stall_s: float = STALL_S,
    ) -> None:
        """Prepare the answer.

        Args:
            subscriber: The reader's place.
            catch_up: What goes out first; see `follow.catch_up`.
            headers: More headers, lower-case names.
            heartbeat_s: Seconds between two heartbeats.
            stall_s: Seconds in which at least one byte must be taken.
        """
        self._subscriber = subscriber
        self._catch_up = catch_up
        self._headers = [*STREAM_HEADERS, *headers]
        self._times = (heartbeat_s, stall_s)

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Serve the request."""
        watcher = asyncio.create_task(self._watch(receive), name="towline-disconnect")
        transport = transport_of(scope)
        limit = asyncio.timeout(None)
        try:
            async with limit, contextlib.aclosing(self._catch_up):
                with _Watch(self._subscriber, limit, transport, *self._times) as watch:
                    await self._run(send, watch)
        except TimeoutError:
            if not limit.expired():
                raise
            if transport is not None:
                transport.abort()  # closing would wait for the bytes that nobody takes
        finally:
            self._subscriber.leave()
            watcher.cancel()
            await asyncio.wait({watcher})

    async def _watch(self, receive: _Receive) -> None:
        """Wait for the disconnect: uvicorn's `send` does not tell of it."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscriber.leave("gone")

    async def _run(self, send: _Send, watch: "_Watch") -> None:
        subscriber = self._subscriber
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        async for chunk in self._catch_up:
            await watch.put(send, chunk)
        while True:
            chunk = subscriber.take()
            if chunk:
                await watch.put(send, chunk)
            elif subscriber.ended:
                break
            elif not await subscriber.wait():
                await watch.put(send, HEARTBEAT)
        if subscriber.cut != "gone":
            watch.sends += 1
            await send({"type": "http.response.body"})


class _Watch:
    """Rings for heartbeats and looks for stalls: one timer a connection, nothing a frame."""

    def __init__(
        self,
        subscriber: Subscriber,
        limit: asyncio.Timeout,
        transport: asyncio.Transport | None,
        heartbeat_s: float,
        stall_s: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._subscriber = subscriber
        self._limit = limit
        self._transport = transport
        self._stall_s = stall_s
        self._look_s = min(heartbeat_s, stall_s) / _LOOKS
        self._looks_a_beat = max(1, round(heartbeat_s / self._look_s))
        self._looks = 0
        self._seen = (-1, 0)  # sends and unsent bytes when something last moved
        self._moved = 0.0
        self.sends = 0
        """Counts each send twice, before and after it: odd while one is under way."""

    def __enter__(self) -> "_Watch":
        self._timer = self._loop.call_later(self._look_s, self._look)
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()

    async def put(self, send: _Send, body: bytes) -> None:
        """Send a piece and let the others have their turn, which `send` alone may not do."""
        self.sends += 1
        await send({"type": "http.response.body", "body": body, "more_body": True})
        self.sends += 1
        await asyncio.sleep(0)

    def _look(self) -> None:
        self._looks += 1
        if self._looks % self._looks_a_beat == 0:
            self._subscriber.ring()
        if self.sends % 2 and self._is_stuck():
            self._limit.reschedule(self._loop.time())  # and look no more
        else:
            self._timer = self._loop.call_later(self._look_s, self._look)

    def _is_stuck(self) -> bool:
        """Whether the send under way is to be given up."""
        if self._subscriber.cut is not None:
            return True
        now = self._loop.time()
        sends, unsent = self._seen
        waiting = 0 if self._transport is None else unsent_bytes(self._transport)
        if self.sends != sends or waiting < unsent:
            self._seen = (self.sends, waiting)
            self._moved = now
        return now - self._moved >= self._stall_s

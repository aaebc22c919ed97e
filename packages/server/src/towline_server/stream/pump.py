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

_CLOSE: Final = (b"connection", b"close")  # a stream that has ended keeps no descriptor
_LOOKS: Final = 4  # how often a stall is looked for within the time it may last

_Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class EventStream:
    """An ASGI answer that streams one reader's frames; used once.

    It ends, and leaves no task behind, when the client disconnects, when the subscriber ends, when
    not one byte of what was sent is taken for `stall_s`, or when it is cancelled. It always gives
    the subscriber's place up, and lets the connection go.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        catch_up: AsyncGenerator[bytes, None],
        *,
        headers: Iterable[tuple[bytes, bytes]] = (),
        heartbeat_s: float = HEARTBEAT_S,
        stall_s: float = STALL_S,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare the answer.

        Args:
            subscriber: The reader's place.
            catch_up: What goes out first; see `follow.catch_up`.
            headers: More headers, lower-case names.
            heartbeat_s: Seconds between two heartbeats.
            stall_s: Seconds in which at least one byte must be taken.
            on_end: Called once the stream has ended, however it did.
        """
        self._on_end = on_end
        self._subscriber = subscriber
        self._catch_up = catch_up
        self._headers = [*STREAM_HEADERS, _CLOSE, *headers]
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
            self._on_end()
            if transport is not None and transport.get_write_buffer_size():
                # It is closed once its last bytes are taken; a peer that takes none would keep it.
                asyncio.get_running_loop().call_later(self._times[1], transport.abort)
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
        self._taken = -1
        self._moved = self._loop.time()
        self._bytes = 0
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
        self._bytes += len(body)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        self.sends += 1
        await asyncio.sleep(0)

    def _look(self) -> None:
        self._looks += 1
        if self._looks % self._looks_a_beat == 0:
            self._subscriber.ring()
        if self._is_stuck():
            self._limit.reschedule(self._loop.time())  # and look no more
        else:
            self._timer = self._loop.call_later(self._look_s, self._look)

    def _is_stuck(self) -> bool:
        """Whether the peer takes no more.

        A send that is under way is not the only sign: a heartbeat fits into any buffer, and one
        that is never acknowledged is all that tells of a cut cable (C3.8).
        """
        sending = self.sends % 2 == 1
        if self._subscriber.cut is not None and sending:
            return True
        now = self._loop.time()
        waiting, taken = self._progress()
        if not (waiting or sending) or taken > self._taken:
            self._moved = now
        self._taken = taken
        return now - self._moved >= self._stall_s

    def _progress(self) -> tuple[int, int]:
        """What waits to be taken, and a number that only grows when some of it is.

        Of the bytes that were put to the transport, those are taken that do not wait; the few that
        frame each piece are not counted, and so never look like progress.
        """
        if self._transport is None:
            return self.sends % 2, self.sends
        waiting = unsent_bytes(self._transport)
        return waiting, self._bytes - waiting

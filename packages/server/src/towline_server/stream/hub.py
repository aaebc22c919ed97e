"""Live fan-out of one session's frames to its readers.

A frame is encoded once; every reader's queue holds the same bytes. A reader that does not keep up
is cut, alone, and comes back with its cursor.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from typing import Final

from towline_protocol import Reset, encode, encode_event
from towline_server.errors import TooManyReaders

__all__ = ["CHUNK_BYTES", "MAX_FRAMES", "MAX_QUEUE_BYTES", "MAX_READERS", "Hub", "Subscriber"]

CHUNK_BYTES: Final = 64 * 1024
"""What goes out in one piece: large enough that the cost of a send is shared by many frames, small
enough that the other connections get their turn (C3.8)."""
MAX_FRAMES: Final = 4096
"""Frames a queue holds (C3.8)."""
MAX_QUEUE_BYTES: Final = 2 * 1024 * 1024
"""Bytes a queue holds (C3.8): the largest event twice."""
MAX_READERS: Final = 16
"""Readers of a session (C6)."""

_RETRY_FULL_S: Final = 5.0  # a reader that left is gone within seconds


class Subscriber:
    """One reader's place in a hub: a bounded queue and a bell.

    Frames come in from `start` on. Each is used by one task, on the loop.
    """

    __slots__ = ("_bell", "_hub", "_key", "_live", "_queue", "_size", "cut", "ended")

    def __init__(self) -> None:
        self._hub: Hub | None = None
        self._key: object = None
        self._live = False
        self._queue: deque[bytes | memoryview] = deque()
        self._size = 0
        self._bell: asyncio.Future[None] | None = None
        self.ended = False
        """Whether no more frames come; what waits may still be taken."""
        self.cut: str | None = None
        """Why the connection ends at once: `overflow`, `replaced`, `refused` or `gone`; `None` when
        it does not."""

    def start(self) -> None:
        """Take part from the next published frame on."""
        if not self._live and not self.ended and self._hub is not None:
            self._live = True
            self._hub.include(self)

    def attach(self, hub: "Hub", key: object) -> None:
        """Take the place in a hub; `Hub.join` calls this."""
        self._hub = hub
        self._key = key

    def take(self) -> bytes:
        """All that waits, joined, up to `CHUNK_BYTES`; empty when nothing does.

        Only a frame that is larger by itself is cut into pieces.
        """
        queue = self._queue
        if self._size <= CHUNK_BYTES:
            chunk = b"".join(queue)
            queue.clear()
            self._size = 0
            return chunk
        parts: list[bytes | memoryview] = []
        room = CHUNK_BYTES
        while len(queue[0]) <= room:
            room -= len(queue[0])
            parts.append(queue.popleft())
        if not parts:
            frame = memoryview(queue[0])
            parts.append(frame[:room])
            queue[0] = frame[room:]
        chunk = b"".join(parts)
        self._size -= len(chunk)
        return chunk

    async def wait(self) -> bool:
        """Sleep until something waits, nothing more comes, or the bell is rung.

        Returns:
            `False` when the bell was rung for nothing else: time for a heartbeat.
        """
        if not self._queue and not self.ended:
            self._bell = asyncio.get_running_loop().create_future()
            try:
                await self._bell
            finally:
                self._bell = None
        return bool(self._queue) or self.ended

    def ring(self) -> None:
        """Wake whoever waits."""
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    def push(self, frame: bytes) -> None:
        """Put a frame in line; cuts the connection when the line is full."""
        if self.ended:
            return
        self._queue.append(frame)
        self._size += len(frame)
        if self._size > MAX_QUEUE_BYTES or len(self._queue) > MAX_FRAMES:
            self.leave("overflow")
        elif self._bell is not None:
            self.ring()

    def finish(self, frame: bytes = b"") -> None:
        """End the stream once all that waits, and this frame, is sent."""
        if frame:
            self.push(frame)
        self._end()

    def leave(self, reason: str = "gone") -> None:
        """Give the place up at once; may be called twice.

        Args:
            reason: What `cut` says, if nothing ended the stream before.
        """
        if not self.ended or self._queue:
            self.cut = self.cut or reason
        self._queue.clear()
        self._size = 0
        self._end()

    def _end(self) -> None:
        self.ended = True
        if self._hub is not None:
            self._hub.exclude(self, self._key)
        self.ring()


class Hub:
    """The readers of one session."""

    def __init__(self) -> None:
        self._readers: dict[object, Subscriber] = {}
        self._live: list[Subscriber] = []
        self._numbers = itertools.count()
        self._closed = False
        self.on_readers: Callable[[], None] = lambda: None
        """Told when a reader came or went, unless the server itself ends the streams."""

    @property
    def readers(self) -> int:
        """How many are attached (C5.16)."""
        return len(self._readers)

    def join(self, reader: str | None = None, subscriber: Subscriber | None = None) -> Subscriber:
        """A place for a reader, to be given up with `leave`.

        Args:
            reader: How it names itself: it replaces an older connection of the same name (C3.9).
            subscriber: The place, of a reader who was there before the hub; it has not ended.

        Raises:
            TooManyReaders: All places are taken.
        """
        key: object = next(self._numbers) if reader is None else reader
        former = self._readers.get(key)
        if former is not None:
            former.leave("replaced")
        if len(self._readers) >= MAX_READERS:
            raise TooManyReaders(
                f"The session has {MAX_READERS!r} readers already; close one of them, or give each "
                "device a name with `?reader=`.",
                retry_after_s=_RETRY_FULL_S,
                reason="reader_limit",
            )
        subscriber = subscriber or Subscriber()
        subscriber.attach(self, key)
        self._readers[key] = subscriber
        if self._closed:
            subscriber.finish()
        else:
            self.on_readers()
        return subscriber

    def publish(self, frame: bytes) -> None:
        """Hand a frame to every reader that has caught up. Never waits."""
        for subscriber in self._live:
            subscriber.push(frame)

    def close(self) -> None:
        """End every stream once it has sent what waits; later readers get the replay alone."""
        self._closed = True
        for subscriber in list(self._readers.values()):
            subscriber.finish()

    def drain(self, retry_ms: Callable[[], int]) -> None:
        """Tell every reader that the server is going away, then end its stream (C3.6).

        Args:
            retry_ms: Milliseconds until it shall come back, drawn anew for each.
        """
        self._closed = True
        for subscriber in list(self._readers.values()):
            reset = encode(Reset(retry_ms=retry_ms()))
            subscriber.finish(encode_event(reset, event="reset"))

    def include(self, subscriber: Subscriber) -> None:
        """From now on, give it what is published; `Subscriber.start` calls this."""
        self._live = [*self._live, subscriber]

    def exclude(self, subscriber: Subscriber, key: object) -> None:
        """Forget it; a reader that took its name stays."""
        if self._readers.get(key) is subscriber:
            del self._readers[key]
            if not self._closed:
                self.on_readers()
        # A new list: `publish` may be going through the old one right now.
        self._live = [other for other in self._live if other is not subscriber]

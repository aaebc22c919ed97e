"""The feed of the session list: its rows, as they change (C2.12)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from towline_client.caller import Caller
from towline_client.clock import Clock
from towline_client.errors import ClientError, ConnectionLost
from towline_client.link import (
    Cut,
    GiveUp,
    Heard,
    HelloSeen,
    LinkInput,
    LinkPolicy,
    LinkState,
    ResetSeen,
    RetrySeen,
    Start,
    Tick,
    step,
)
from towline_client.refusal import read_error
from towline_protocol import (
    Hello,
    ProtocolError,
    Reset,
    SessionChanged,
    SessionRemoved,
    SessionRows,
    SseDecoder,
    TowlineError,
    VersionMismatch,
    decode_frame,
)

__all__ = ["FeedFrame", "follow_feed"]

FeedFrame = SessionRows | SessionChanged | SessionRemoved
"""What `Client.feed` gives: first the rows as they stand, then each that changes or goes."""

_ROWS: Final = (SessionRows, SessionChanged, SessionRemoved)


async def follow_feed(
    caller: Caller,
    *,
    reader: str,
    clock: Clock,
    policy: LinkPolicy,
    draw: Callable[[], float],
) -> AsyncGenerator[FeedFrame, None]:
    """Read the feed, over as many connections as it takes; see `Client.feed`.

    Args:
        caller: Opens the streams.
        reader: How this line names itself; a new line of the same name replaces the old one.
        clock: Times the waits.
        policy: The numbers of the reconnection.
        draw: Gives random numbers, for the jitter.

    Raises:
        ConnectionLost: The server could not be reached to begin with.
        ClientError: The line was given up.
    """
    line = _Line(clock, policy, draw)
    line.take(Start())
    begun = False
    while True:
        await line.wait()
        try:
            async with AsyncExitStack() as stack:
                stream = caller.stream("follow_all", query={"reader": reader})
                async with line.bounded():
                    chunks = await stack.enter_async_context(stream)
                while (chunk := await line.next(chunks)) is not None:
                    for frame in line.read(chunk):
                        begun = True
                        yield frame
        except (ClientError, VersionMismatch, ProtocolError) as error:
            line.fail(error)
            if not begun and line.failures > 1:
                raise  # one failure may be a blip; who just begins is told of the second
        else:
            line.cut()


class _Line:
    """The link's machine on a stream without numbers: the cursor stands still at 0."""

    def __init__(self, clock: Clock, policy: LinkPolicy, draw: Callable[[], float]) -> None:
        self._clock = clock
        self._draw = draw
        self._state = LinkState(seq=0, policy=policy)
        self._decoder = SseDecoder()

    @property
    def failures(self) -> int:
        """Failed connections in a row."""
        return self._state.failures

    def take(self, given: LinkInput) -> tuple[Any, ...]:
        """Let the link take an input; gives what it asks for."""
        self._state, effects = step(self._state, given)
        return effects

    async def wait(self) -> None:
        """Wait until the next connection is due."""
        while self._state.doing == "pause":
            await self._clock.wait(asyncio.Event(), self._state.wake_ms)
            self.take(Tick(**self._when()))
        self._decoder = SseDecoder()

    def fail(self, error: TowlineError) -> None:
        """Take in what a connection ended with; raises it when the link gives up."""
        given = read_error(error, attempt=self._state.attempt, **self._when())
        if any(isinstance(effect, GiveUp) for effect in self.take(given)):
            raise error

    def cut(self) -> None:
        """Take in that the server ended the stream."""
        self.take(Cut(attempt=self._state.attempt, **self._when()))

    async def next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next bytes; `None` at the end."""
        self.take(Heard(attempt=self._state.attempt, **self._when()))
        async with self.bounded():
            return await anext(chunks, None)

    def read(self, chunk: bytes) -> Iterator[FeedFrame]:
        """The rows that a chunk completes; all else goes to the link."""
        attempt = self._state.attempt
        known_retry_ms = self._decoder.retry
        for sse in self._decoder.feed(chunk):
            frame = decode_frame(sse.event, sse.data)
            if isinstance(frame, _ROWS):
                yield frame
            elif isinstance(frame, Hello):  # whatever the log: there is nothing to go on from
                self.take(HelloSeen(attempt=attempt, log="", **self._when()))
            elif isinstance(frame, Reset):
                self.take(ResetSeen(attempt=attempt, retry_ms=frame.retry_ms, **self._when()))
        retry_ms = self._decoder.retry
        if retry_ms is not None and retry_ms != known_retry_ms:
            self.take(RetrySeen(attempt=attempt, retry_ms=retry_ms, **self._when()))

    @asynccontextmanager
    async def bounded(self) -> AsyncGenerator[None]:
        """Take too long a silence for a line that is cut (C3.7)."""
        wake_ms = self._state.wake_ms
        assert wake_ms is not None, "whoever waits for bytes does not wait for ever"
        left_s = max(0, wake_ms - self._clock.now_ms()) / 1000
        try:
            async with asyncio.timeout(left_s):
                yield
        except TimeoutError as error:
            raise ConnectionLost(f"Nothing came for {left_s:g} seconds; try again.") from error

    def _when(self) -> dict[str, Any]:
        return {"now_ms": self._clock.now_ms(), "random": self._draw()}

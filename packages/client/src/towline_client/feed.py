"""The feed of the session list: its rows, as they change (C2.12)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from towline_client.caller import Caller
from towline_client.errors import ConnectionLost
from towline_protocol import (
    ProtocolError,
    Reset,
    SessionChanged,
    SessionRemoved,
    SessionRows,
    SseDecoder,
    decode_frame,
)

__all__ = ["FeedFrame", "follow_feed"]

FeedFrame = SessionRows | SessionChanged | SessionRemoved
"""What `Client.feed` gives: first the rows as they stand, then each that changes or goes."""

_ROWS: Final = (SessionRows, SessionChanged, SessionRemoved)


async def follow_feed(
    caller: Caller, *, reader: str, silence_s: float
) -> AsyncGenerator[FeedFrame, None]:
    """Read the feed until its line ends; see `Client.feed`.

    Args:
        caller: Opens the stream.
        reader: How this line names itself; a new line of the same name replaces the old one.
        silence_s: Seconds without a byte after which the line counts as cut.

    Raises:
        ConnectionLost: The line ended, for whatever reason.
        ClientError: The server cannot be reached, or says no.
    """
    decoder = SseDecoder()
    announced_s: float | None = None
    async with AsyncExitStack() as stack:
        async with _bounded(silence_s):
            stream = caller.stream("follow_all", query={"reader": reader})
            chunks = await stack.enter_async_context(stream)
        while (chunk := await _next_chunk(chunks, silence_s)) is not None:
            for frame in _read(decoder, chunk):
                if isinstance(frame, Reset):
                    announced_s = frame.retry_ms / 1000
                else:
                    yield frame
    raise ConnectionLost("The feed's line ended; ask for a new one.", retry_after_s=announced_s)


async def _next_chunk(chunks: AsyncIterator[bytes], silence_s: float) -> bytes | None:
    async with _bounded(silence_s):
        return await anext(chunks, None)


def _read(decoder: SseDecoder, chunk: bytes) -> list[FeedFrame | Reset]:
    try:
        found = [decode_frame(sse.event, sse.data) for sse in decoder.feed(chunk)]
    except ProtocolError as error:
        raise ConnectionLost(f"The feed cannot be read: {error.message}") from error
    return [frame for frame in found if isinstance(frame, (*_ROWS, Reset))]


@asynccontextmanager
async def _bounded(seconds: float) -> AsyncGenerator[None]:
    """Take a silence of so many seconds for a line that is cut (C3.7)."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise ConnectionLost(
            f"Nothing came for {seconds:g} seconds; ask for a new feed."
        ) from error

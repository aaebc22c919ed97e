"""A transport without a network that does to a line whatever a network can, when it is told to."""

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from towline_client import Call, ConnectionLost, Reply, StreamReply
from towline_client.testing import ScriptedServer, ScriptedTransport, refuse

__all__ = ["RoughLine"]


class RoughLine(ScriptedTransport):
    """A line to a scripted server; good until something else is asked for."""

    def __init__(self, server: ScriptedServer, chance: random.Random) -> None:
        super().__init__(server)
        self.down = False
        """Whether nothing gets through, and whoever tries is told so."""
        self.silent = False
        """Whether nothing gets through, and nobody is told before it heals."""
        self.lost = 0
        """The next answers to ordinary requests that are lost, after all was done."""
        self.pages: deque[Reply] = deque()
        """Answers that come instead, each once."""
        self.loses = 0.0
        """The chance of a frame to be lost."""
        self.loses_deltas = 0.0
        """The chance of a frame without a number to be lost."""
        self.doubles = 0.0
        """The chance of a frame to come twice."""
        self.left: int | None = None
        """Bytes until the next cut of a stream; `None` for no cut."""
        self.frames_lost = False
        """Whether a frame was ever lost: only what comes after it tells of that."""
        self._chance = chance
        self._cut = asyncio.Event()
        self._healed = asyncio.Event()

    def cut(self) -> None:
        """Cut all streams; what was on its way in them is gone."""
        self._cut.set()
        self._cut = asyncio.Event()

    def heal(self) -> None:
        """Be a good line again."""
        self.down = self.silent = False
        self.lost = 0
        self.pages.clear()
        self.loses = self.loses_deltas = self.doubles = 0.0
        self.left = None
        self._healed.set()
        self._healed = asyncio.Event()

    async def request(self, call: Call) -> Reply:
        """Carry out an ordinary call, and perhaps lose what came of it."""
        await self._pass()
        if self.pages:
            return self.pages.popleft()
        reply = await super().request(call)
        await self._pass()
        if self.lost:
            self.lost -= 1
            raise _LOST
        return reply

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[StreamReply]:
        """Open a stream, and treat it as badly as it was asked for."""
        await self._pass()
        if self.pages:
            page = self.pages.popleft()
            yield StreamReply(status=page.status, headers=page.headers, chunks=_whole(page.body))
            return
        async with super().stream(call) as reply:
            pieces = self._pieces(reply.chunks)
            try:
                yield msgspec.structs.replace(reply, chunks=pieces)
            finally:
                await pieces.aclose()

    def page(self, name: str) -> None:
        """Have the next request answered by something else."""
        self.pages.append(_PAGES[name])

    async def _pass(self) -> None:
        await asyncio.sleep(0)
        if self.silent:
            await self._healed.wait()
            raise _LOST
        if self.down:
            raise _LOST

    async def _pieces(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        cut = self._cut
        frames: asyncio.Queue[bytes] = asyncio.Queue()
        reading = asyncio.create_task(_read(chunks, frames))
        try:
            while data := await self._next(frames, cut):
                for piece in self._split(data):
                    yield self._up_to_the_cut(piece)
                    if cut.is_set():
                        raise _LOST
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _next(self, frames: asyncio.Queue[bytes], cut: asyncio.Event) -> bytes:
        """What comes next, sometimes joined with all that waits; empty at the end in order."""
        more = asyncio.create_task(frames.get())
        ends = asyncio.create_task(cut.wait())
        try:
            await asyncio.wait([more, ends], return_when=asyncio.FIRST_COMPLETED)
        finally:
            more.cancel()
            ends.cancel()
        if cut.is_set():
            raise _LOST
        data = self._treat(more.result())
        while data and self._chance.random() < 0.8 and not frames.empty():
            if not (frame := frames.get_nowait()):
                frames.put_nowait(frame)  # the end comes by itself
                break
            data += self._treat(frame)
        return data

    def _up_to_the_cut(self, piece: bytes) -> bytes:
        if self.left is None:
            return piece
        self.left -= len(piece)
        if self.left >= 0:
            return piece
        piece, self.left = piece[: self.left], None
        self.cut()
        return piece

    def _treat(self, frame: bytes) -> bytes:
        loses = self.loses if frame.startswith(b"id: ") else max(self.loses, self.loses_deltas)
        if frame and self._chance.random() < loses:
            self.frames_lost = True
            return b": lost\n\n"
        return frame * 2 if self._chance.random() < self.doubles else frame

    def _split(self, data: bytes) -> list[bytes]:
        """Pieces that end anywhere, mostly not where a frame does."""
        if self._chance.random() < 0.5:
            return [data]
        place = self._chance.randrange(len(data))
        return [data[:place], data[place:]]


_LOST = ConnectionLost("The line broke.")
_PAGES = {
    "portal": Reply(status=200, headers={"content-type": "text/html"}, body=b"Sign in."),
    "bad gateway": Reply(status=502, headers={}, body=b"No."),
    "proxy login": Reply(status=401, headers={}, body=b"No."),
    "unauthorized": refuse("unauthorized", "Not known."),
    "draining": refuse("draining", "Come back later.", retry_after_s=2.0),
    "broken": refuse("internal_error", "It failed."),
    "no session": refuse("not_found", "There is none."),
}


async def _read(chunks: AsyncIterator[bytes], frames: asyncio.Queue[bytes]) -> None:
    async for frame in chunks:
        frames.put_nowait(frame)
    frames.put_nowait(b"")


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body

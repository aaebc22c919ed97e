"""One request through the proxy, and what comes of it."""

import asyncio
import random
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult

from towline_client.testing.chaos.plan import Fate, draw_fate
from towline_client.testing.chaos.weather import Weather
from towline_client.testing.chaos.wire import (
    LIMIT,
    PIECE,
    PORTAL,
    Frames,
    Head,
    Malformed,
    bad_gateway,
    chunk_of,
    read_chunk,
    read_head,
    unauthorized,
)

__all__ = ["Exchange"]

MAX_DOUBLED: Final = 1024 * 1024
"""Bytes of a body that is sent twice, and of one that is cut within; a larger one passes."""
LINGER_S: Final = 5.0
"""Seconds that a client has to take what was sent to it before the end."""
_AT_ONCE: Final = struct.pack("ii", 1, 0)  # SO_LINGER: the end is a reset


class _Over(Exception):
    """The exchange was ended on purpose."""


_BROKEN: Final = (OSError, EOFError, Malformed, _Over)


class _Line:
    """One connection, of either side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def end(self, *, reset: bool = False) -> None:
        """End it: in order, with all that was written sent, or with a reset."""
        if not reset:
            self.writer.close()
            return
        found: socket.socket | None = self.writer.get_extra_info("socket")
        if found is not None:
            with suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.writer.transport.abort()

    async def away(self) -> None:
        """Wait until what was written is sent."""
        with suppress(OSError):
            await self.writer.wait_closed()

    def abort(self) -> None:
        """Let go of it, whatever is not sent; means nothing when it is gone."""
        self.writer.transport.abort()


class Exchange:
    """A client's connection. It carries one request: each answer says that it is the last one."""

    def __init__(
        self, sock: socket.socket, target: SplitResult, weather: Weather, chance: random.Random
    ) -> None:
        self._sock = sock
        self._target = target
        self._weather = weather
        self._chance = chance
        self._fate = Fate()
        self._lines: list[_Line] = []
        self._sent = 0
        self.stream = False
        """Whether it is a stream of events."""

    async def run(self) -> None:
        """Carry the request and its answer, as far as they come."""
        try:
            client = self._hold(*await asyncio.open_connection(sock=self._sock, limit=LIMIT))
            with suppress(*_BROKEN):
                await self._carry(client)
            self.cut()
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    for line in self._lines:
                        await line.away()
        finally:
            for line in self._lines:
                line.abort()

    def let_go(self) -> None:
        """Close the connection of an exchange that never began."""
        if not self._lines:
            self._sock.close()

    def cut(self, *, reset: bool = False) -> None:
        """End it here and now."""
        for line in self._lines:
            line.end(reset=reset)

    def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Line:
        line = _Line(reader, writer)
        self._lines.append(line)
        return line

    async def _carry(self, client: _Line) -> None:
        weather = self._weather
        await weather.passing.wait()
        head = await read_head(client.reader)
        self.stream = b"text/event-stream" in head.get(b"accept")
        page = weather.page
        if page is None and self.stream and weather.denials:
            page = weather.denials.popleft()
            weather.counts["denied"] += 1
        if page is not None:
            await self._answer(client, head, page)
            return
        keyed = bool(head.get(b"idempotency-key"))
        self._fate = draw_fate(self._chance, weather.faults, stream=self.stream, keyed=keyed)
        await self._meet(client, head)

    async def _meet(self, client: _Line, head: Head) -> None:
        """Meet what was drawn."""
        fate = self._fate
        match fate.kind:
            case "portal":
                self._count("portal")
                await self._answer(client, head, PORTAL)
            case "bad_gateway":
                self._count("bad_gateway")
                await self._answer(client, head, bad_gateway())
            case "black_hole":
                await self._vanish(client)
            case "refuse":
                self._count("refuse")
                self._weather.refuse()
                self.cut(reset=True)
            case "double":
                await self._double(client, head)
            case "cut" if fate.place == "before":
                self._end()
            case "cut" if fate.place == "within":
                await self._cut_within(client, head)
            case _:
                await self._pass(client, head)

    def _count(self, name: str) -> None:
        self._weather.counts[name] += 1

    async def _answer(self, client: _Line, head: Head, page: bytes, *, has_read: int = 0) -> None:
        """Answer with a page; the request is read first, or its rest would reset the connection."""
        left = (head.length or 0) - has_read
        with suppress(*_BROKEN):
            while left > 0 and (piece := await client.reader.read(min(left, PIECE))):
                left -= len(piece)
            await client.send(page)

    async def _vanish(self, client: _Line) -> None:
        self._count("black_hole")
        with suppress(TimeoutError):
            async with asyncio.timeout(self._weather.faults.hole_s):
                while await client.reader.read(PIECE):
                    pass
        self.cut(reset=True)

    async def _body(self, client: _Line, head: Head) -> bytes | None:
        """A request's body; `None` when it is not known how long it is, or too long."""
        length = head.length
        if length is None or length > MAX_DOUBLED:
            return None
        return await client.reader.readexactly(length)

    async def _double(self, client: _Line, head: Head) -> None:
        body = await self._body(client, head)
        if body is None:
            await self._pass(client, head)
            return
        self._count("double")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_aside(head, body))
            await self._pass(client, head, body)

    async def _send_aside(self, head: Head, body: bytes) -> None:
        """Send a request whose answer nobody gets."""
        with suppress(*_BROKEN):
            server = await self._reach()
            await server.send(head.toward(self._host).encode() + body)
            while await server.reader.read(PIECE):
                pass

    async def _cut_within(self, client: _Line, head: Head) -> None:
        """Let the server hear half of a request."""
        body = await self._body(client, head) or b""
        server = await self._reach()
        data = head.toward(self._host).encode() + body
        await server.send(data[: len(data) // 2])
        self._end()

    def _end(self) -> None:
        """End as it was drawn."""
        fate = self._fate
        self._count(fate.kind)
        if fate.kind == "unauthorized":
            self._weather.denials.append(unauthorized(contract=fate.contract))
        self.cut(reset=fate.end == "rst")
        raise _Over

    @property
    def _host(self) -> bytes:
        return self._target.netloc.rpartition("@")[2].encode()

    async def _reach(self) -> _Line:
        secure = self._target.scheme == "https"
        port = self._target.port or (443 if secure else 80)
        opened = await asyncio.open_connection(
            self._target.hostname, port, ssl=secure or None, limit=LIMIT
        )
        return self._hold(*opened)

    async def _pass(self, client: _Line, head: Head, body: bytes = b"") -> None:
        """Pass a request on and its answer back, until either side ends."""
        try:
            server = await self._reach()
        except OSError:
            self._count("unreached")
            await self._answer(client, head, bad_gateway(), has_read=len(body))
            return
        async with asyncio.TaskGroup() as group:
            up = group.create_task(self._pass_up(client, server, body, head))
            with suppress(*_BROKEN):
                await self._pass_down(server, client)
            up.cancel()

    async def _pass_up(self, client: _Line, server: _Line, body: bytes, head: Head) -> None:
        with suppress(*_BROKEN):
            await server.send(head.toward(self._host).encode() + body)
            while piece := await client.reader.read(PIECE):
                await self._weather.passing.wait()
                await server.send(piece)
        server.end()  # the client has left, and the server is to see it

    async def _pass_down(self, server: _Line, client: _Line) -> None:
        head = await read_head(server.reader)
        await self._put(client, head.encode())
        chunked = head.get(b"transfer-encoding") == b"chunked"
        if chunked and head.get(b"content-type").startswith(b"text/event-stream"):
            await self._pass_frames(server, client)
            return
        while piece := await server.reader.read(PIECE):
            await self._put(client, piece)

    async def _pass_frames(self, server: _Line, client: _Line) -> None:
        frames = Frames()
        passed = 0
        try:
            while data := await read_chunk(server.reader):
                whole = frames.feed(data)
                if self._fate.kind == "half_frame" and passed + len(whole) > self._fate.at:
                    await self._halve(client, whole[: self._fate.at - passed + 1])
                passed += len(whole)
                if whole:
                    await self._put(client, chunk_of(b"".join(self._doubled(whole))))
        except (OSError, EOFError):
            if frames.rest:  # the server died in mid-frame, and so ends what the client gets
                await self._put(client, chunk_of(frames.rest))
            raise
        await self._put(client, (chunk_of(frames.rest) if frames.rest else b"") + chunk_of(b""))

    def _doubled(self, frames: Sequence[bytes]) -> list[bytes]:
        """The frames, some of them twice."""
        passed: list[bytes] = []
        for frame in frames:
            passed.append(frame)
            if self._chance.random() < self._weather.faults.double_frame:
                self._count("double_frame")
                passed.append(frame)
        return passed

    async def _halve(self, client: _Line, frames: Sequence[bytes]) -> None:
        """Pass frames, but only half of the last one; then end."""
        *whole, last = frames
        await self._put(client, chunk_of(b"".join((*whole, last[: max(1, len(last) // 2)]))))
        if self._fate.end == "clean":
            await self._put(client, chunk_of(b""))
        self._end()

    async def _put(self, client: _Line, data: bytes) -> None:
        """Send a piece of the answer, as far as it is to come."""
        faults = self._weather.faults
        if self._chance.random() < faults.delay:
            self._count("delay")
            await asyncio.sleep(self._chance.uniform(0, faults.delay_s))
        await self._weather.passing.wait()
        if self._fate.kind in ("cut", "unauthorized"):
            left = self._fate.at - self._sent
            if left < len(data):
                await client.send(data[:left])
                self._end()
        self._sent += len(data)
        await client.send(data)

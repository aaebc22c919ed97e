"""A line between a browser and a server: a test cuts it, holds it, or has it buffer."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

__all__ = ["Line", "open_line"]

_CHUNK_BYTES = 65_536
_STREAM = b"content-type: text/event-stream"
_END_OF_HEAD = b"\r\n\r\n"


class Line:
    """Carries bytes both ways. Its own address stays the same whatever it leads to."""

    def __init__(self) -> None:
        self.port = 0
        """Where it listens, on this machine."""
        self.target = 0
        """The port of the server; with 0 there is none."""
        self.opened = 0
        """How many connections there were."""
        self.let_through = asyncio.Event()
        """What the server says waits while this is not set."""
        self.let_through.set()
        self.buffers = False
        """Whether it collects what a stream says until `hand_on`, as some proxies do; a stream's
        head and all that is no stream pass."""
        self.holds_heads = False
        """Whether such a head waits as well, until there is more to send with it."""
        self._collected: list[tuple[bytes, asyncio.StreamWriter]] = []
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """The address that a browser goes to."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """End all connections at once, in the midst of whatever they carry."""
        for writer in self._writers:
            writer.transport.abort()

    async def collects(self, words: bytes) -> None:
        """Return once these words lie among what was collected."""
        while not any(words in data for data, _ in self._collected):
            self._news.clear()
            await self._news.wait()

    async def hand_on(self) -> None:
        """Send on in one go what was collected."""
        collected, self._collected = self._collected, []
        whole: dict[asyncio.StreamWriter, bytes] = {}
        for data, sink in collected:
            whole[sink] = whole.get(sink, b"") + data
        for sink, data in whole.items():
            sink.write(data)
            await sink.drain()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.opened += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            with contextlib.suppress(OSError):
                await self._carry(reader, writer)
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.target:
            return
        theirs, ours = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers.add(ours)
        try:
            up = asyncio.create_task(self._copy(reader, ours))
            down = asyncio.create_task(self._copy(theirs, writer, held=True))
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
        finally:
            ours.transport.abort()
            self._writers.discard(ours)

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, held: bool = False
    ) -> None:
        streams = False
        while data := await source.read(_CHUNK_BYTES):
            if held:
                await self.let_through.wait()
                streams = streams or _STREAM in data.lower()
            passed, kept = data, b""
            if streams and self.buffers:
                passed, kept = self._part(data)
            if kept:
                self._collected.append((kept, sink))
                self._news.set()
            sink.write(passed)
            await sink.drain()

    def _part(self, data: bytes) -> tuple[bytes, bytes]:
        """What of a stream passes, and what is collected."""
        if self.holds_heads or _STREAM not in data.lower():
            return b"", data
        head, end, rest = data.partition(_END_OF_HEAD)
        return head + end, rest

    async def close(self) -> None:
        """End all that is carried."""
        self.cut()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def open_line() -> AsyncGenerator[Line]:
    """A line that leads nowhere yet."""
    line = Line()
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        await line.close()
        await server.wait_closed()

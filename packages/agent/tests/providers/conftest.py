"""A server in this process for tests of the transport: it counts its connections."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from towline_agent.providers.http import HttpTransport
from towline_agent.providers.transport import HttpCall

Reply = Callable[["Connection"], Awaitable[None]]

TLS = Path(__file__).with_name("tls")

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Connection:
    """One connection as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.requests: list[tuple[bytes, bytes]] = []
        self.lost = asyncio.Event()

    async def request(self) -> bool:
        """Read one request; false at the end of the connection."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        size = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        self.requests.append((head, await self.reader.readexactly(size)))
        return True

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def begin(self) -> None:
        """Send the head of a stream."""
        await self.send(_HEAD)

    async def events(self, *parts: bytes) -> None:
        """Send parts of a stream, each in a chunk of its own."""
        for part in parts:
            await self.send(b"%x\r\n%s\r\n" % (len(part), part))

    async def end(self) -> None:
        """End a stream as it should be."""
        await self.send(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """Close the connection."""
        self.writer.close()

    async def until_lost(self) -> None:
        """Wait until the client hangs up."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        self.lost.set()


class Server:
    """Plays one reply a request; the last one again and again."""

    def __init__(self, replies: list[Reply], scheme: str) -> None:
        self.replies = replies
        self.scheme = scheme
        self.connections: list[Connection] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = Connection(reader, writer)
        self.connections.append(connection)
        try:
            while await connection.request():
                reply = self.replies[0] if len(self.replies) == 1 else self.replies.pop(0)
                await reply(connection)
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            connection.lost.set()
            writer.close()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def requests(self) -> int:
        return sum(len(connection.requests) for connection in self.connections)

    def call(self, *, idle_s: float = 5.0, method: str = "POST") -> HttpCall:
        body = b'{"a":1}' if method == "POST" else None
        url = f"{self.scheme}://127.0.0.1:{self.port}/v1/chat/completions"
        return HttpCall(url=url, method=method, body=body, idle_s=idle_s)


@asynccontextmanager
async def serving(*replies: Reply, tls: bool = False) -> AsyncGenerator[Server]:
    server = Server(list(replies), "https" if tls else "http")
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**20, ssl=context)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(20):
            yield server
    finally:
        listener.close()
        await server.stop()
        await listener.wait_closed()


@asynccontextmanager
async def transport(
    drain_s: float = 5.0, ca_file: str | None = None
) -> AsyncGenerator[HttpTransport]:
    made = HttpTransport(drain_s=drain_s, ca_file=ca_file)
    try:
        yield made
    finally:
        await made.aclose()


@pytest.fixture(name="transport")
def transport_fixture() -> Callable[..., AbstractAsyncContextManager[HttpTransport]]:
    """`async with transport() as made`: a transport of the test's own."""
    return transport


@pytest.fixture(name="serving")
def serving_fixture() -> Callable[..., AbstractAsyncContextManager[Server]]:
    """`async with serving(reply, ...) as server`: each reply answers one request."""
    return serving

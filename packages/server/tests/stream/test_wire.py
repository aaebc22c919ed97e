"""The stream on real sockets under the real server."""

import asyncio
import errno
import gc
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from towline_protocol import UsageError
from towline_server.errors import AddressInUse
from towline_server.stream import listener as listening
from towline_server.stream.connection import StreamProtocol, transport_of, unsent_bytes
from towline_server.stream.listener import open_listener
from towline_server.stream.pump import EventStream
from towline_server.stream.testing import Line

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


@asynccontextmanager
async def _serve(app: App) -> AsyncGenerator[tuple[str, int], None]:
    """The real server, in this loop."""
    listener = open_listener("127.0.0.1", 0)
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] - the same protocol in looser words
        http=StreamProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        async with asyncio.timeout(10):
            await serving


def _stream(make: Callable[[], EventStream]) -> App:
    """An app that answers each request with a new stream."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        await make()(scope, receive, send)

    return app


@asynccontextmanager
async def _ask(address: tuple[str, int]) -> AsyncGenerator[socket.socket, None]:
    """A client whose kernel buffers are small."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await loop.sock_connect(client, address)
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        yield client


async def _read(client: socket.socket, mark: bytes) -> bytes:
    """All that comes up to and with a mark."""
    data = b""
    async with asyncio.timeout(10):
        while mark not in data:
            piece = await asyncio.get_running_loop().sock_recv(client, 65536)
            assert piece, data
            data += piece
    return data


async def _until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not met():  # noqa: ASYNC110 - it is the kernel's state, which sets no event
            await asyncio.sleep(0)


def _open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def _resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


async def test_a_reader_on_a_socket_gets_replay_live_frames_and_an_end(line: Line) -> None:
    await line.add(3)
    async with _serve(_stream(line.stream)) as address, _ask(address) as client:
        await _read(client, b"id: 3\n")
        await line.add()
        await _read(client, b"id: 4\n")
        line.hub.close()
        await _read(client, b"0\r\n\r\n")  # chunked transfer says that it ended
        await _until(lambda: line.hub.readers == 0)
        assert line.hub.readers == 0


async def test_a_client_that_goes_away_gives_its_place_up(line: Line) -> None:
    async with _serve(_stream(line.stream)) as address:
        async with _ask(address) as client:
            await _read(client, b"hello")
            assert line.hub.readers == 1
        await _until(lambda: line.hub.readers == 0)


@pytest.mark.slow
@pytest.mark.rules("S08", "C3.9")
async def test_a_thousand_clients_that_come_and_go_leave_nothing(line: Line) -> None:
    await line.add(5)

    async def visit(address: tuple[str, int]) -> None:
        async with _ask(address) as client:
            await _read(client, b"id: 5\n")

    async with _serve(_stream(line.stream)) as address:
        for _ in range(100):  # until pools and caches have their size
            await visit(address)
        await _until(lambda: line.hub.readers == 0 and len(asyncio.all_tasks()) == 2)
        gc.collect()
        files = _open_files()
        pages = _resident_pages() if sys.platform == "linux" else 0
        for _ in range(1000):
            await visit(address)
        await _until(lambda: line.hub.readers == 0 and len(asyncio.all_tasks()) == 2)
        await _until(lambda: _open_files() <= files)
        gc.collect()
        if sys.platform == "linux":
            assert _resident_pages() < pages * 1.05


@pytest.mark.rules("C3.8")
async def test_a_client_that_reads_nothing_is_let_go_at_once_with_its_descriptor(
    line: Line,
) -> None:
    scopes: list[Message] = []

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await line.stream(stall_s=0.1)(scope, receive, send)

    async with _serve(app) as address, _ask(address) as client:
        await _read(client, b"hello")
        transport = transport_of(scopes[0])
        assert transport is not None
        line.delta("x" * 1_500_000)  # more than both kernels hold, less than the queue
        await _until(lambda: unsent_bytes(transport) > 300_000)
        await _until(lambda: line.hub.readers == 0)
        await _until(lambda: transport.get_extra_info("socket").fileno() < 0)
        # What the kernel had taken still arrives, then the stream breaks off without its end mark.
        rest = b""
        async with asyncio.timeout(10):
            while piece := await asyncio.get_running_loop().sock_recv(client, 65536):
                rest += piece
        assert 0 < len(rest) < 1_500_000
        assert not rest.endswith(b"0\r\n\r\n")


@pytest.mark.rules("C3.8")
async def test_every_accepted_connection_has_the_settings_of_the_listener() -> None:
    listener = open_listener("127.0.0.1", 0)
    client = socket.create_connection(listener.getsockname(), timeout=5)
    accepted, _ = listener.accept()
    try:
        # The kernel doubles the number and bounds it by a setting of its own.
        size = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        assert size == listener.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        if sys.platform == "linux":
            timeout = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert timeout == listening.USER_TIMEOUT_MS
    finally:
        for each in (accepted, client, listener):
            each.close()


def test_a_taken_port_is_named_or_the_next_one_is_used() -> None:
    first = open_listener("127.0.0.1", 0)
    port: int = first.getsockname()[1]
    with pytest.raises(AddressInUse, match=f"'127.0.0.1' port {port} is in use.*--port"):
        open_listener("127.0.0.1", port)
    second = open_listener("127.0.0.1", port, others=20)
    assert port < second.getsockname()[1] <= port + 20
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("192.0.2.1", "no address of this machine"),
        ("not a host", "cannot be found"),
        ("x" * 300, "cannot be found"),
    ],
)
def test_a_host_that_is_none_of_this_machine_is_named(host: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        open_listener(host, 0)
    assert repr(host) in caught.value.message


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "not for this user; choose one above 1023 with --port"),
        (errno.ENOBUFS, "No buffer space available"),
    ],
)
def test_a_port_that_cannot_be_had_says_why(
    monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(UsageError, match=words):
        open_listener("127.0.0.1", 80)


def test_an_address_of_the_sixth_version_is_one_too() -> None:
    try:
        listener = open_listener("::1", 0)
    except UsageError:
        pytest.skip("NO IPv6 on this machine.")
    assert listener.family == socket.AF_INET6
    listener.close()

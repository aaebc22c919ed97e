"""Rude HTTP peers: half-sent requests, stalled bodies, too many connections, no HTTP at all."""

import asyncio
import contextlib
import resource
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest
import uvicorn

from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION, FAULT_CODES, Problem
from towline_server.stream.connection import StreamProtocol, bound_connections
from towline_server.stream.listener import open_listener

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

SOON_S: Final = 0.1
LONG_S: Final = 60.0
PATIENCE_S: Final = 10.0

POST = b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
GET = b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n"


class Echo:
    """An app that reads the body and answers with its length."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.seen.append("gone")
                return
            size += len(message["body"])
            if not message.get("more_body"):
                break
        self.seen.append("whole")
        body = str(size).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def _serve(
    app: Echo, *, head_s: float = LONG_S, body_stall_s: float = LONG_S, most: int = 100
) -> AsyncGenerator[tuple[str, int]]:
    """The real server under these bounds."""
    bounds = {"head_s": head_s, "body_stall_s": body_stall_s, "max_connections": most}
    listener = open_listener("127.0.0.1", 0)
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] - the same protocol in looser words
        http=type("Bounded", (StreamProtocol,), bounds),
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
        async with asyncio.timeout(PATIENCE_S):
            await serving


@asynccontextmanager
async def _connect(
    address: tuple[str, int],
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):  # the server was the first to go
            await writer.wait_closed()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await reader.read()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(1)


def _problem(answer: bytes, code: str) -> Problem:
    """The problem in the server's last words on a connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    status = FAULT_CODES[code].status
    assert lines[0].startswith(f"http/1.1 {status} ")
    assert f"{CONTRACT_HEADER}: {CONTRACT_VERSION}" in lines
    assert "content-type: application/problem+json" in lines
    assert "connection: close" in lines
    problem = msgspec.json.decode(body, type=Problem)
    assert (problem.code, problem.status) == (code, status)
    return problem


async def test_a_peer_that_says_nothing_is_let_go_without_a_word() -> None:
    async with _serve(Echo(), head_s=SOON_S) as address, _connect(address) as (reader, _):
        assert await _rest(reader) == b""


@pytest.mark.rules("C2.1", "C2.2")
@pytest.mark.parametrize("part", [b"G", b"GET /x HTTP/1.1\r\n", b"GET /x HTTP/1.1\r\nhost: x\r\n"])
async def test_a_head_that_does_not_come_to_its_end_is_given_up(part: bytes) -> None:
    app = Echo()
    async with _serve(app, head_s=SOON_S) as address, _connect(address) as (reader, writer):
        writer.write(part)
        problem = _problem(await _rest(reader), "invalid_request")
        assert (problem.reason, app.seen) == ("request_timeout", [])


async def test_a_head_that_drips_gains_no_time_by_each_byte() -> None:
    async with _serve(Echo(), head_s=SOON_S) as address, _connect(address) as (reader, writer):
        ended = asyncio.create_task(_rest(reader))
        for byte in GET[:-2] * 100:
            writer.write(bytes([byte]))
            await asyncio.wait({ended}, timeout=SOON_S / 20)
            if ended.done():
                break
        try:
            answer = await ended
        except ConnectionResetError:  # the last byte met a closed door, and took the answer along
            return
        assert b"request_timeout" in answer


@pytest.mark.rules("C2.1", "C2.2")
async def test_a_body_that_stalls_is_given_up_and_the_app_hears_of_it() -> None:
    app = Echo()
    async with _serve(app, body_stall_s=SOON_S) as address, _connect(address) as (reader, writer):
        writer.write(POST % 10 + b"12345")
        problem = _problem(await _rest(reader), "invalid_request")
        assert problem.reason == "request_timeout"
        assert "body" in problem.detail
        assert app.seen == ["gone"]


async def test_a_body_that_comes_byte_by_byte_is_read_whole() -> None:
    app = Echo()
    async with _serve(app, body_stall_s=2.0) as address, _connect(address) as (reader, writer):
        writer.write(POST % 4)
        for byte in b"1234":
            await asyncio.sleep(0)
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await _answer(reader)).endswith(b"4")
        assert app.seen == ["whole"]


async def test_a_second_request_on_a_connection_is_held_to_the_same_times() -> None:
    app = Echo()
    async with _serve(app, head_s=SOON_S) as address, _connect(address) as (reader, writer):
        writer.write(GET)
        assert (await _answer(reader)).endswith(b"0")
        writer.write(GET + GET[:20])  # one whole, and a half behind it
        assert (await _answer(reader)).endswith(b"0")
        _problem(await _rest(reader), "invalid_request")
        assert app.seen == ["whole", "whole"]


async def test_a_connection_that_rests_between_requests_is_not_late() -> None:
    async with _serve(Echo(), head_s=SOON_S) as address, _connect(address) as (reader, writer):
        writer.write(GET)
        await _answer(reader)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SOON_S * 3):
                await reader.read()
        writer.write(GET)
        assert (await _answer(reader)).endswith(b"0")


@pytest.mark.rules("C2.1", "C2.4")
async def test_a_connection_too_many_is_told_when_to_come_back() -> None:
    app = Echo()
    async with _serve(app, most=2) as address:
        async with _connect(address) as (first, writer), _connect(address):
            writer.write(GET)
            await _answer(first)  # both are in by now
            async with _connect(address) as (surplus, _):
                answer = await _rest(surplus)
            assert b"\r\nretry-after: 5\r\n" in answer.lower()
            refused = _problem(answer, "capacity_exceeded")
            assert (refused.retry, refused.scope) == ("same_request", "limit")
            writer.write(GET)
            assert (await _answer(first)).endswith(b"0")  # the others are served as ever
        async with asyncio.timeout(PATIENCE_S):
            while not (await _ask(address)).startswith(b"HTTP/1.1 200"):  # noqa: ASYNC110 - they go when the kernel says so
                await asyncio.sleep(0)


async def _ask(address: tuple[str, int]) -> bytes:
    async with _connect(address) as (reader, writer):
        writer.write(GET.replace(b"host", b"connection: close\r\nhost"))
        return await _rest(reader)


@pytest.mark.rules("C2.1", "C2.2")
@pytest.mark.parametrize("words", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"hello\r\n\r\n"])
async def test_what_is_no_http_is_told_so_in_the_contract_s_words(words: bytes) -> None:
    async with _serve(Echo()) as address, _connect(address) as (reader, writer):
        writer.write(words)
        assert "HTTP/1.1" in _problem(await _rest(reader), "invalid_request").detail


async def test_a_head_without_end_is_refused_before_it_fills_the_memory() -> None:
    async with _serve(Echo()) as address, _connect(address) as (reader, writer):
        writer.write(b"GET /x HTTP/1.1\r\nx: " + b"a" * 100_000)
        assert b"400" in (await _rest(reader))[:20]


@pytest.mark.parametrize(
    ("files", "most"), [(256, 128), (1024, 896), (10**6, 4096), (100, 64), (-1, 4096)]
)
def test_connections_leave_descriptors_for_the_server_s_own_work(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    def limits(kind: int) -> tuple[int, int]:
        assert kind == resource.RLIMIT_NOFILE
        return files, files

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert bound_connections() == most

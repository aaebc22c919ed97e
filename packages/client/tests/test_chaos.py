"""The chaos proxy before a small server of bytes: what comes through, and what does not."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_client.testing.chaos import ChaosProxy, Faults
from towline_client.testing.chaos.plan import draw_fate
from towline_client.testing.chaos.wire import Frames
from towline_protocol import CONTRACT_HEADER

_FRAMES = [b'id: %d\ndata: {"seq":%d}\n\n' % (number, number) for number in range(1, 9)]


class _Server:
    """Notes what reaches it. `/stream` is a stream, to be fed; all else is answered as it was."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.left = asyncio.Event()
        self.more: asyncio.Queue[bytes] = asyncio.Queue()
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._take(reader, writer)))

    async def ended(self) -> None:
        await asyncio.gather(*self._tasks)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            body = await reader.readexactly(length)
            self.heard.append(head + body)
            if head.startswith(b"GET /socket "):
                await self._echo(reader, writer)
            elif head.startswith(b"GET /stream "):
                await self._stream(reader, writer)
            else:
                answer = head.partition(b" ")[2].partition(b" ")[0] + b" " + body
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(answer))
                writer.write(answer)
            await writer.drain()
        except (OSError, EOFError):
            self.left.set()
        finally:
            writer.close()

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        writer.write(b"transfer-encoding: chunked\r\n\r\n")
        leaves = asyncio.create_task(reader.read())
        while data := await self._next(leaves):
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        leaves.cancel()
        await asyncio.wait([leaves])

    async def _next(self, leaves: asyncio.Task[bytes]) -> bytes:
        more = asyncio.create_task(self.more.get())
        await asyncio.wait([more, leaves], return_when=asyncio.FIRST_COMPLETED)
        if more.done():
            return more.result()
        more.cancel()
        leaves.result()
        raise EOFError

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n")
        while data := await reader.read(1024):
            writer.write(data)

    def feed(self, *frames: bytes) -> None:
        for frame in frames:
            self.more.put_nowait(frame)


@asynccontextmanager
async def _proxy(
    faults: Faults | None = None, *, seed: int = 0
) -> AsyncGenerator[tuple[_Server, ChaosProxy]]:
    server = _Server()
    async with asyncio.timeout(20):
        listener = await asyncio.start_server(server.take, "127.0.0.1", 0)
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        try:
            async with ChaosProxy(server.url, seed=seed, faults=faults) as proxy:
                yield server, proxy
        finally:
            listener.close()
            await server.ended()


class _Line:
    """A connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def until(self, words: bytes) -> bytes:
        """What comes, up to these words."""
        data = b""
        while words not in data:
            piece = await self.reader.read(65536)
            assert piece, data
            data += piece
        return data

    async def rest(self) -> bytes:
        """What comes until the end in order."""
        return await self.reader.read(-1)


@asynccontextmanager
async def _line(proxy: ChaosProxy, request: bytes) -> AsyncGenerator[_Line]:
    host, _, port = proxy.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        yield _Line(reader, writer)
    finally:
        writer.transport.abort()


def _post(path: str, body: bytes = b"", *, key: str = "") -> bytes:
    keyed = f"idempotency-key: {key}\r\n" if key else ""
    head = f"POST {path} HTTP/1.1\r\nhost: proxy\r\n{keyed}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


_STREAM = b"GET /stream HTTP/1.1\r\nhost: proxy\r\naccept: text/event-stream\r\n\r\n"


async def _ask(proxy: ChaosProxy, request: bytes) -> bytes:
    """What a request is answered, head and all; empty when the line broke."""
    try:
        async with _line(proxy, request) as line:
            return await line.rest()
    except OSError:
        return b""


def _body(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def _unchunked(data: bytes) -> bytes:
    """As much of a chunked body as there is."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body += data[: int(size, 16)]
        data = data[int(size, 16) + 2 :]
    return body


async def test_on_a_good_line_all_comes_through() -> None:
    async with _proxy() as (server, proxy):
        large = b"x" * 300_000
        assert _body(await _ask(proxy, _post("/say", large))) == b"/say " + large
        (heard,) = server.heard
        assert b"connection: close\r\n" in heard
        assert b"host: proxy" not in heard  # but the server's own address
        server.feed(_FRAMES[0][:7], _FRAMES[0][7:] + _FRAMES[1], b"")
        answer = await _ask(proxy, _STREAM)
        assert _unchunked(_body(answer)) == _FRAMES[0] + _FRAMES[1]
        assert answer.endswith(b"0\r\n\r\n")
        assert proxy.counts == {"exchange": 2}


async def test_a_socket_is_passed_both_ways_after_its_handshake() -> None:
    request = b"GET /socket HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    async with _proxy() as (server, proxy), _line(proxy, request) as line:
        await line.until(b"\r\n\r\n")
        line.writer.write(b"ping")
        await line.until(b"ping")
        assert b"connection: Upgrade\r\n" in server.heard[0]


async def test_the_server_sees_when_a_client_leaves() -> None:
    async with _proxy() as (server, proxy):
        async with _line(proxy, _STREAM) as line:
            server.feed(_FRAMES[0])
            await line.until(b"id: 1")
            assert not server.left.is_set()
        await server.left.wait()


_ALL = Faults(
    cut=0.2, half_frame=0.1, double=0.2, portal=0.1, bad_gateway=0.1, refuse=0.05, refuse_s=0.01
)


async def _harm(seed: int) -> dict[str, int]:
    async with _proxy(_ALL, seed=seed) as (_, proxy):
        while proxy.counts["exchange"] < 60:
            await _ask(proxy, _post("/say", b"hello", key="1"))
        return proxy.counts


async def test_the_same_seed_does_the_same_harm() -> None:
    first, again, other = [await _harm(seed) for seed in (1, 1, 2)]
    assert first == again
    assert first != other
    assert {"cut", "double", "portal", "bad_gateway", "refuse"} < {*first}


@given(
    seed=st.integers(),
    chances=st.lists(st.floats(0, 0.125), min_size=8, max_size=8),
    stream=st.booleans(),
    keyed=st.booleans(),
)
def test_an_exchange_meets_at_most_one_fault_that_fits_it(
    seed: int, chances: list[float], stream: bool, keyed: bool
) -> None:
    names = Faults.__struct_fields__[:8]
    named: dict[str, Any] = dict(zip(names, chances, strict=True))
    faults = Faults(**named)
    fate = draw_fate(random.Random(seed), faults, stream=stream, keyed=keyed)
    assert fate.kind == "pass" or getattr(faults, fate.kind) > 0
    assert stream or fate.kind not in ("half_frame", "unauthorized")
    assert keyed or fate.kind != "double"
    assert 0 <= fate.at < faults.reach
    assert fate.place == "answer" or fate.kind == "cut"


@pytest.mark.parametrize(
    "wrong", [{"cut": -0.1}, {"delay": 1.5}, {"cut": 0.6, "portal": 0.6}], ids=str
)
def test_chances_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="chances that are none"):
        Faults(**wrong)


@pytest.mark.parametrize("target", ["127.0.0.1:4747", "ftp://host", "http://"])
def test_a_target_that_is_no_address_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="is no server address"):
        ChaosProxy(target)


async def test_a_cut_comes_before_within_or_after_what_the_server_has_done() -> None:
    async with _proxy(Faults(cut=1.0, reach=40)) as (server, proxy):
        whole = _post("/say", b"hello")
        answers = [await _ask(proxy, whole) for _ in range(60)]
        assert all(not answer.endswith(b"/say hello") for answer in answers)
        assert any(answer for answer in answers)  # a part of it came
        assert 0 < len(server.heard) < 60  # and some of it was done for nobody
        assert proxy.counts["cut"] == 60


@pytest.mark.parametrize("reset", [True, False])
async def test_what_is_open_is_cut_by_hand(reset: bool) -> None:
    async with _proxy() as (server, proxy), _line(proxy, _STREAM) as line:
        server.feed(_FRAMES[0])
        await line.until(b"id: 1")
        assert proxy.cut(reset=reset) == 1
        if reset:
            with pytest.raises(ConnectionResetError):
                await line.rest()
        else:
            assert await line.rest() == b""  # without the chunk that ends a body
        assert _body(await _ask(proxy, _post("/say"))) == b"/say "


async def test_a_request_with_a_key_comes_twice_and_is_answered_once() -> None:
    async with _proxy(Faults(double=1.0)) as (server, proxy):
        assert _body(await _ask(proxy, _post("/say", b"hello", key="k"))) == b"/say hello"
        assert len(server.heard) == 2
        assert server.heard[0] == server.heard[1]
        assert _body(await _ask(proxy, _post("/say", b"hello"))) == b"/say hello"
        assert len(server.heard) == 3  # it may count twice, so it comes once
        assert proxy.counts["double"] == 1


async def test_frames_come_twice_one_after_the_other() -> None:
    async with _proxy(Faults(double_frame=1.0)) as (server, proxy):
        server.feed(_FRAMES[0] + _FRAMES[1][:5], _FRAMES[1][5:], b": alive\n\n", b"")
        twice = _FRAMES[0] * 2 + _FRAMES[1] * 2 + b": alive\n\n" * 2
        assert _unchunked(_body(await _ask(proxy, _STREAM))) == twice


async def test_a_stream_ends_in_the_middle_of_a_frame_in_every_way() -> None:
    async with _proxy(Faults(half_frame=1.0)) as (server, proxy):
        ends: set[str] = set()
        for _ in range(30):
            server.feed(*_FRAMES * 32)
            try:
                async with _line(proxy, _STREAM) as line:
                    data = await line.rest()
            except ConnectionResetError:
                ends.add("rst")
                continue
            finally:
                while not server.more.empty():
                    server.more.get_nowait()
            ends.add("clean" if data.endswith(b"0\r\n\r\n") else "fin")
            assert not _unchunked(_body(data)).endswith(b"\n\n")
        assert ends == {"clean", "fin", "rst"}


@pytest.mark.parametrize("contract", [True, False])
async def test_a_stream_is_cut_and_the_next_ones_are_answered_with_401(contract: bool) -> None:
    async with _proxy() as (server, proxy), _line(proxy, _STREAM) as line:
        server.feed(_FRAMES[0])
        await line.until(b"id: 1")
        proxy.unauthorized(2, contract=contract)
        with pytest.raises(ConnectionResetError):
            await line.rest()
        assert _body(await _ask(proxy, _post("/say"))) == b"/say "  # a request is not denied
        for _ in range(2):
            answer = await _ask(proxy, _STREAM)
            assert answer.startswith(b"HTTP/1.1 401 ")
            assert (CONTRACT_HEADER.encode() in answer) == contract
        server.feed(b"")
        assert (await _ask(proxy, _STREAM)).startswith(b"HTTP/1.1 200 ")
        assert proxy.counts["denied"] == 2


async def test_the_plan_denies_the_stream_after_one_that_it_cut() -> None:
    async with _proxy(Faults(unauthorized=1.0, reach=32)) as (server, proxy):
        server.feed(b"")
        assert b"id: 1" not in await _ask(proxy, _STREAM)
        assert (await _ask(proxy, _STREAM)).startswith(b"HTTP/1.1 401 ")
        assert proxy.counts["unauthorized"] == proxy.counts["denied"] == 1


async def test_a_portal_and_a_bad_gateway_answer_until_it_heals() -> None:
    async with _proxy() as (server, proxy):
        proxy.portal()
        assert b"Sign in to use this network" in await _ask(proxy, _post("/say", b"x" * 200_000))
        proxy.bad_gateway()
        assert (await _ask(proxy, _STREAM)).startswith(b"HTTP/1.1 502 ")
        assert server.heard == []
        proxy.heal()
        assert _body(await _ask(proxy, _post("/say"))) == b"/say "


async def test_in_a_black_hole_nothing_comes_and_afterwards_it_goes_on() -> None:
    async with _proxy() as (server, proxy), _line(proxy, _STREAM) as line:
        server.feed(_FRAMES[0])
        await line.until(b"id: 1")
        proxy.black_hole()
        server.feed(_FRAMES[1])
        async with _line(proxy, _post("/say", b"later")) as other:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await line.reader.read(1)
            proxy.heal()
            await line.until(b"id: 2")
            await other.until(b"/say later")


async def test_a_black_hole_of_the_plan_ends_with_a_reset() -> None:
    async with _proxy(Faults(black_hole=1.0, hole_s=0.01)) as (server, proxy):
        async with _line(proxy, _post("/say")) as line:
            with pytest.raises(ConnectionResetError):
                await line.rest()
        assert server.heard == []


async def test_connections_are_refused_until_it_heals_at_the_same_address() -> None:
    async with _proxy() as (server, proxy):
        url = proxy.url
        async with _line(proxy, _STREAM) as line:
            server.feed(_FRAMES[0])
            await line.until(b"id: 1")
            proxy.refuse()
            with pytest.raises(ConnectionRefusedError):
                async with _line(proxy, _post("/say")):
                    pass
            server.feed(_FRAMES[1])
            await line.until(b"id: 2")  # what is open stays open
        proxy.heal()
        assert proxy.url == url
        assert _body(await _ask(proxy, _post("/say"))) == b"/say "


async def test_the_plan_refuses_connections_for_a_while() -> None:
    async with _proxy(Faults(refuse=1.0, refuse_s=0.05)) as (_, proxy):
        assert await _ask(proxy, _post("/say")) == b""
        with pytest.raises(ConnectionRefusedError):
            async with _line(proxy, _post("/say")):
                pass
        proxy.faults = Faults()
        while not (answer := await _ask(proxy, _post("/say"))):
            pass
        assert _body(answer) == b"/say "


async def test_pieces_come_late_but_all_of_them() -> None:
    async with _proxy(Faults(delay=1.0, delay_s=0.01)) as (server, proxy):
        server.feed(*_FRAMES, b"")
        assert _unchunked(_body(await _ask(proxy, _STREAM))) == b"".join(_FRAMES)
        assert proxy.counts["delay"] > len(_FRAMES)


async def test_a_server_that_is_gone_is_a_bad_gateway() -> None:
    async with _proxy() as (_, proxy), ChaosProxy(proxy.url) as front:
        proxy.refuse()
        assert (await _ask(front, _post("/say", b"hello"))).startswith(b"HTTP/1.1 502 ")
        front.faults = Faults(double=1.0)
        answer = await _ask(front, _post("/say", b"hello", key="k"))
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert front.counts["unreached"] == 2


async def test_what_is_no_http_ends_the_connection() -> None:
    async with _proxy() as (server, proxy):
        for noise in (b"no head\r\nat all\r\n\r\n", b"x" * 200_000, b"\r\n\r\n"):
            await _ask(proxy, noise)
        assert server.heard in ([], server.heard[:1])
        assert _body(await _ask(proxy, _post("/say"))) == b"/say "


async def test_there_is_a_bound_to_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towline_client.testing.chaos.proxy.MAX_EXCHANGES", 1)
    async with _proxy() as (server, proxy), _line(proxy, _STREAM) as line:
        server.feed(_FRAMES[0])
        await line.until(b"id: 1")
        assert await _ask(proxy, _post("/say")) == b""
        assert proxy.counts["overflow"] == 1


def test_a_frame_without_end_is_passed_in_parts() -> None:
    frames = Frames()
    passed = b"".join(b"".join(frames.feed(b"x" * 1024 * 1024)) for _ in range(9))
    assert len(passed) + len(frames.rest) == 9 * 1024 * 1024
    assert len(frames.rest) <= 4 * 1024 * 1024


async def test_at_the_end_nothing_is_left() -> None:
    tasks, files = asyncio.all_tasks(), _open_files()
    async with _proxy() as (server, proxy), _line(proxy, _STREAM) as held:
        server.feed(_FRAMES[0])
        await held.until(b"id: 1")
        proxy.black_hole()
        async with _line(proxy, _post("/say")):
            pass
    await asyncio.sleep(0)  # what was closed is told so
    assert asyncio.all_tasks() <= tasks
    assert _open_files() <= files


def _open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_a_plan_can_be_read_back_from_json() -> None:
    faults = Faults(cut=0.5, delay=0.25)
    assert msgspec.json.decode(msgspec.json.encode(faults), type=Faults) == faults

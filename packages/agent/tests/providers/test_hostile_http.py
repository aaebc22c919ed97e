"""Peers that keep a line warm and say nothing, odd proxies, and redirects that seem answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from aiohttp.http_exceptions import TransferEncodingError

from towline_agent.providers.base import Request, StepAnswer, StepFailed
from towline_agent.providers.http import HttpTransport
from towline_agent.providers.http_session import HARM, failure, watched
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed
from towline_protocol import Message, SseEvent, Text, Usage

Factory = Callable[..., AbstractAsyncContextManager[Any]]
ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
BEAT_S = 0.05
QUIET_S = 0.3
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


async def exchange(made: HttpTransport, call: HttpCall) -> tuple[HttpAnswer, list[bytes]]:
    told: list[bytes] = []

    def on_event(event: SseEvent) -> bool:
        told.append(event.data)
        return event.data == b"[DONE]"

    return await made.sse(call, on_event), told


async def drip(connection: Any, pieces: Iterable[bytes]) -> None:
    """Send a piece each beat until the other side hangs up."""
    loop = asyncio.get_running_loop()
    left = iter(pieces)

    def beat() -> None:
        if not connection.writer.is_closing():
            connection.writer.write(next(left))
            loop.call_later(BEAT_S, beat)

    beat()
    await connection.until_lost()
    connection.hang_up()


def chunked(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


def again(piece: bytes, first: bytes = b"") -> Iterable[bytes]:
    yield first + piece
    while True:
        yield piece


OK = b"HTTP/1.1 200 OK\r\n"
STREAM = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WARM = {
    "informational": (lambda: again(b"HTTP/1.1 103 Early Hints\r\n\r\n")),
    "header lines": (lambda: again(b"x", OK + b"x-long: ")),
    "blanks": (lambda: again(chunked(b"\n"), STREAM)),
    "comments": (lambda: again(chunked(b": warm\n\n"), STREAM)),
    "comments after an event": (lambda: again(chunked(b": w\n"), STREAM + chunked(b"data: a\n\n"))),
    "a document": (lambda: again(chunked(b" "), STREAM + chunked(b"{"))),
}


@pytest.mark.rules("A3.3", "A3.4", "A3.T11")
@pytest.mark.parametrize("kind", WARM)
async def test_a_line_that_is_only_kept_warm_is_given_up(kind: str, serving: Factory) -> None:
    async def reply(connection: Any) -> None:
        await drip(connection, WARM[kind]())

    made = HttpTransport(quiet_s=QUIET_S)
    async with serving(reply) as server:
        with pytest.raises(TransportFailed) as failed:
            await exchange(made, server.call())
        assert failed.value.cause == "no_answer"
        await server.connections[0].lost.wait()
    await made.aclose()


@pytest.mark.rules("A3.3", "A3.4")
async def test_blanks_before_an_unstreamed_answer_end_somewhere(serving: Factory) -> None:
    async def reply(connection: Any) -> None:
        await drip(connection, again(chunked(b"\n"), STREAM))

    made = HttpTransport(quiet_s=QUIET_S)
    async with serving(reply) as server:
        with pytest.raises(TransportFailed) as failed:
            await made.json(server.call())
        assert failed.value.cause == "no_answer"
    await made.aclose()


@pytest.mark.rules("A3.3")
async def test_events_that_come_slowly_are_an_answer(serving: Factory) -> None:
    async def reply(connection: Any) -> None:
        loop = asyncio.get_running_loop()
        await connection.begin()
        for beat in range(8):
            loop.call_later(beat * 0.1, connection.writer.write, chunked(b"data: a\n\n"))
        ended = asyncio.Event()
        loop.call_later(0.8, ended.set)
        await ended.wait()
        await connection.end()

    made = HttpTransport(quiet_s=QUIET_S)
    async with serving(reply) as server:
        assert (await exchange(made, server.call()))[1] == [b"a"] * 8
    await made.aclose()


async def test_blanks_without_end_are_cut_off_and_cost_no_time(
    serving: Factory, transport: Factory
) -> None:
    async def reply(connection: Any) -> None:
        await connection.begin()
        await connection.events(*[b"\n"] * 70_000)
        await connection.end()

    async with serving(reply) as server, transport() as made:
        began = time.monotonic()
        with pytest.raises(TransportFailed) as failed:
            await exchange(made, server.call())
        assert failed.value.cause == "too_large"
        assert time.monotonic() - began < 10


def finished(usage: bytes = b"") -> Callable[[Any], Awaitable[None]]:
    """A whole answer, and then a line that is kept warm."""

    async def reply(connection: Any) -> None:
        words = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
        await connection.begin()
        await connection.events(words)
        first = chunked(usage) if usage else b""
        await drip(connection, again(chunked(b": warm\n\n"), first))

    return reply


@pytest.mark.rules("A3.8", "A3.9", "A2.7")
async def test_an_answer_with_its_finish_reason_waits_for_no_end_mark(
    serving: Factory, transport: Factory
) -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n'
    async with serving(finished(usage)) as server, transport(drain_s=0.2) as made:
        asked = OpenAIChat("m", base_url=f"http://127.0.0.1:{server.port}", transport=made)
        async with asyncio.timeout(5):
            result = await asked.step(ASK, lambda _: None)
        assert isinstance(result, StepAnswer)
        assert (result.content, result.usage) == ((Text(text="Hi"),), Usage(input=3))


@pytest.mark.rules("A3.8")
async def test_an_end_that_is_taken_back_is_none(serving: Factory, transport: Factory) -> None:
    async def reply(connection: Any) -> None:
        loop = asyncio.get_running_loop()
        await connection.begin()
        await connection.events(b"data: [DONE]\n\n", b": warm\n\n", b"data: more\n\n")
        late = asyncio.Event()
        loop.call_later(0.5, late.set)
        await late.wait()
        await connection.events(b"data: last\n\n")
        await connection.end()

    async with serving(reply) as server, transport(drain_s=0.2) as made:
        _, told = await exchange(made, server.call())
        assert told == [b"[DONE]", b"more", b"last"]


@pytest.mark.rules("A3.T1", "A2.20")
@pytest.mark.parametrize("status", [b"301 Moved", b"304 Same", b"300 Many", b"226 IM Used"])
async def test_only_a_success_is_an_answer(
    status: bytes, serving: Factory, transport: Factory
) -> None:
    body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    head = b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"

    async def reply(connection: Any) -> None:
        await connection.send(head % len(body) + body)
        connection.hang_up()

    async with serving(reply) as server, transport() as made:
        asked = OpenAIChat("m", base_url=f"http://127.0.0.1:{server.port}", transport=made)
        pieces: list[Any] = []
        result = await asked.step(ASK, pieces.append)
        if status.startswith(b"2"):
            assert isinstance(result, StepAnswer)
        else:
            assert isinstance(result, StepFailed)
            assert (pieces, result.content) == ([], ())


def set_proxy(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("http_proxy", value)


async def answer(connection: Any) -> None:
    await connection.begin()
    await connection.events(b"data: hi\n\n", b"data: [DONE]\n\n")
    await connection.end()


@pytest.mark.rules("A3.2")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
async def test_this_machine_is_asked_without_a_proxy(
    host: str, monkeypatch: pytest.MonkeyPatch, serving: Factory, transport: Factory
) -> None:
    set_proxy(monkeypatch, "http://127.0.0.1:9")
    async with serving(answer) as server, transport() as made:
        url = f"http://{host}:{server.port}/v1"
        assert (await exchange(made, HttpCall(url=url, body=b"{}")))[1] == [b"hi", b"[DONE]"]


@pytest.mark.rules("A3.2")
async def test_a_proxy_without_a_scheme_is_an_http_proxy(
    monkeypatch: pytest.MonkeyPatch, serving: Factory, transport: Factory
) -> None:
    async with serving(answer) as proxy, transport() as made:
        set_proxy(monkeypatch, f"127.0.0.1:{proxy.port}")
        await exchange(made, HttpCall(url="http://api.example.test/v1", body=b"{}"))
        (head, _) = proxy.connections[0].requests[0]
        assert head.startswith(b"POST http://api.example.test/v1 ")


@pytest.mark.rules("A3.4", "A3.9")
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("streams", [True, False])
async def test_a_garbled_chunk_ends_the_reading_with_its_connection(
    serving: Factory, transport: Factory, *, streams: bool, apart: bool
) -> None:
    """aiohttp closes the connection and tells no reader."""
    asked = asyncio.Event()

    async def reply(connection: Any) -> None:
        begun = chunked(b"data: a\n\n") if streams else chunked(b'{"a":')
        garbled = b"Internal Server Error\r\n"
        connection.writer.write(STREAM + begun + (b"" if apart else garbled))
        if apart:
            await connection.writer.drain()
            await asked.wait()
            connection.writer.write(garbled)
        connection.hang_up()

    def on_event(_: SseEvent) -> bool:
        asked.set()
        return False

    async with serving(reply) as server, transport() as made:
        asyncio.get_running_loop().call_later(0.2, asked.set)
        call = server.call(idle_s=600.0)
        async with asyncio.timeout(20):
            with pytest.raises(TransportFailed) as failed:
                await (made.sse(call, on_event) if streams else made.json(call))
        assert failed.value.cause in {"cut", "lost", "malformed"}


@pytest.mark.rules("A3.4")
async def test_a_garbled_chunk_of_an_error_ends_it_too(
    serving: Factory, transport: Factory
) -> None:
    async def reply(connection: Any) -> None:
        head = b"HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.writer.write(head + chunked(b"It "))
        read = asyncio.Event()
        asyncio.get_running_loop().call_later(0.2, read.set)
        await read.wait()
        connection.writer.write(b"Internal Server Error\r\n")
        connection.hang_up()

    async with serving(reply) as server, transport() as made:
        async with asyncio.timeout(5):  # it would wait 10 s for the rest
            answered = await made.json(server.call(idle_s=600.0))
        assert answered.status == 500


def test_a_parser_in_python_fails_in_the_same_words() -> None:
    """aiohttp without its extensions raises what is no error of its client."""
    error = TransferEncodingError("zzzz")
    assert isinstance(error, HARM)
    assert failure(error).cause == "malformed"


async def test_a_kept_connection_carries_no_watch_of_earlier_answers(
    serving: Factory, transport: Factory
) -> None:
    async def reply(connection: Any) -> None:
        await connection.begin()
        late = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, late.set)
        await late.wait()
        await connection.events(b"data: [DONE]\n\n")
        await connection.end()

    before = set(watched)
    async with serving(reply) as server, transport() as made:
        for _ in range(5):
            await exchange(made, server.call())
        (closed,) = set(watched) - before
        assert len(getattr(closed, "_callbacks", ())) == 1  # the one that looks at its end


@pytest.mark.rules("A3.2", "A3.T11", "A1.24", "A3.21")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("socks5://127.0.0.1:1080", "SOCKS"),
        ("ftp://127.0.0.1:1", "http://HOST:PORT"),
        ("http://", "http://HOST:PORT"),
        ("http://me:secret@[::1", "http://HOST:PORT"),
        ("http://host:99999", "http://HOST:PORT"),
        ("http://ho st:1", "http://HOST:PORT"),
    ],
)
async def test_a_proxy_setting_that_is_unusable_is_named(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch, transport: Factory
) -> None:
    set_proxy(monkeypatch, value)
    async with transport() as made:
        asked = OpenAIChat("m", base_url="http://api.example.test", transport=made, allow_http=True)
        result = await asked.step(ASK, lambda _: None)
        assert isinstance(result, StepFailed)
        assert result.error.reason == "proxy"
        assert "HTTP_PROXY" in result.error.message
        assert said in result.error.message
        assert "secret" not in result.error.message


@pytest.mark.rules("A1.24", "A3.T11")
@pytest.mark.parametrize(
    "host", ["a" * 70 + ".example", "a..example", "\N{SNOWMAN}" * 70, "xn--\ud800"]
)
async def test_a_host_that_no_name_server_could_know_is_a_wrong_address(
    host: str, monkeypatch: pytest.MonkeyPatch, transport: Factory
) -> None:
    set_proxy(monkeypatch, "")
    async with transport() as made:
        asked = OpenAIChat("m", base_url=f"https://{host}/v1", transport=made)
        result = await asked.step(ASK, lambda _: None)
        assert isinstance(result, StepFailed)
        assert result.error.reason in ("address", "dns")

"""The transport on aiohttp, against a server in this process that counts its connections."""

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from towline_agent.providers.http import HttpTransport, shared_transport
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed
from towline_protocol import SseEvent

DONE = b"data: [DONE]\n\n"
Factory = Callable[..., AbstractAsyncContextManager[Any]]


async def ok(connection: Any) -> None:
    await connection.begin()
    await connection.events(b"data: hi\n\n", DONE)
    await connection.end()


async def hang_up(connection: Any) -> None:
    connection.hang_up()


async def collect(
    made: HttpTransport, call: HttpCall, *, done: bytes = b"[DONE]"
) -> tuple[HttpAnswer, list[bytes]]:
    told: list[bytes] = []

    def on_event(event: SseEvent) -> bool:
        told.append(event.data)
        return event.data == done

    return await made.sse(call, on_event), told


@pytest.mark.rules("A3.1", "A3.8", "D11")
async def test_one_connection_carries_request_after_request(
    serving: Factory, transport: Factory
) -> None:
    async with serving(ok) as server, transport() as made:
        for _ in range(5):
            answer, told = await collect(made, server.call())
            assert (answer.status, answer.body) == (200, b"")
            assert told == [b"hi", b"[DONE]"]
        assert len(server.connections) == 1
        assert server.requests == 5


@pytest.mark.rules("A3.8", "A2.18")
async def test_a_stream_is_read_to_its_end_though_more_comes_after_done(
    serving: Factory, transport: Factory
) -> None:
    done = asyncio.Event()
    told: list[bytes] = []

    async def late(connection: Any) -> None:
        await connection.begin()
        await connection.events(DONE)
        await done.wait()
        await connection.events(b"data: more\n\n", b": tail\n\n")
        await connection.end()

    def on_event(event: SseEvent) -> bool:
        told.append(event.data)
        done.set()
        return event.data == b"[DONE]"

    async with serving(late) as server, transport() as made:
        for _ in range(2):
            done.clear()
            await made.sse(server.call(), on_event)
        assert told == [b"[DONE]", b"more"] * 2
        assert len(server.connections) == 1


@pytest.mark.rules("A3.8")
async def test_a_stream_that_never_ends_after_done_costs_its_connection_and_no_time(
    serving: Factory, transport: Factory
) -> None:
    async def endless(connection: Any) -> None:
        await connection.begin()
        await connection.events(DONE)
        await connection.until_lost()

    async with serving(endless) as server, transport(drain_s=0.05) as made:
        for _ in range(2):
            _, told = await collect(made, server.call())
            assert told == [b"[DONE]"]
        assert len(server.connections) == 2
        await server.connections[0].lost.wait()


@pytest.mark.rules("A3.9")
async def test_a_connection_that_breaks_after_done_does_not_spoil_the_answer(
    serving: Factory, transport: Factory
) -> None:
    async def cut(connection: Any) -> None:
        await connection.begin()
        await connection.events(b"data: hi\n\n", DONE)
        connection.hang_up()

    async with serving(cut) as server, transport() as made:
        _, told = await collect(made, server.call())
        assert told == [b"hi", b"[DONE]"]


@pytest.mark.rules("A3.2")
async def test_a_hundred_requests_run_at_once(serving: Factory, transport: Factory) -> None:
    together = asyncio.Event()
    waiting = 0

    async def all_at_once(connection: Any) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 100:
            together.set()
        await together.wait()
        await ok(connection)

    async with serving(all_at_once) as server, transport() as made:
        async with asyncio.TaskGroup() as group:
            for _ in range(100):
                group.create_task(collect(made, server.call()))
        assert len(server.connections) == 100


@pytest.mark.rules("A3.7", "D11")
async def test_a_post_that_fails_on_a_reused_connection_goes_again_at_once(
    serving: Factory, transport: Factory
) -> None:
    async with serving(ok, hang_up, ok) as server, transport() as made:
        await collect(made, server.call())
        _, told = await collect(made, server.call())
        assert told == [b"hi", b"[DONE]"]
        assert len(server.connections) == 2
        bodies = [body for connection in server.connections for _, body in connection.requests]
        assert bodies == [b'{"a":1}'] * 3


@pytest.mark.rules("A3.7")
async def test_a_post_that_fails_on_a_new_connection_is_not_repeated(
    serving: Factory, transport: Factory
) -> None:
    async with serving(hang_up) as server, transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await collect(made, server.call())
        assert failed.value.cause == "lost"
        assert server.requests == 1


@pytest.mark.rules("A3.7")
async def test_nothing_is_repeated_once_a_byte_of_the_answer_has_come(
    serving: Factory, transport: Factory
) -> None:
    async def begin(connection: Any) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-")
        connection.hang_up()

    async with serving(ok, begin, ok) as server, transport() as made:
        await collect(made, server.call())
        with pytest.raises(TransportFailed):
            await collect(made, server.call())
        assert server.requests == 2


@pytest.mark.rules("A3.3", "A3.4", "S32")
async def test_silence_fails_as_idle_before_and_inside_a_stream(
    serving: Factory, transport: Factory
) -> None:
    async def silent(connection: Any) -> None:
        await connection.until_lost()

    async def stalls(connection: Any) -> None:
        await connection.begin()
        await connection.events(b"data: hi\n\n")
        await connection.until_lost()

    for reply in (silent, stalls):
        async with serving(reply) as server, transport() as made:
            with pytest.raises(TransportFailed) as failed:
                await collect(made, server.call(idle_s=0.1))
            assert failed.value.cause == "idle"
            await server.connections[0].lost.wait()


@pytest.mark.rules("A3.3")
async def test_a_long_stream_has_no_limit_as_long_as_bytes_come(
    serving: Factory, transport: Factory
) -> None:
    async def slow(connection: Any) -> None:
        loop = asyncio.get_running_loop()
        for beat in range(8):  # each well within the limit, all together well over it
            loop.call_later(beat * 0.1, connection.writer.write, b"8\r\n: warm\n\n\r\n")
        ended = asyncio.Event()
        loop.call_later(0.8, ended.set)
        await connection.begin()
        await ended.wait()
        await connection.events(DONE)
        await connection.end()

    async with serving(slow) as server, transport() as made:
        _, told = await collect(made, server.call(idle_s=0.5))
        assert told == [b"[DONE]"]


@pytest.mark.rules("A1.25", "A3.11")
@pytest.mark.parametrize("headers_first", [True, False])
async def test_a_cancel_closes_the_connection_at_once(
    headers_first: bool, serving: Factory, transport: Factory
) -> None:
    started = asyncio.Event()

    async def hold(connection: Any) -> None:
        if headers_first:
            await connection.begin()
            await connection.events(b"data: hi\n\n")
        started.set()
        await connection.until_lost()

    async with serving(hold) as server, transport() as made:
        first = asyncio.Event()

        def on_event(_: SseEvent) -> bool:
            first.set()
            return False

        task = asyncio.create_task(made.sse(server.call(), on_event))
        await started.wait()
        if headers_first:
            await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(2):
            await server.connections[0].lost.wait()


@pytest.mark.rules("A3.1")
async def test_closing_is_idempotent_and_spares_a_request_under_way(
    serving: Factory, transport: Factory
) -> None:
    go_on, arrived = asyncio.Event(), asyncio.Event()

    async def held(connection: Any) -> None:
        arrived.set()
        await go_on.wait()
        await ok(connection)

    async with serving(held) as server, transport() as made:
        task = asyncio.create_task(collect(made, server.call()))
        await arrived.wait()
        await made.aclose()
        await made.aclose()
        go_on.set()
        assert (await task)[1] == [b"hi", b"[DONE]"]
        assert (await collect(made, server.call()))[1] == [b"hi", b"[DONE]"]
        assert len(server.connections) == 2


@pytest.mark.rules("A3.1")
def test_each_event_loop_gets_a_session_of_its_own_and_closes_it(serving: Factory) -> None:
    made = HttpTransport()

    async def once() -> int:
        async with serving(ok) as server:
            await collect(made, server.call())
            await collect(made, server.call())
            return len(server.connections)

    assert [asyncio.run(once()) for _ in range(3)] == [1, 1, 1]
    made.close_all()


@pytest.mark.rules("A3.1")
def test_what_is_left_open_is_closed_from_outside(serving: Factory) -> None:
    made = HttpTransport()
    loop = asyncio.new_event_loop()

    async def once() -> Any:
        context = serving(ok)
        server = await context.__aenter__()
        await collect(made, server.call())
        return context, server.connections[0]

    context, connection = loop.run_until_complete(once())
    made.close_all()  # the loop stands still
    loop.run_until_complete(connection.lost.wait())
    loop.run_until_complete(context.__aexit__(None, None, None))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    context, connection = asyncio.run_coroutine_threadsafe(once(), loop).result(20)
    made.close_all()  # the loop runs in another thread
    asyncio.run_coroutine_threadsafe(connection.lost.wait(), loop).result(20)
    asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    assert connection.lost.is_set()
    loop.close()


@pytest.mark.rules("A3.1")
@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")
async def test_what_a_closed_loop_left_open_is_closed_by_the_next_one(serving: Factory) -> None:
    """A program that makes a loop for each run, and closes it, shuts no generators down."""
    made = HttpTransport()

    def ask(call: HttpCall) -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(collect(made, call))
        loop.close()

    async with serving(ok) as server:
        here = asyncio.get_running_loop()
        await here.run_in_executor(None, ask, server.call())
        await here.run_in_executor(None, ask, server.call())
        first, second = server.connections
        await first.lost.wait()
        assert not second.lost.is_set()
        await here.run_in_executor(None, made.close_all)
        await second.lost.wait()
    gc.collect()  # what asyncio says of it is said here


_SCRIPT = """
import asyncio, sys, threading
from towline_agent import OpenAIChat, Request
from towline_protocol import Message, Text

async def main():
    provider = OpenAIChat("m", base_url=sys.argv[1])
    request = Request(model="m", messages=(Message("user", (Text(text="hi"),)),))
    result = await provider.step(request, lambda piece: None)
    assert result.content, result

if sys.argv[2] == "run":
    asyncio.run(main())
else:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(main(), loop).result()
"""


@pytest.mark.rules("A3.1")
@pytest.mark.parametrize("how", ["run", "thread"])
async def test_a_program_that_closes_nothing_ends_in_silence(serving: Factory, how: str) -> None:
    chunk = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'

    async def reply(connection: Any) -> None:
        await connection.begin()
        await connection.events(chunk, DONE)
        await connection.end()

    async with serving(reply) as server:
        url = f"http://127.0.0.1:{server.port}"
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-c", _SCRIPT, url, how,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await program.communicate()
        assert (program.returncode, said) == (0, b"")


@pytest.mark.rules("A3.3", "A3.6", "D11")
def test_the_usual_limits() -> None:
    usual = inspect.signature(HttpTransport).parameters
    assert usual["connect_s"].default == 30.0
    assert usual["keepalive_s"].default == 10.0


@pytest.mark.rules("A3.6")
async def test_an_idle_connection_is_given_up_after_the_keep_alive(serving: Factory) -> None:
    async with serving(ok) as server:
        made = HttpTransport(keepalive_s=0.05)
        await collect(made, server.call())
        await server.connections[0].lost.wait()
        await collect(made, server.call())
        assert len(server.connections) == 2
        await made.aclose()


@pytest.mark.rules("A3.3", "A3.T11")
async def test_a_connection_that_does_not_come_about_in_time_is_given_up(serving: Factory) -> None:
    async with serving(ok) as server:
        made = HttpTransport(connect_s=0.1)
        url = server.call().url.replace("http:", "https:")  # nobody answers the handshake
        with pytest.raises(TransportFailed) as failed:
            await made.json(HttpCall(url=url, body=b"{}"))
        assert failed.value.cause == "connect_timeout"
        await made.aclose()


@pytest.mark.rules("A3.1")
def test_the_process_has_one_transport_for_each_ca_file() -> None:
    assert shared_transport() is shared_transport()
    assert shared_transport("/other.pem") is not shared_transport()


def test_importing_the_library_imports_no_aiohttp() -> None:
    code = "import sys, towline_agent; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_call_shows_neither_headers_nor_body() -> None:
    call = HttpCall(url="https://x", headers={"authorization": "Bearer sk-1"}, body=b"secret words")
    assert repr(call) == "HttpCall('POST', 'https://x', 12 bytes)"

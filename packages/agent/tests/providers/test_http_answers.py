"""What the transport on aiohttp makes of answers: framing, documents, failures, credentials."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from towline_agent.providers.http import HttpTransport
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed
from towline_protocol import SseEvent

DONE = b"data: [DONE]\n\n"
CA_FILE = Path(__file__).with_name("tls") / "cert.pem"
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


@pytest.mark.rules("A3.5")
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
async def test_a_line_over_half_a_mebibyte_is_read_whole(
    line_end: bytes, serving: Factory, transport: Factory
) -> None:
    big = b"x" * (600 * 1024)

    async def long_line(connection: Any) -> None:
        body = b"data: " + big + line_end * 2 + b"data: [DONE]" + line_end * 2
        pieces = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
        await connection.begin()
        await connection.events(*pieces)
        await connection.end()

    async with serving(long_line) as server, transport() as made:
        _, told = await collect(made, server.call())
        assert told == [big, b"[DONE]"]


@pytest.mark.rules("A2.18")
async def test_a_last_event_without_its_blank_line_is_told(
    serving: Factory, transport: Factory
) -> None:
    async def bare(connection: Any) -> None:
        await connection.begin()
        await connection.events(b"data: hi\n\ndata: [DONE]")
        await connection.end()

    async with serving(bare) as server, transport() as made:
        assert (await collect(made, server.call()))[1] == [b"hi", b"[DONE]"]


@pytest.mark.rules("R03")
async def test_a_stream_that_ends_inside_a_character_is_cut_not_shortened(
    serving: Factory, transport: Factory
) -> None:
    async def half(connection: Any) -> None:
        await connection.begin()
        await connection.events(b"data: \xe4\xbd")
        await connection.end()

    async with serving(half) as server, transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await collect(made, server.call())
        assert failed.value.cause == "cut"


@pytest.mark.rules("A3.9", "R11")
async def test_a_body_that_ends_too_early_is_cut_after_its_events_were_told(
    serving: Factory, transport: Factory
) -> None:
    async def cut(connection: Any) -> None:
        await connection.begin()
        await connection.events(b"data: hi\n\n")
        connection.hang_up()

    async with serving(cut) as server, transport() as made:
        told: list[bytes] = []

        def on_event(event: SseEvent) -> bool:
            told.append(event.data)
            return False

        with pytest.raises(TransportFailed) as failed:
            await made.sse(server.call(), on_event)
        assert failed.value.cause == "cut"
        assert told == [b"hi"]


def document(status: bytes, body: bytes, kind: bytes = b"application/json") -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nRetry-After: 7\r\nContent-Length: %d\r\n\r\n"
    return head % (status, kind, len(body)) + body


@pytest.mark.rules("A2.20", "A2.4")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (b"429 Too Many", b'{"error":"slow"}', b"application/json"),
        (b"500 Oops", b"data: not a stream\n\n", b"text/event-stream"),
        (b"200 OK", b'\n \n {"error":"slow"}', b"text/event-stream"),
        (b"200 OK", b"<html></html>", b"text/html"),
    ],
)
async def test_a_document_in_place_of_a_stream_comes_back_whole(
    status: bytes, body: bytes, kind: bytes, serving: Factory, transport: Factory
) -> None:
    async def reply(connection: Any) -> None:
        await connection.send(document(status, body, kind))

    async with serving(reply) as server, transport() as made:
        for _ in range(2):
            answer, told = await collect(made, server.call())
            assert (answer.status, answer.body) == (int(status[:3]), body)
            assert answer.headers["retry-after"] == "7"
            assert told == []
            assert (await made.json(server.call())).body == body
        assert len(server.connections) == 1


@pytest.mark.rules("A3.9")
@pytest.mark.parametrize("body", [b"", b"{"])
async def test_a_document_that_ends_too_early_is_cut(
    serving: Factory, transport: Factory, body: bytes
) -> None:
    async def broken(connection: Any) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + body)
        connection.hang_up()

    async with serving(broken) as server, transport() as made:
        for ask in (made.json(server.call()), collect(made, server.call())):
            with pytest.raises(TransportFailed) as failed:
                await ask
            assert failed.value.cause == "cut"


async def test_the_body_of_an_error_is_read_so_far_as_it_comes(
    serving: Factory, transport: Factory
) -> None:
    async def broken(connection: Any) -> None:
        await connection.send(b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nsorry")
        connection.hang_up()

    async with serving(broken) as server, transport() as made:
        answer = await made.json(server.call())
        assert (answer.status, answer.body) == (503, b"sorry")


HTTP = "towline_agent.providers.http"


async def test_an_endless_answer_is_cut_off_at_its_bound(
    serving: Factory, transport: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stream(connection: Any) -> None:
        await connection.begin()
        await connection.events(*[b"data: more\n\n"] * 100)
        await connection.end()

    async def blanks(connection: Any) -> None:
        await connection.begin()
        await connection.events(*[b" \n" * 100] * 20)
        await connection.end()

    async def long(connection: Any) -> None:
        await connection.send(document(b"200 OK", b"{" + b" " * 2000))

    monkeypatch.setattr(f"{HTTP}._MAX_STREAM", 500)
    monkeypatch.setattr(f"{HTTP}._MAX_DOCUMENT", 1000)
    monkeypatch.setattr(f"{HTTP}._MAX_BLANKS", 1000)
    for reply in (stream, blanks, long):
        async with serving(reply) as server, transport() as made:
            with pytest.raises(TransportFailed) as failed:
                await collect(made, server.call())
            assert failed.value.cause == "too_large", reply


async def test_an_event_beyond_all_measure_is_cut_off(serving: Factory, transport: Factory) -> None:
    async def huge(connection: Any) -> None:
        await connection.begin()
        await connection.events(b"data: ", *[b"x" * 1024 * 1024] * 9)
        await connection.end()

    async with serving(huge) as server, transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await collect(made, server.call())
        assert failed.value.cause == "too_large"


async def test_a_long_or_endless_error_body_is_read_so_far_as_it_helps(
    serving: Factory, transport: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def long(connection: Any) -> None:
        await connection.send(document(b"500 Oops", b"x" * 5000))

    async def endless(connection: Any) -> None:
        await connection.send(b"HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nsorry")
        await connection.until_lost()

    monkeypatch.setattr(f"{HTTP}._MAX_ERROR", 100)
    monkeypatch.setattr(f"{HTTP}._ERROR_BODY_S", 0.1)
    for reply, body in ((long, b"x" * 100), (endless, b"sorry")):
        async with serving(reply) as server, transport() as made:
            answer = await made.json(server.call())
            assert (answer.status, answer.body) == (500, body)


@pytest.mark.rules("A3.T11")
async def test_nobody_at_the_address_is_refused(serving: Factory, transport: Factory) -> None:
    async with serving(ok) as server:
        call = server.call()
    async with transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await made.json(call)
        assert failed.value.cause == "refused"


@pytest.mark.rules("A3.T11")
async def test_a_host_that_nobody_knows_is_named(
    monkeypatch: pytest.MonkeyPatch, transport: Factory
) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    async with transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await made.json(HttpCall(url="http://no-such-host.invalid/v1", method="GET"))
        assert failed.value.cause == "dns"


@pytest.mark.rules("A3.T11")
async def test_what_is_no_address_is_named(transport: Factory) -> None:
    async with transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await made.json(HttpCall(url="http://", method="GET"))
        assert failed.value.cause == "address"


async def test_what_is_no_http_is_malformed(serving: Factory, transport: Factory) -> None:
    async def shout(connection: Any) -> None:
        await connection.send(b"SSH-2.0-OpenSSH_9.2\r\n")
        connection.hang_up()

    async with serving(shout) as server, transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await made.json(server.call())
        assert failed.value.cause == "malformed"


@pytest.mark.rules("A2.65")
async def test_exactly_our_own_credential_is_sent_whatever_netrc_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serving: Factory, transport: Factory
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hush\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with serving(ok) as server, transport() as made:
        await collect(made, server.call())
        url = server.call().url
        keyed = HttpCall(url=url, headers={"authorization": "Bearer k"}, body=b"{}")
        await collect(made, keyed)
        (bare, _), (with_key, _) = server.connections[0].requests
        assert b"authorization" not in bare.lower()
        assert b"Authorization: Bearer k\r\n" in with_key or b"authorization: Bearer k" in with_key


@pytest.mark.rules("A3.2")
async def test_a_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, serving: Factory, transport: Factory
) -> None:
    async with serving(ok) as proxy, transport() as made:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        await collect(made, HttpCall(url="http://api.example.test/v1", body=b"{}"))
        (head, _) = proxy.connections[0].requests[0]
        assert head.startswith(b"POST http://api.example.test/v1 ")


async def test_a_redirect_is_an_answer_and_not_followed(
    serving: Factory, transport: Factory
) -> None:
    async def moved(connection: Any) -> None:
        await connection.send(
            b"HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
        )

    async with serving(moved) as server, transport() as made:
        assert (await made.json(server.call())).status == 301
        assert server.requests == 1


@pytest.mark.rules("A2.79", "A3.T11")
async def test_a_certificate_that_nobody_signed_is_named_and_an_extra_ca_trusts_it(
    serving: Factory, transport: Factory
) -> None:
    async with serving(ok, tls=True) as server:
        async with transport() as made:
            with pytest.raises(TransportFailed) as failed:
                await made.json(server.call())
            assert failed.value.cause == "certificate"
            assert "self-signed" in failed.value.detail
        async with transport(ca_file=str(CA_FILE)) as made:
            assert (await collect(made, server.call()))[1] == [b"hi", b"[DONE]"]


@pytest.mark.rules("A3.T11")
async def test_an_encrypted_request_to_a_plain_server_is_a_tls_failure(transport: Factory) -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener, transport() as made:
        with pytest.raises(TransportFailed) as failed:
            await made.json(HttpCall(url=f"https://127.0.0.1:{port}/v1", body=b"{}"))
    assert failed.value.cause == "tls"


@pytest.mark.rules("A2.79")
@pytest.mark.parametrize("ca_file", ["/nowhere/ca.pem", "/nowhere/\ud800.pem", "/nowhere/\0.pem"])
async def test_a_ca_file_that_cannot_be_read_is_named(ca_file: str) -> None:
    made = HttpTransport(ca_file=ca_file)
    with pytest.raises(TransportFailed) as failed:
        await made.json(HttpCall(url="https://127.0.0.1:9/v1"))
    assert failed.value.cause == "ca_file"
    assert repr(ca_file) in failed.value.detail

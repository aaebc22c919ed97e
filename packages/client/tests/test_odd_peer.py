"""Peers that answer what no server says, and programs that give a client what cannot be sent."""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from towline_client import (
    Client,
    ClientError,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    LinkPolicy,
)
from towline_client.testing import ScriptedServer, ScriptedTransport
from towline_client.transport import MAX_WAIT_S, Reply
from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION, Text, UsageError

_QUICK = LinkPolicy(first_ms=0, patience=1_000_000)
_HEAD = {CONTRACT_HEADER: CONTRACT_VERSION, "content-type": "application/problem+json"}


@asynccontextmanager
async def _answering(answer: bytes) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A server that says the same to every request: its address, and what it was asked."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with asyncio.timeout(10), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}", heads


def _is_nowhere(host: str) -> bool:
    return not host


def _success(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\n{CONTRACT_HEADER}: {CONTRACT_VERSION}\r\n"
    return f"{head}content-type: application/json\r\n\r\n".encode() + body


def _problem(more: bytes) -> Reply:
    body = b'{"title": "t", "status": 200, "detail": "No.", "code": "conflict", %s}' % more
    return Reply(status=409, headers=_HEAD, body=body)


@pytest.mark.rules("C2.2")
@pytest.mark.parametrize(
    "more",
    [
        b'"details": ' + b'{"a": ' * 5000 + b"1" + b"}" * 5001,
        b'"retry_after_s": 1e308',
        b'"retry_after_s": -1e308',
        b'"retry": 5',
    ],
    ids=["deep", "for ever", "before now", "wrong type"],
)
async def test_a_refusal_of_any_shape_is_a_refusal(more: bytes) -> None:
    server = ScriptedServer()
    transport = ScriptedTransport(server)
    async with asyncio.timeout(10), server, Client("", "t", transport=transport) as client:
        server.replies["me"] = deque([_problem(more)])
        with pytest.raises(CommandRejected) as caught:
            await client.me()
        assert caught.value.status == 409  # the one that the answer came under
        assert 0 <= (caught.value.retry_after_s or 0) <= MAX_WAIT_S
        server.replies["get_view"] = deque([_problem(more)])
        with pytest.raises(ClientError):
            await client.open("ses_1")


async def test_an_answer_without_an_end_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towline_client.http.MAX_ANSWER_BYTES", 1000)
    async with _answering(_success(b" " * 1001)) as (url, _), Client(url) as client:
        with pytest.raises(ContractUnavailable, match="larger than 1000 bytes"):
            await client.me()


async def test_a_password_of_the_netrc_file_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login joe password secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr("towline_client.http._is_loopback", _is_nowhere)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with _answering(_success(b"{}")) as (url, heads), Client(url, "mine") as client:
        with pytest.raises(ContractUnavailable):
            await client.me()
        with pytest.raises(ContractUnavailable):
            await client.health()
    assert [b"Bearer mine" in head for head in heads] == [True, False]
    assert not any(b"Basic" in head for head in heads)


@pytest.mark.parametrize("named", ["127.0.0.1:{}", "http://127.0.0.1:{}"])
async def test_a_proxy_of_the_environment_carries_what_goes_elsewhere(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with _answering(_success(b"{}")) as (url, heads):
        monkeypatch.setenv("http_proxy", named.format(url.rpartition(":")[2]))
        async with Client("http://far.example:8000", "mine") as client:
            with pytest.raises(ContractUnavailable):
                await client.me()
    assert heads[0].startswith(b"GET http://far.example:8000/")


async def test_a_proxy_of_another_kind_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", "socks5://joe:secret@127.0.0.1:9")
    async with asyncio.timeout(10), Client("http://far.example", "mine") as client:
        with pytest.raises(UsageError, match=r"'127\.0\.0\.1:9' as the proxy") as caught:
            await client.me()
    assert "secret" not in str(caught.value)


@pytest.mark.rules("C4.6")
@pytest.mark.parametrize("token", ["line\nbreak", "\ud800", "höh", b"bytes", 7])
async def test_a_credential_that_cannot_be_sent_is_told_without_it(token: object) -> None:
    async def credential() -> str | None:
        return token  # pyright: ignore[reportReturnType] - a program without types

    server = ScriptedServer()
    transport = ScriptedTransport(server)
    async with asyncio.timeout(10), server, Client("", credential, transport=transport) as client:
        with pytest.raises(UsageError, match="can't be sent") as caught:
            await client.me()
        assert str(token) not in str(caught.value)


@pytest.mark.rules("C4.6")
async def test_a_credential_that_never_comes_is_a_lost_connection() -> None:
    async def credential() -> str | None:
        await asyncio.Event().wait()
        return None

    transport = ScriptedTransport(ScriptedServer())
    async with asyncio.timeout(10), Client("", credential, transport=transport) as client:
        with pytest.raises(ConnectionLost, match="gave nothing in"):
            await client.me(timeout_s=0.01)


async def test_what_json_cannot_hold_is_the_programs_own_mistake() -> None:
    server = ScriptedServer()
    transport = ScriptedTransport(server)
    async with asyncio.timeout(10), server, Client("", "t", transport=transport) as client:
        session = await client.open()
        with pytest.raises(UsageError, match="can't be sent as JSON"):
            await session.prompt("half a character: \ud800")
        with pytest.raises(UsageError, match="can't be sent as JSON"):
            await session.prompt([Text(text=object())])  # pyright: ignore[reportArgumentType]
        assert session.view.outgoing == ()


async def test_an_open_that_is_cancelled_leaves_no_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, says nothing
        host, port = silent.getsockname()
        async with asyncio.timeout(10), Client(f"http://{host}:{port}", "t") as client:
            before = asyncio.all_tasks()
            opening = asyncio.create_task(client.open("ses_1"))
            taken, _ = await asyncio.get_running_loop().run_in_executor(None, silent.accept)
            opening.cancel()
            with taken, pytest.raises(asyncio.CancelledError):
                await opening
            assert asyncio.all_tasks() == before


async def test_a_client_that_is_closed_opens_nothing_any_more() -> None:
    server = ScriptedServer()
    async with asyncio.timeout(10), server:
        client = Client("", "t", transport=ScriptedTransport(server))
        info = server.add_session()
        await client.close()
        before = asyncio.all_tasks()
        with pytest.raises(UsageError, match="closed"):
            await client.open(info.id)
        assert asyncio.all_tasks() == before


@pytest.mark.parametrize("steps", range(1, 12))
async def test_a_close_that_is_cancelled_anywhere_ends_the_line_all_the_same(steps: int) -> None:
    server = ScriptedServer()
    async with asyncio.timeout(10), server:
        client = Client("", "t", transport=ScriptedTransport(server), policy=_QUICK)
        client.tool(name="locate")(lambda: None)
        before = asyncio.all_tasks()
        session = await client.open()
        closing = asyncio.create_task(client.close())
        for _ in range(steps):
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        async for _ in session.connection:
            pass
        left = asyncio.all_tasks() - before
        if left:
            await asyncio.wait(left)
        assert session.closed

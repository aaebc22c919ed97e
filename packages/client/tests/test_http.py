"""The HTTP transport against a small real server, faults of the network included."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
from aiohttp import web

from towline_client import (
    Client,
    ConnectionLost,
    ContractUnavailable,
    LinkPolicy,
    Unauthorized,
)
from towline_client.http import HttpTransport
from towline_client.testing import ScriptedServer, ScriptedTurn, refuse
from towline_client.transport import Call, Reply
from towline_protocol import (
    CONTRACT_HEADER,
    CONTRACT_VERSION,
    OPERATIONS,
    Envelope,
    Operation,
    TurnCompleted,
    UsageError,
)

_QUICK = LinkPolicy(first_ms=0, patience=1_000_000)


class _Front:
    """Speaks HTTP for a scripted server."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.half = False
        """Whether a cut comes in the middle of a frame."""
        self.page: Callable[[], web.Response] | None = None
        """What a proxy answers instead."""
        self.hang = asyncio.Event()
        """Requests wait for this; set from the start."""
        self.hang.set()
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        await self.hang.wait()
        if self.page is not None:
            return self.page()
        path = request.rel_url.raw_path.removeprefix("/under/a/path")
        call = Call(
            operation=_find(request.method, path),
            path=path,
            query=dict(request.query),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.read(),
        )
        allowed = call.headers.get("authorization") == "Bearer right"
        if not allowed and not call.operation.open:
            return _answer(refuse("unauthorized", "The token is not known; pair this device."))
        if not call.operation.stream:
            try:
                return _answer(self.server.answer(call))
            except ConnectionLost:
                assert request.transport is not None
                request.transport.abort()
                raise web.HTTPException from None
        return await self._stream(request, call)

    async def _stream(self, request: web.Request, call: Call) -> web.StreamResponse:
        frames = await self.server.follow(call)
        if isinstance(frames, Reply):
            return _answer(frames)
        response = web.StreamResponse(
            headers={CONTRACT_HEADER: CONTRACT_VERSION, "content-type": "text/event-stream"}
        )
        await response.prepare(request)
        try:
            async for frame in frames:
                await response.write(frame)
        except ConnectionLost:
            if self.half:
                await response.write(b'id: 999\ndata: {"seq": 99')
            assert request.transport is not None
            request.transport.abort()
        finally:
            await frames.aclose()
        return response


def _find(method: str, path: str) -> Operation:
    for operation in OPERATIONS.values():
        pattern = re.sub(r"\{\w+\}", "[^/]+", operation.path)
        if operation.method == method and re.fullmatch(pattern, path):
            return operation
    raise AssertionError((method, path))


def _answer(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, headers=dict(reply.headers), body=reply.body)


async def _talk(turn: ScriptedTurn, text: str) -> None:
    await turn.say("You ", "said: ", text)
    turn.end_call(turn.propose("now", "the clock", effect="read"), "09:05")
    await turn.say("It is ", "09:05.")


@asynccontextmanager
async def _front(server: ScriptedServer | None = None) -> AsyncGenerator[_Front]:
    async with asyncio.timeout(20), server or ScriptedServer(_talk) as scripted:
        front = _Front(scripted)
        await front.start()
        try:
            yield front
        finally:
            await front.stop()


@pytest.mark.parametrize("path", ["", "/", "/under/a/path"])
async def test_a_prompt_goes_there_and_its_answer_comes_back(path: str) -> None:
    async with _front() as front, Client(front.url + path, "right") as client:
        assert (await client.health()).status == "ok"
        session = await client.open()
        assert await session.ask("Grüße 🚢") == "It is 09:05."
        assert session.view == front.server.sessions[session.id].view
        assert "right" not in repr(front.server.calls)


@pytest.mark.rules("C4.2")
@pytest.mark.parametrize("half", [False, True], ids=["between frames", "inside a frame"])
async def test_a_connection_cut_anywhere_is_resumed_by_its_cursor(half: bool) -> None:
    async with _front() as front, Client(front.url, "right", policy=_QUICK) as client:
        front.half = half
        for cut in range(2, 24):
            session = await client.open()
            front.server.cuts.extend([cut, 3])
            front.server.sessions[session.id].hang_up()
            await session.prompt("Hello")
            stored: list[Envelope] = []
            async for event in session.events:
                if isinstance(event, Envelope) and event.seq is not None:
                    stored.append(event)
                    if isinstance(event.event, TurnCompleted):
                        break
            log = front.server.sessions[session.id]
            assert stored == log.events[1:]
            assert session.view == log.view
            front.server.cuts.clear()
            await session.close()


@pytest.mark.rules("C4.2")
async def test_a_server_that_comes_back_finds_its_readers_again() -> None:
    async with _front() as front, Client(front.url, "right", policy=_QUICK) as client:
        session = await client.open()
        port = int(front.url.rpartition(":")[2])
        await front.stop()
        async for connection in session.connection:
            if connection.failures > 2:
                assert isinstance(connection.error, ConnectionLost)
                break
        await front.start(port)
        assert await session.ask("Hello") == "It is 09:05."
        follows = [call for call in front.server.calls if call.operation.name == "follow"]
        assert len({call.query["reader"] for call in follows}) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with (
        _front() as front,
        Client(front.url.replace("127.0.0.1", host), "right") as client,
    ):
        assert (await client.me()).user == "me"


async def test_a_wrong_token_is_unauthorized() -> None:
    policy = LinkPolicy(auth_ms=(0, 1))
    async with _front() as front, Client(front.url, "wrong", policy=policy) as client:
        with pytest.raises(Unauthorized, match="pair this device"):
            await client.me()
        with pytest.raises(Unauthorized):
            await client.open("ses_1")


@pytest.mark.rules("C4.6", "S39")
async def test_a_token_that_dies_in_mid_stream_ends_the_line() -> None:
    token = "right"

    async def credential() -> str:
        return token

    policy = LinkPolicy(first_ms=0, auth_ms=(0, 1))
    async with _front() as front, Client(front.url, credential, policy=policy) as client:
        session = await client.open()
        token = "revoked"
        front.server.sessions[session.id].hang_up()
        with pytest.raises(Unauthorized):
            async for _ in session.events:
                pass
        assert session.connection.value.phase == "failed"


@pytest.mark.rules("C2.1", "S39")
@pytest.mark.parametrize("status", [200, 302])
async def test_a_sign_in_page_of_the_network_is_no_server(status: int) -> None:
    async with _front() as front, Client(front.url, "right") as client:
        headers = {"location": f"{front.url}/login"} if status == 302 else {}
        front.page = partial(
            web.Response, status=status, text="<html>", content_type="text/html", headers=headers
        )
        with pytest.raises(ContractUnavailable, match="no towline server sent it"):
            await client.open("ses_1")


@pytest.mark.rules("C4.7")
async def test_an_error_page_of_a_proxy_is_a_lost_connection() -> None:
    async with _front() as front:
        transport = HttpTransport(front.url)
        front.page = partial(web.Response, status=502, text="<html>", content_type="text/html")
        async with Client(front.url, "right", transport=transport) as client:
            with pytest.raises(ConnectionLost, match="status 502") as caught:
                await client.claim("ABCD1234")
            assert caught.value.status == 502
            with pytest.raises(ConnectionLost):
                await client.open("ses_1")


@pytest.mark.slow
async def test_a_lost_reply_is_asked_for_again_over_the_network() -> None:
    async with _front() as front, Client(front.url, "right") as client:
        front.server.lose.extend(["create_session", "send_prompt"])
        session = await client.open()
        assert len(front.server.sessions) == 1
        assert await session.ask("Hello") == "It is 09:05."
        assert len([m for m in session.view.messages if m.role == "user"]) == 1


@pytest.mark.rules("C4.5")
async def test_a_request_that_takes_too_long_is_lost() -> None:
    async with _front() as front:
        front.hang.clear()
        transport = HttpTransport(front.url)
        operation = OPERATIONS["health"]
        call = Call(operation=operation, path=operation.path, timeout_s=0.05)
        with pytest.raises(ConnectionLost, match="it took too long"):
            await transport.request(call)
        front.hang.set()
        await transport.close()
        await transport.close()


async def test_nobody_there_is_said_in_a_sentence_without_secrets() -> None:
    async with _front() as front:
        url = front.url.replace("http://", "http://user:hidden@")
        await front.stop()
        async with asyncio.timeout(10), Client(url, "right", policy=_QUICK) as client:
            with pytest.raises(ConnectionLost) as caught:
                await client.open("ses_1")
        message = str(caught.value)
        assert "Connect call failed" in message or "refused" in message
        assert "check the address and that the server runs" in message
        assert "hidden" not in message
        assert "right" not in message


@pytest.mark.parametrize(
    "url", ["", "localhost:4747", "ftp://host", "http://", "http://[", "user:hidden@host"]
)
def test_an_address_that_cannot_be_used_is_said_at_once(url: str) -> None:
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:4747") as caught:
        Client(url)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("more", ["/#pair=hidden", "#hidden", "/?code=hidden", "/under/a/path?x=1"])
def test_more_than_an_address_is_refused_without_showing_it(more: str) -> None:
    with pytest.raises(UsageError, match="give the address alone") as caught:
        Client(f"http://127.0.0.1:4747{more}")
    assert "hidden" not in str(caught.value)


async def test_white_space_around_an_address_and_a_token_is_left_out() -> None:
    async with _front() as front, Client(f" {front.url}/ \n", " right\r\n") as client:
        assert (await client.me()).user == "me"


@pytest.mark.rules("C4.7")
@pytest.mark.parametrize(
    ("status", "words"), [(404, "is no towline server"), (401, "is no towline"), (502, "try again")]
)
async def test_an_answer_of_something_else_names_the_address_and_doubts_it(
    status: int, words: str
) -> None:
    async with _front() as front:
        front.page = lambda: web.Response(status=status, text="<html>")
        url = front.url.replace("http://", "http://user:hidden@")
        async with asyncio.timeout(10), Client(url, "right") as client:
            with pytest.raises(ConnectionLost, match=words) as caught:
                await client.discovery.ready()
            with pytest.raises(ConnectionLost, match="check the address") as opened:
                await client.open("ses_1")
    for message in (str(caught.value), str(opened.value)):
        assert repr(front.url) in message
        assert "check the address" in message
        assert "hidden" not in message

"""Opening a session for a program with tools: it comes to an end whatever the server does."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from towline_client import Client, ConnectionLost, ContractUnavailable
from towline_client.opening import SETTLE_MS
from towline_client.testing import ManualClock, ScriptedServer, ScriptedTransport
from towline_client.transport import Call, Reply
from towline_protocol import SessionClosed


class _Boaster(ScriptedServer):
    """Its greeting tells of events that it never sends."""

    def __init__(self) -> None:
        super().__init__()
        self.greeted = asyncio.Event()
        """Set when a greeting was taken in."""

    async def follow(self, call: Call) -> Reply | AsyncGenerator[bytes]:
        found = await super().follow(call)
        return found if isinstance(found, Reply) else self._boast(found)

    async def _boast(self, frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        async for frame in frames:
            yield frame.replace(b'"last_seq":', b'"last_seq":99')
            if b"last_seq" in frame:
                self.greeted.set()


@asynccontextmanager
async def _connect(
    server: ScriptedServer, clock: ManualClock | None = None
) -> AsyncGenerator[Client]:
    transport = ScriptedTransport(server)
    async with (
        asyncio.timeout(10),
        server,
        Client("", "token", transport=transport, clock=clock) as client,
    ):
        client.tool(name="locate")(lambda: "here")
        yield client


_PORTAL = Reply(status=200, headers={"content-type": "text/html"}, body=b"<html>Sign in.</html>")


@pytest.mark.rules("C2.1")
async def test_a_line_that_is_given_up_while_it_catches_up_ends_the_opening() -> None:
    server = _Boaster()
    session = server.add_session()
    async with _connect(server) as client:
        opening = asyncio.create_task(client.open(session.id))
        await server.greeted.wait()
        server.replies["follow"] = deque([_PORTAL])
        session.hang_up()
        with pytest.raises(ContractUnavailable):
            await opening
        assert server.count("declare_tools") == 0


async def test_a_server_that_never_sends_what_it_told_of_does_not_hold_an_opening_for_ever() -> (
    None
):
    server, clock = _Boaster(), ManualClock()
    session = server.add_session()
    async with _connect(server, clock=clock) as client:
        opening = asyncio.create_task(client.open(session.id))
        await server.greeted.wait()
        while clock.now_ms() < SETTLE_MS:
            assert not opening.done()
            clock.advance(1000)
            await asyncio.sleep(0)
        with pytest.raises(ConnectionLost, match="150 s"):
            await opening


async def test_a_session_that_ends_while_the_line_catches_up_is_opened_all_the_same() -> None:
    server = _Boaster()
    session = server.add_session()
    async with _connect(server) as client:
        opening = asyncio.create_task(client.open(session.id))
        await server.greeted.wait()
        session.emit(SessionClosed(reason="done"))
        opened = await opening
        assert opened.view.closed is not None
        assert opened.closed

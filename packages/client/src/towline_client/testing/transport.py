"""A client straight on a scripted server."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from towline_client.testing.server import ScriptedServer
from towline_client.transport import Call, Reply, StreamReply
from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION

__all__ = ["ScriptedTransport"]

_STREAM: Final = {CONTRACT_HEADER: CONTRACT_VERSION, "content-type": "text/event-stream"}


class ScriptedTransport:
    """Puts a client straight on a `ScriptedServer`."""

    def __init__(self, server: ScriptedServer) -> None:
        """Make the way to a server.

        Args:
            server: The server; any number of these may lead to it.
        """
        self._server = server
        self.closed = False
        """Whether the client has closed it."""

    async def request(self, call: Call) -> Reply:
        """Carry out an ordinary call."""
        return self._server.answer(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[StreamReply]:
        """Open a stream."""
        found = await self._server.follow(call)
        if isinstance(found, Reply):
            yield StreamReply(status=found.status, headers=found.headers, chunks=_whole(found.body))
            return
        try:
            yield StreamReply(status=200, headers=_STREAM, chunks=found)
        finally:
            await found.aclose()

    async def close(self) -> None:
        """Note that the client is done."""
        self.closed = True


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body

"""A push service on a port of this machine, for tests."""

import asyncio
from collections import deque
from pathlib import Path
from typing import Final, Self

import msgspec

from towline_agent import WebClient
from towline_server.push.sender import PushSender

__all__ = ["FakePushService", "Posted"]

_WAIT_S: Final = 20.0


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it arrived."""

    path: str
    """Whom it was for."""
    headers: dict[str, str]
    """Its headers, names in lower case."""
    body: bytes
    """What only the device reads."""


class FakePushService:
    """Takes messages and answers 201, or what `answers` says; an async context."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        """All that came, in order."""
        self.answers: deque[str] = deque()
        """Status lines, with headers if there are any, of the answers to come, such as
        `503 Busy\\r\\nretry-after: 7`; after the last one it is 201 again."""
        self.hold = asyncio.Event()
        """Set unless answers shall wait."""
        self.hold.set()
        self._port = 0
        self._arrived = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    def endpoint(self, device: str = "phone") -> str:
        """The address of a device."""
        return f"http://127.0.0.1:{self._port}/push/{device}"

    def sender(self, folder: Path) -> PushSender:
        """What a server needs to reach it.

        Args:
            folder: Where the server's key is kept.
        """
        return PushSender(folder, web=WebClient(public=lambda address: True), local=True)

    async def take(self, count: int) -> list[Posted]:
        """All messages, once there are so many.

        Raises:
            TimeoutError: There are fewer.
        """
        async with asyncio.timeout(_WAIT_S):
            while len(self.posted) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.posted

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._answer(reader, writer)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            return  # the test has ended, or the server gave up
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.posted.append(Posted(path=head[0].split(" ")[1], headers=headers, body=body))
        self._arrived.set()
        await self.hold.wait()
        status = self.answers.popleft() if self.answers else "201 Created"
        lines = f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        writer.write(lines.encode())
        await writer.drain()

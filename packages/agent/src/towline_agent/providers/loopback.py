"""A listener on this machine's own address, for the one page that a browser comes back to (A2.66).

It speaks as much HTTP as that takes and shows pages of our own words alone: nothing that a caller
sent is repeated to it.
"""

import asyncio
import html
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import msgspec

__all__ = ["LoopbackListener", "LoopbackPage"]

_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_MAX_HEAD: Final = 32 * 1024
"""Bytes of a request's head; browsers send a few KiB with the longest of cookies."""
_HEAD_S: Final = 5.0
"""Seconds for a caller to send its request and take the page: a browser needs none."""
_MAX_CALLERS: Final = 16
"""Connections at once: a browser opens a few, and nobody else has business here. One more takes the
place of the one that has kept us waiting the longest, so nobody can keep the browser out."""

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    410: "Gone",
}
_STYLE: Final = (
    "body{font:1.1rem system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:1rem}"
)


class LoopbackPage(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser is shown."""

    status: int
    """The HTTP status."""
    title: str
    """A few words."""
    text: str
    """A sentence or two: what happened, and what to do now."""


class LoopbackListener:
    """Listens on 127.0.0.1 at any free port until it is closed.

    Args:
        take: Called with the query of each call to the address; returns the page to show.
    """

    def __init__(self, take: Callable[[str], LoopbackPage]) -> None:
        self._take = take
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.Task[None]] = set()
        self._idle: dict[asyncio.Task[None], None] = {}
        self._authority = ""

    @property
    def url(self) -> str:
        """The address to come back to; known once it is open."""
        return f"http://{self._authority}{_PATH}"

    async def open(self) -> None:
        """Begin to listen.

        Raises:
            OSError: This machine gives no port.
        """
        self._server = await asyncio.start_server(self._accept, _HOST, 0, limit=_MAX_HEAD)
        self._authority = f"{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Stop listening and hang up; idempotent."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for task in self._callers:
            task.cancel()
        if self._callers:
            await asyncio.wait(self._callers)
        await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a caller in a task of ours: asyncio reports its own as broken when cancelled."""
        if self._server is None or (len(self._callers) >= _MAX_CALLERS and not self._idle):
            writer.close()
            return
        if len(self._callers) >= _MAX_CALLERS:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.cancel()
        task = asyncio.create_task(self._serve(reader, writer))
        self._callers.add(task)
        self._idle[task] = None

        def end(_: asyncio.Task[None]) -> None:
            self._callers.discard(task)
            self._idle.pop(task, None)
            writer.close()

        task.add_done_callback(end)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # what a caller does wrong is its own affair: it is hung up on
        with suppress(OSError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
                task = asyncio.current_task()
                assert task is not None
                self._idle.pop(task, None)
                writer.write(_document(self._answer(head)))
                await writer.drain()

    def _answer(self, head: bytes) -> LoopbackPage:
        lines = head.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1."):
            return _bad("This is no request of a browser.")
        if self._authority not in _values(lines[1:], "host"):
            # a page elsewhere has given its own name this machine's address
            return LoopbackPage(status=403, title="Not here", text="This address is not for you.")
        if method != "GET":
            return LoopbackPage(status=405, title="Not so", text="This address can only be opened.")
        try:
            parts = urlsplit(target)
        except ValueError:
            return _bad("This is no address.")
        if parts.path != _PATH:
            return LoopbackPage(status=404, title="Nothing here", text="There is no such page.")
        return self._take(parts.query)


def _bad(text: str) -> LoopbackPage:
    return LoopbackPage(status=400, title="Not so", text=text)


def _values(lines: list[str], name: str) -> list[str]:
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for found, _, value in pairs if found.strip().lower() == name]


def _document(page: LoopbackPage) -> bytes:
    title, text = html.escape(page.title), html.escape(page.text)
    body = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f'<meta name=viewport content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{text}</p></html>"
    ).encode()
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body

"""The one way out of a browser that takes a picture: to what a fetch might reach, and no further.

A page makes a browser ask for other places: pictures, frames, scripts. All of it goes through this
proxy on loopback, which connects to public addresses and to the one place that was allowed. A page
of the workspace is served by it too, under a name that leads nowhere, and reaches nothing else.
"""

import asyncio
import mimetypes
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final
from urllib.parse import unquote, urlsplit

from towline_agent.errors import ToolError
from towline_agent.listener import Listener
from towline_agent.permissions.secret import is_secret
from towline_agent.tools.web.url import WebUrl, read_url
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.threads import FILES
from towline_agent.workspaces.twin import follow

__all__ = ["PAGE_HOST", "Gateway", "serve_files"]

PAGE_HOST: Final = "workspace.invalid"
"""The name under which the workspace's files are served; it can be nobody's (RFC 2606)."""

_HEAD_BYTES: Final = 65_536
_BODY_BYTES: Final = 1_000_000
_PIECE: Final = 65_536
_CONNECT_S: Final = 10.0
_AT_ONCE: Final = 64
"""Connections of one page; browsers open six to a host."""
_DROPPED: Final = ("connection", "keep-alive", "proxy-", "te", "trailer", "upgrade")
_KINDS: Final = (
    "text/html", "text/css", "text/javascript", "application/javascript", "application/json",
    "image/", "font/", "audio/", "video/", "application/xhtml+xml", "application/wasm",
)  # fmt: skip
"""What a page is made of; other files are not handed out."""

FileServer = Callable[[str], Awaitable[tuple[str, bytes]]]
"""The kind and the bytes of the file at a path; raises `ToolError` when there is none."""


def serve_files(workspace: Workspace, page: str = "") -> FileServer:
    """What serves a workspace's files to its own pages: those that pages are made of.

    No secret file is among them, by whatever name, since nobody was asked about it (A5.67).

    Args:
        workspace: Where they stand.
        page: The page itself, about which it was decided.
    """

    async def serve(path: str) -> tuple[str, bytes]:
        kind = mimetypes.guess_type(path)[0] or ""
        hidden = any(part.startswith(".") for part in path.split("/"))
        if hidden or not kind.startswith(_KINDS):
            raise ToolError(f"{path!r} is nothing that a page is made of.")
        lead = await FILES.run(lambda: follow(workspace.root, path, is_secret))
        secret = is_secret(path) or is_secret(lead.shown) or lead.twin is not None
        if secret and path != page:
            raise ToolError(f"{path!r} may hold secrets.")
        return kind, (await workspace.read(path)).data

    return serve


class Gateway(Listener):
    """An HTTP proxy on loopback for one browser. An async context manager.

    Args:
        allowed: The place that may be private; `None` for a page of the workspace, which reaches
            no other place at all.
        files: Serves the workspace's files under `PAGE_HOST`; `None` for none.
        public: Tells whether an address in numbers lies in the public internet.
    """

    def __init__(
        self,
        allowed: WebUrl | None,
        files: FileServer | None,
        public: Callable[[str], bool],
    ) -> None:
        super().__init__(self._answer, limit=_HEAD_BYTES, at_once=_AT_ONCE)
        self.refused: list[str] = []
        """The places that it did not reach, in order."""
        self._allowed = allowed
        self._files = files
        self._public = public
    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ValueError):  # no request: the browser sees a connection that ends
            await self._pass_on(reader, writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *headers = head[:-4].split("\r\n")
        method, target, _ = line.split(" ", 2)
        if method == "CONNECT":
            await self._tunnel(target, reader, writer)
        elif urlsplit(target).hostname == PAGE_HOST:
            await self._serve(method, target, writer)
        else:
            await self._forward(method, target, headers, reader, writer)

    async def _serve(self, method: str, target: str, writer: asyncio.StreamWriter) -> None:
        try:
            if self._files is None or method not in ("GET", "HEAD"):
                raise ToolError("There are no files here.")
            kind, data = await self._files(unquote(urlsplit(target).path).lstrip("/"))
        except ToolError:
            _refuse(writer, "404 Not Found")
            return
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + data)
        await writer.drain()

    async def _tunnel(
        self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        far = await self._connect(f"https://{target}/")
        if far is None:
            _refuse(writer, "403 Forbidden")
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = asyncio.create_task(_copy(far[0], writer))
        try:
            await _copy(reader, far[1])
            await back
        finally:
            back.cancel()
            await asyncio.wait({back})
            far[1].close()

    async def _forward(
        self,
        method: str,
        target: str,
        headers: list[str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Pass one request on, and its answer back; each connection carries one."""
        far = await self._connect(target)
        if far is None:
            _refuse(writer, "403 Forbidden")
            return
        try:
            kept = [line for line in headers if not line.lower().startswith(_DROPPED)]
            lengths = [line[15:] for line in kept if line.lower().startswith("content-length:")]
            parts = urlsplit(target)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            first = f"{method} {path} HTTP/1.1"
            far[1].write("\r\n".join((first, *kept, "Connection: close", "", "")).encode("latin-1"))
            if lengths:
                far[1].write(await reader.readexactly(min(int(lengths[0]), _BODY_BYTES)))
            await _copy(far[0], writer)
        finally:
            far[1].close()

    async def _connect(
        self, target: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection to a place, by an address that was judged; `None` when it is refused."""
        try:
            url = read_url(target)
        except ToolError:
            self.refused.append(target[:200])
            return None
        if self._allowed is not None:
            address = await self._judge(url, anywhere=url.place == self._allowed.place)
            if address is not None:
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(address, url.port)
        self.refused.append(url.place)
        return None

    async def _judge(self, url: WebUrl, *, anywhere: bool) -> str | None:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
        for *_, place in found:
            address = str(place[0])
            if (anywhere and self._allowed is not None and self._allowed.private) or self._public(
                address
            ):
                return address
        return None


def _refuse(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on all that comes, until one side is gone."""
    with suppress(OSError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()

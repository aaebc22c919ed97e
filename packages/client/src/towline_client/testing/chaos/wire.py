"""As much of HTTP as the proxy must know: heads, chunks, the frames of a stream, and its pages."""

import asyncio
from typing import Final

import msgspec

from towline_client.testing.reply import refuse

__all__ = [
    "LIMIT",
    "PIECE",
    "PORTAL",
    "Frames",
    "Head",
    "Malformed",
    "bad_gateway",
    "chunk_of",
    "read_chunk",
    "read_head",
    "unauthorized",
]

LIMIT: Final = 64 * 1024
"""Bytes of a head, and of what waits to be read from a connection."""
PIECE: Final = 64 * 1024
"""Bytes that are passed on at once."""
MAX_CHUNK: Final = 4 * 1024 * 1024
"""Bytes of a chunk: an event has 1 MiB at most (C6), and a few come joined."""
_END: Final = b"\r\n"


class Malformed(Exception):
    """It is not HTTP, or larger than it may be."""


class Head(msgspec.Struct, frozen=True):
    """The first line of a message and its fields."""

    line: bytes
    """The request line or the status line."""
    fields: tuple[tuple[bytes, bytes], ...]
    """Names in lower case, and values."""

    def get(self, name: bytes) -> bytes:
        """The value of a field; empty when there is none."""
        return next((value for known, value in self.fields if known == name), b"")

    @property
    def length(self) -> int | None:
        """Bytes of the body that it announces; `None` when it does not say how many."""
        if self.get(b"transfer-encoding"):
            return None
        value = self.get(b"content-length") or b"0"
        return int(value) if value.isdigit() else None

    def toward(self, host: bytes) -> "Head":
        """The same request for another host, alone on its connection."""
        upgrade = bool(self.get(b"upgrade"))
        kept = [(name, value) for name, value in self.fields if name != b"host"]
        if not upgrade:
            kept = [(name, value) for name, value in kept if name != b"connection"]
            kept.append((b"connection", b"close"))
        return Head(self.line, ((b"host", host), *kept))

    def encode(self) -> bytes:
        """Its bytes."""
        lines = [self.line, *(name + b": " + value for name, value in self.fields), b"", b""]
        return _END.join(lines)


async def read_head(reader: asyncio.StreamReader) -> Head:
    """The head of the next message.

    Raises:
        Malformed: It is none.
        asyncio.IncompleteReadError: The connection ended before.
    """
    try:
        data = await reader.readuntil(_END * 2)
    except asyncio.LimitOverrunError as error:
        raise Malformed from error
    line, *rest = data.removesuffix(_END * 2).split(_END)
    fields: list[tuple[bytes, bytes]] = []
    for field in rest:
        name, colon, value = field.partition(b":")
        if not colon:
            raise Malformed
        fields.append((name.strip().lower(), value.strip()))
    return Head(line, tuple(fields))


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    """The next chunk of a chunked body; empty at its end.

    Raises:
        Malformed: It is none.
        asyncio.IncompleteReadError: The connection ended before.
    """
    try:
        size = int((await reader.readuntil(_END)).partition(b";")[0], 16)
    except (ValueError, asyncio.LimitOverrunError) as error:
        raise Malformed from error
    if not 0 <= size <= MAX_CHUNK:
        raise Malformed
    return (await reader.readexactly(size + len(_END)))[:size]


def chunk_of(data: bytes) -> bytes:
    """A chunk; the last one of a body, when it is empty."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Frames:
    """Cuts a stream of events into its frames, each with the blank line that ends it."""

    def __init__(self) -> None:
        self.rest = b""
        """What has come of the next frame."""

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are whole by now. One that outgrows `MAX_CHUNK` is passed in parts."""
        *whole, self.rest = (self.rest + data).split(b"\n\n")
        frames = [frame + b"\n\n" for frame in whole]
        if len(self.rest) > MAX_CHUNK:
            frames.append(self.rest)
            self.rest = b""
        return frames


def _page(status: bytes, fields: tuple[tuple[bytes, bytes], ...], body: bytes) -> bytes:
    more = ((b"content-length", b"%d" % len(body)), (b"connection", b"close"))
    return Head(b"HTTP/1.1 " + status, (*fields, *more)).encode() + body


_HTML: Final = ((b"content-type", b"text/html"),)

PORTAL: Final = _page(
    b"200 OK", _HTML, b"<html><title>Welcome</title>Sign in to use this network.</html>\n"
)
"""What a network answers that wants its users to sign in first."""


def bad_gateway() -> bytes:
    """What a proxy answers that cannot reach its server."""
    return _page(b"502 Bad Gateway", _HTML, b"<html>The server cannot be reached.</html>\n")


def unauthorized(*, contract: bool) -> bytes:
    """A 401: by the contract, or by a proxy that wants a login of its own."""
    if not contract:
        fields = (*_HTML, (b"www-authenticate", b"Basic"))
        return _page(b"401 Unauthorized", fields, b"<html>Log in to this proxy.</html>\n")
    reply = refuse("unauthorized", "The token is not known any more; get a new one.")
    fields = tuple((name.encode(), value.encode()) for name, value in reply.headers.items())
    return _page(b"401 Unauthorized", fields, reply.body)

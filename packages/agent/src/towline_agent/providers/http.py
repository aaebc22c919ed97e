"""The transport on aiohttp: one session and one TLS context a process (A3.1 to A3.11, D11).

Importing this module imports aiohttp, which costs more than the whole library. So nobody imports it
before the first request.
"""

import asyncio
import atexit
import functools
import os
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from types import CoroutineType
from typing import Any, Final

import aiohttp

from towline_agent.limits import TimeLimit
from towline_agent.providers.http_session import (
    HARM,
    ClientSession,
    LineWatch,
    failure,
    open_socket,
    trust,
)
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed, is_document
from towline_protocol import ProtocolError, SseDecoder, SseEvent

__all__ = ["HttpTransport", "shared_transport"]

_CONNECT_S: Final = 30.0
"""Seconds to get a connection (A3.3)."""
_KEEPALIVE_S: Final = 10.0
"""Seconds that an idle connection is kept: less than servers keep theirs (A3.6)."""
_DRAIN_S: Final = 2.0
"""Seconds to read on after the end of an answer, so that its connection can be used again."""
_ERROR_BODY_S: Final = 10.0
"""Seconds to read the body of an error: its status says enough."""
_MAX_DOCUMENT: Final = 32 * 1024 * 1024
"""Bytes of one document: the longest answer with pictures, and no endless one."""
_MAX_BLANKS: Final = 64 * 1024
"""Bytes of white space before an answer: a gateway that keeps warm sends one every second or so."""
_QUIET_S: Final = 600.0
"""Seconds without a word of an answer, at least, that a line may be kept warm: queues are long."""
_QUIET_IDLES: Final = 10.0
"""The same in idle limits: what may be silent for long, such as a local model that reads a prompt,
may also be kept warm for long."""
_MAX_ERROR: Final = 256 * 1024
"""Bytes of an error body that are read; what people are shown is far shorter."""
_MAX_STREAM: Final = 256 * 1024 * 1024
"""Bytes of one stream; a peer that never stops is cut off."""
_EXIT_S: Final = 2.0
"""Seconds that the end of the process waits for a loop in another thread."""
_OK: Final = range(200, 300)
"""Statuses of answers; whatever else comes is a refusal, redirects too."""
_SPACE: Final = b" \t\r\n"


class HttpTransport:
    """Requests over HTTP; see `Transport`. Each event loop gets its session at its first request.

    Args:
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        connect_s: Seconds to get a connection.
        keepalive_s: Seconds that an idle connection is kept.
        drain_s: Seconds to read on after the end of an answer.
        quiet_s: Seconds until the head of an answer, its first event, each next one, and the end of
            a document, however many blanks, comments or header lines come in the meantime; `None`
            for ten times the idle limit, and 600 at least.
    """

    def __init__(
        self,
        *,
        ca_file: str | None = None,
        connect_s: float = _CONNECT_S,
        keepalive_s: float = _KEEPALIVE_S,
        drain_s: float = _DRAIN_S,
        quiet_s: float | None = None,
    ) -> None:
        self._ca_file = ca_file
        self._connect_s = connect_s
        self._keepalive_s = keepalive_s
        self._drain_s = drain_s
        self._quiet_s = quiet_s
        self._tls: ssl.SSLContext | None = None
        self._sessions: dict[asyncio.AbstractEventLoop, ClientSession] = {}
        self._parents: tuple[object, ...] = ()

    def sse(
        self, call: HttpCall, on_event: Callable[[SseEvent], bool]
    ) -> "CoroutineType[Any, Any, HttpAnswer]":
        """Send a request whose answer should be a stream of events."""
        return self._exchange(call, on_event)

    def json(self, call: HttpCall) -> "CoroutineType[Any, Any, HttpAnswer]":
        """Send a request and read the whole answer."""
        return self._exchange(call, None)

    async def aclose(self) -> None:
        """Give back this loop's connections; a request under way keeps its own to its end."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            session.closing = True
            await session.close_if_idle()

    async def _exchange(
        self, call: HttpCall, on_event: Callable[[SseEvent], bool] | None
    ) -> HttpAnswer:
        session = self._sessions.get(asyncio.get_running_loop()) or await self._open_session()
        session.in_flight += 1
        quiet = _Quiet(self._quiet_s or max(_QUIET_S, _QUIET_IDLES * call.idle_s), call.idle_s)
        stream = None if on_event is None else _Stream(on_event, quiet)
        response: aiohttp.ClientResponse | None = None
        body = b""
        try:
            try:
                with quiet:
                    response = await session.send(call)
                    if response.status in _OK:
                        body = await self._receive(response, stream, quiet)
            except TimeoutError as error:
                if response is None:
                    raise quiet.failure("head") from error
                if stream is None or not stream.done:
                    raise TransportFailed("idle") from error
                response.close()  # All that matters has come; what does not end is ended here.
            if response.status not in _OK:
                body = await _read_error(response)
            response.release()
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpAnswer(status=response.status, headers=headers, body=body)
        except BaseException:
            if response is not None:
                response.close()  # at once: nobody works on for us (A3.11)
            raise
        finally:
            session.in_flight -= 1
            if session.closing:
                await session.close_if_idle()

    async def _receive(
        self, response: aiohttp.ClientResponse, stream: "_Stream | None", quiet: "_Quiet"
    ) -> bytes:
        """An answer's body; empty for a stream of events, which are told."""
        quiet.end()
        with LineWatch(response):
            head = b"" if stream is None else await _read_head(response, quiet)
            if stream is None or is_document(head):
                return await _read_document(response, head, quiet)
            await self._read_events(response, head, stream)
        return b""

    async def _read_events(
        self, response: aiohttp.ClientResponse, chunk: bytes, stream: "_Stream"
    ) -> None:
        """Tell the events of a stream; the hot path of every step."""
        read = response.content.readany  # never by lines: one may be longer than a buffer (A3.5)
        while chunk:
            if stream.tell(chunk) and await self._drain(response, stream):
                return
            try:
                chunk = await read()
            except HARM as error:
                raise failure(error) from error
        stream.end()

    async def _drain(self, response: aiohttp.ClientResponse, stream: "_Stream") -> bool:
        """Read on to the end, so that the connection can be used again; not for long (A3.8).

        False when an event takes back that all has come.
        """
        content = response.content
        if content.at_eof():
            return True
        stream.quiet.restart(self._drain_s)
        with suppress(*HARM):  # what matters has come
            while chunk := await content.readany():
                if not stream.tell(chunk):
                    return False
        return True

    def leave_parent(self) -> None:
        """Begin anew in a forked child: closing what it has would break the parent's."""
        self._parents = (*self._parents, self._sessions)
        self._sessions = {}

    def close_all(self) -> None:
        """Close the sessions of all loops, from outside of them: the last act of a process."""
        for loop, session in list(self._sessions.items()):
            if loop.is_running():  # in another thread
                with suppress(TimeoutError):
                    asyncio.run_coroutine_threadsafe(session.close(), loop).result(_EXIT_S)
            elif loop.is_closed():
                asyncio.run(session.abandon())
            else:
                loop.run_until_complete(session.close())

    async def _open_session(self) -> ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions[loop] = ClientSession(self._connector(), self._connect_s)
        session.guard = self._guard(loop, session)
        await anext(session.guard)
        for other in list(self._sessions):  # a copy: other threads add theirs
            if other.is_closed():
                await self._abandon(other)
        return session

    async def _abandon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what a loop left that was closed without a last word to its generators."""
        session = self._sessions.pop(loop, None)
        if session is not None:
            await session.abandon()

    async def _guard(
        self, loop: asyncio.AbstractEventLoop, session: ClientSession
    ) -> AsyncGenerator[None]:
        """Closes a session, at the latest with its loop: that ends its open generators itself."""
        try:
            yield
        finally:
            if self._sessions.get(loop) is session:
                del self._sessions[loop]
            await session.client.close()

    def _connector(self) -> aiohttp.TCPConnector:
        if self._ca_file is not None and self._tls is None:
            self._tls = trust(self._ca_file)
        return aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=self._keepalive_s,
            # aiohttp's own context, unless a file is given: it makes one when it is imported.
            ssl=self._tls or True,
            socket_factory=open_socket,
        )


class _Quiet(TimeLimit):
    """How long nothing of an answer may come, and how long no word, whatever else keeps it warm.

    In its block `TimeoutError` is raised where nothing comes at all; until the head has come, which
    `end` tells, where that does not come: its lines may not drip for ever. The one timer is moved
    with each chunk; aiohttp's own limit would make a new one for each.
    """

    __slots__ = ("_idle_s", "_quiet_s", "_since")

    def __init__(self, quiet_s: float, idle_s: float) -> None:
        super().__init__(quiet_s)
        self._quiet_s = quiet_s
        self._idle_s = idle_s
        self._since = 0.0

    def end(self) -> None:
        """Say that a word has come."""
        self._since = self.restart(self._idle_s)

    def check(self) -> None:
        """Say that something else has come; fails once that is too long."""
        if self.restart(self._idle_s) - self._since > self._quiet_s:
            raise self.failure("word")

    def failure(self, missing: str) -> TransportFailed:
        """What one fails with for whom this has not come in time."""
        return TransportFailed("no_answer", f"No {missing} for {self._quiet_s:g} seconds.")


async def _read_head(response: aiohttp.ClientResponse, quiet: _Quiet) -> bytes:
    """The bytes up to the first that is no white space; gateways keep warm with blanks."""
    blanks: list[bytes] = []
    size = 0
    while True:
        try:
            chunk = await response.content.readany()
        except HARM as error:
            raise failure(error) from error
        blanks.append(chunk)
        if not chunk or chunk.strip(_SPACE):
            return b"".join(blanks)
        size += len(chunk)
        if size > _MAX_BLANKS:
            raise TransportFailed("too_large", f"More than {_MAX_BLANKS} blanks came.")
        quiet.check()


async def _read_document(response: aiohttp.ClientResponse, head: bytes, quiet: _Quiet) -> bytes:
    parts = [head]
    size = len(head)
    while size <= _MAX_DOCUMENT:
        try:
            chunk = await response.content.readany()
        except HARM as error:
            raise failure(error) from error
        if not chunk:
            return b"".join(parts)
        parts.append(chunk)
        size += len(chunk)
        quiet.check()
    raise TransportFailed("too_large", f"More than {_MAX_DOCUMENT} bytes came.")


async def _read_error(response: aiohttp.ClientResponse) -> bytes:
    """What comes of an error's body; its status counts, so nothing here fails."""
    parts: list[bytes] = []
    size = 0
    try:
        with TimeLimit(_ERROR_BODY_S), LineWatch(response):
            while size <= _MAX_ERROR and (chunk := await response.content.readany()):
                parts.append(chunk)
                size += len(chunk)
    except HARM:  # a TimeoutError is an OSError
        response.close()
    if size > _MAX_ERROR:
        response.close()
    return b"".join(parts)[:_MAX_ERROR]


class _Stream:
    """A stream of events that is being read."""

    def __init__(self, on_event: Callable[[SseEvent], bool], quiet: _Quiet) -> None:
        self._decoder = SseDecoder()
        self.done = False
        self.quiet = quiet
        self._on_event = on_event
        self._size = 0

    def tell(self, chunk: bytes) -> bool:
        """Tell the events that a chunk completes; true when all that matters has come by now."""
        try:
            events = self._decoder.feed(chunk)
        except ProtocolError as error:
            raise TransportFailed("too_large", error.message) from error
        on_event, done = self._on_event, self.done
        for event in events:
            done = on_event(event)
        self.done = done
        if events and not done:
            self.quiet.end()
        elif not done:
            self.quiet.check()
        self._size += len(chunk)
        if self._size > _MAX_STREAM:
            raise TransportFailed("too_large", f"More than {_MAX_STREAM} bytes came.")
        return done

    def end(self) -> None:
        """End a stream.

        The standard drops an event without its blank line. Some vendors leave out the last blank
        line of all, so what is there is told.
        """
        try:
            self._decoder.close()
        except ProtocolError as error:
            raise TransportFailed("cut", error.message) from error
        self.tell(b"\n\n")


@functools.cache
def shared_transport(ca_file: str | None = None) -> HttpTransport:
    """The process's own transport, made at the first call; one for each extra CA file."""
    transport = HttpTransport(ca_file=ca_file)
    atexit.register(transport.close_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=transport.leave_parent)
    return transport

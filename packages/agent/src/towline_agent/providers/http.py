"""The transport on aiohttp: one session and one TLS context a process (A3.1 to A3.11, D11).

Importing this module imports aiohttp, which costs more than the whole library. So nobody imports it
before the first request.
"""

import asyncio
import atexit
import functools
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

import aiohttp

from towline_agent.providers.http_session import ClientSession, failure, trust
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
_MAX_ERROR: Final = 256 * 1024
"""Bytes of an error body that are read; what people are shown is far shorter."""
_MAX_STREAM: Final = 256 * 1024 * 1024
"""Bytes of one stream; a peer that never stops is cut off."""
_EXIT_S: Final = 2.0
"""Seconds that the end of the process waits for a loop in another thread."""
_ERROR_STATUS: Final = 400
_SPACE: Final = b" \t\r\n"


class HttpTransport:
    """Requests over HTTP; see `Transport`. Each event loop gets its session at its first request.

    Args:
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        connect_s: Seconds to get a connection.
        keepalive_s: Seconds that an idle connection is kept.
        drain_s: Seconds to read on after the end of an answer.
    """

    def __init__(
        self,
        *,
        ca_file: str | None = None,
        connect_s: float = _CONNECT_S,
        keepalive_s: float = _KEEPALIVE_S,
        drain_s: float = _DRAIN_S,
    ) -> None:
        self._ca_file = ca_file
        self._connect_s = connect_s
        self._keepalive_s = keepalive_s
        self._drain_s = drain_s
        self._tls: ssl.SSLContext | None = None
        self._sessions: dict[asyncio.AbstractEventLoop, ClientSession] = {}

    async def sse(self, call: HttpCall, on_event: Callable[[SseEvent], bool]) -> HttpAnswer:
        """Send a request whose answer should be a stream of events."""
        return await self._exchange(call, on_event)

    async def json(self, call: HttpCall) -> HttpAnswer:
        """Send a request and read the whole answer."""
        return await self._exchange(call, None)

    async def aclose(self) -> None:
        """Give back this loop's connections; a request under way keeps its own to its end."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            session.closing = True
            await session.close_if_idle()

    async def _exchange(
        self, call: HttpCall, on_event: Callable[[SseEvent], bool] | None
    ) -> HttpAnswer:
        session = await self._session()
        session.in_flight += 1
        try:
            response = await session.send(call)
            try:
                body = await self._read(response, on_event)
            except BaseException:
                response.close()  # at once: nobody works on for us (A3.11)
                raise
            response.release()
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpAnswer(status=response.status, headers=headers, body=body)
        finally:
            session.in_flight -= 1
            await session.close_if_idle()

    async def _read(
        self, response: aiohttp.ClientResponse, on_event: Callable[[SseEvent], bool] | None
    ) -> bytes:
        if response.status >= _ERROR_STATUS:
            return await _read_error(response)
        if on_event is None:
            return await _read_document(response, b"")
        head = await _read_head(response)
        if is_document(head):
            return await _read_document(response, head)
        await self._read_events(response, head, on_event)
        return b""

    async def _read_events(
        self, response: aiohttp.ClientResponse, chunk: bytes, on_event: Callable[[SseEvent], bool]
    ) -> None:
        """Tell the events of a stream; the hot path of every step."""
        decoder = SseDecoder()
        read = response.content.readany  # never by lines: one may be longer than a buffer (A3.5)
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        done = False
        size = 0
        try:
            async with limit:
                while chunk:
                    for event in _decode(decoder, chunk):
                        if on_event(event) and not done:
                            done = True
                            limit.reschedule(loop.time() + self._drain_s)
                    size += len(chunk)
                    if size > _MAX_STREAM:
                        raise TransportFailed("too_large", f"More than {_MAX_STREAM} bytes came.")
                    try:
                        chunk = await read()
                    except (aiohttp.ClientError, OSError) as error:
                        if done:  # what matters has come; the connection alone is lost
                            return
                        raise failure(error) from error
        except TimeoutError:
            if not limit.expired():
                raise
            response.close()  # the answer is whole, but its stream does not end
            return
        if not done:
            _end(decoder, on_event)

    def close_all(self) -> None:
        """Close the sessions of all loops, from outside of them: the last act of a process."""
        for loop, session in list(self._sessions.items()):
            closing = session.close()
            if loop.is_running():  # in another thread
                with suppress(TimeoutError):
                    asyncio.run_coroutine_threadsafe(closing, loop).result(_EXIT_S)
            elif loop.is_closed():
                asyncio.run(closing)
            else:
                loop.run_until_complete(closing)

    async def _session(self) -> ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = ClientSession(self._connector(), self._connect_s)
            session.guard = self._guard(loop, session)
            await anext(session.guard)
        return session

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
        if self._ca_file is None:
            # aiohttp's own context: it makes one for the process when it is imported.
            return aiohttp.TCPConnector(limit=0, keepalive_timeout=self._keepalive_s)
        if self._tls is None:
            self._tls = trust(self._ca_file)
        return aiohttp.TCPConnector(limit=0, keepalive_timeout=self._keepalive_s, ssl=self._tls)


async def _read_head(response: aiohttp.ClientResponse) -> bytes:
    """The bytes up to the first that is no white space; gateways keep warm with blanks."""
    head = b""
    while not head.strip(_SPACE):
        try:
            chunk = await response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise failure(error) from error
        if not chunk:
            break
        head += chunk
        if len(head) > _MAX_DOCUMENT:
            raise TransportFailed("too_large", f"More than {_MAX_DOCUMENT} blanks came.")
    return head


async def _read_document(response: aiohttp.ClientResponse, head: bytes) -> bytes:
    parts = [head]
    size = len(head)
    while True:
        try:
            chunk = await response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise failure(error) from error
        if not chunk:
            return b"".join(parts)
        parts.append(chunk)
        size += len(chunk)
        if size > _MAX_DOCUMENT:
            raise TransportFailed("too_large", f"More than {_MAX_DOCUMENT} bytes came.")


async def _read_error(response: aiohttp.ClientResponse) -> bytes:
    """What comes of an error's body; its status counts, so nothing here fails."""
    body = b""
    try:
        async with asyncio.timeout(_ERROR_BODY_S):
            while chunk := await response.content.readany():
                body += chunk
                if len(body) > _MAX_ERROR:
                    response.close()
                    return body[:_MAX_ERROR]
    except (aiohttp.ClientError, OSError):  # a TimeoutError is an OSError
        response.close()
    return body


def _decode(decoder: SseDecoder, chunk: bytes) -> list[SseEvent]:
    try:
        return decoder.feed(chunk)
    except ProtocolError as error:
        raise TransportFailed("too_large", error.message) from error


def _end(decoder: SseDecoder, on_event: Callable[[SseEvent], bool]) -> None:
    """End a stream.

    The standard drops an event without its blank line. Some vendors leave out the last blank line
    of all, so what is there is told.
    """
    try:
        decoder.close()
    except ProtocolError as error:
        raise TransportFailed("cut", error.message) from error
    for event in _decode(decoder, b"\n\n"):
        on_event(event)


@functools.cache
def shared_transport(ca_file: str | None = None) -> HttpTransport:
    """The process's own transport, made at the first call; one for each extra CA file."""
    transport = HttpTransport(ca_file=ca_file)
    atexit.register(transport.close_all)
    return transport

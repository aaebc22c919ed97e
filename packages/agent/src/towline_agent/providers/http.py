"""The transport on aiohttp: one session and one TLS context a process (A3.1 to A3.11, D11).

Importing this module imports aiohttp, which costs more than the whole library. So nobody imports it
before the first request.
"""

import asyncio
import functools
import ssl
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final, cast

import aiohttp

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
_MAX_HEADER: Final = 64 * 1024
"""Bytes of one header line; some gateways send long policies."""
_ERROR_STATUS: Final = 400
_SPACE: Final = b" \t\r\n"
_AUTHORIZATION: Final = "authorization"

_CAUSES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (aiohttp.ClientConnectorCertificateError, "certificate"),
    (aiohttp.ClientConnectorSSLError, "tls"),
    (aiohttp.ClientConnectorDNSError, "dns"),
    (aiohttp.ClientProxyConnectionError, "proxy"),
    (aiohttp.ClientHttpProxyError, "proxy"),
    (aiohttp.ConnectionTimeoutError, "connect_timeout"),
    (aiohttp.ServerTimeoutError, "idle"),
    (aiohttp.ClientPayloadError, "cut"),
    (aiohttp.ServerDisconnectedError, "lost"),
    (aiohttp.InvalidURL, "address"),
    (aiohttp.ClientResponseError, "malformed"),
)
"""What aiohttp's classes mean, the finer ones first."""


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
        self._sessions: dict[asyncio.AbstractEventLoop, _Session] = {}

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
                        raise _failure(error) from error
        except TimeoutError:
            if not limit.expired():
                raise
            response.close()  # the answer is whole, but its stream does not end
            return
        if not done:
            _end(decoder, on_event)

    async def _session(self) -> "_Session":
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            for other in [other for other in self._sessions if other.is_closed()]:
                await self._sessions.pop(other).client.close()  # its loop is gone
            session = self._sessions[loop] = _Session(self._connector(), self._connect_s)
        return session

    def _connector(self) -> aiohttp.TCPConnector:
        if self._ca_file is None:
            # aiohttp's own context: it makes one for the process when it is imported.
            return aiohttp.TCPConnector(limit=0, keepalive_timeout=self._keepalive_s)
        if self._tls is None:
            self._tls = _trust(self._ca_file)
        return aiohttp.TCPConnector(limit=0, keepalive_timeout=self._keepalive_s, ssl=self._tls)


class _Session:
    """One loop's client and how many requests it carries."""

    def __init__(self, connector: aiohttp.TCPConnector, connect_s: float) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self.client = aiohttp.ClientSession(
            connector=connector,
            trust_env=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[trace],
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        self.connect_s = connect_s
        self.in_flight = 0
        self.closing = False

    async def send(self, call: HttpCall) -> aiohttp.ClientResponse:
        """The answer's head.

        A connection that was used before may have been closed by the peer in the meantime. Then the
        request goes again at once (A3.7): a broken connection never comes back, so this ends.
        """
        while True:
            tried = _Try()
            try:
                return await self._send(call, tried)
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
                if not tried.reused or _answered(error):
                    raise _failure(error) from error
            except (aiohttp.ClientError, OSError) as error:
                raise _failure(error) from error

    async def _send(self, call: HttpCall, tried: "_Try") -> aiohttp.ClientResponse:
        headers = {name: value for name, value in call.headers.items() if name != _AUTHORIZATION}
        return await self.client.request(
            call.method,
            call.url,
            data=call.body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(
                total=None, connect=self.connect_s, sock_read=call.idle_s
            ),
            allow_redirects=False,  # a redirected POST would lose its body
            middlewares=(_authorize(call.headers.get(_AUTHORIZATION)),),
            trace_request_ctx=tried,
        )

    async def close_if_idle(self) -> None:
        """Close the client, once it was asked for and nobody uses it."""
        if self.closing and not self.in_flight:
            await self.client.close()


class _Try:
    """What is known of one try of a request."""

    __slots__ = ("reused",)

    def __init__(self) -> None:
        self.reused = False


async def _note_reuse(
    _client: aiohttp.ClientSession,
    context: SimpleNamespace,
    _params: aiohttp.TraceConnectionReuseconnParams,
) -> None:
    context.trace_request_ctx.reused = True


def _authorize(value: str | None) -> aiohttp.ClientMiddlewareType:
    """Puts exactly our own credential on a request.

    With `trust_env` aiohttp looks into `.netrc` too: that would add a password to a request that
    must have none (A2.65), and refuses one that has both.
    """

    async def authorize(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers.popall(_AUTHORIZATION, None)
        if value is not None:
            request.headers[_AUTHORIZATION] = value
        return await handler(request)

    return authorize


def _answered(error: Exception) -> bool:
    """Whether the peer had begun its answer before it hung up."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


async def _read_head(response: aiohttp.ClientResponse) -> bytes:
    """The bytes up to the first that is no white space; gateways keep warm with blanks."""
    head = b""
    while not head.strip(_SPACE):
        try:
            chunk = await response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error) from error
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
            raise _failure(error) from error
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


def _failure(error: Exception) -> TransportFailed:
    """An exception of aiohttp's as ours, without its text: that may hold an address with a key."""
    cause = next((name for kind, name in _CAUSES if isinstance(error, kind)), "lost")
    inner: object = error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = cast("Exception", error.certificate_error)
    elif isinstance(error, aiohttp.ClientConnectorError):
        inner = cast("OSError", error.os_error)
        if cause == "lost":
            cause = "refused" if isinstance(inner, ConnectionRefusedError) else "unreachable"
    detail = getattr(inner, "verify_message", None) or getattr(inner, "strerror", None) or ""
    return TransportFailed(cause, str(detail))


def _trust(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        raise TransportFailed("ca_file", f"{ca_file!r}: {error.strerror}") from error
    return context


@functools.cache
def shared_transport(ca_file: str | None = None) -> HttpTransport:
    """The process's own transport, made at the first call; one for each extra CA file."""
    return HttpTransport(ca_file=ca_file)

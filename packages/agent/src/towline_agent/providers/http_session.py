"""One event loop's aiohttp client: sends requests, and says in our words why one failed."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from towline_agent.providers.address import is_loopback
from towline_agent.providers.transport import HttpCall, TransportFailed

__all__ = ["HARM", "ClientSession", "LineWatch", "failure", "open_socket", "trust", "watched"]

_BROKEN_PROXY: Final = "{} holds no address of a proxy; write http://HOST:PORT."
_MAX_HEADER: Final = 64 * 1024
"""Bytes of one header line; some gateways send long policies."""

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
    (HttpProcessingError, "malformed"),
    (ValueError, "address"),
)
"""What aiohttp's classes mean, the finer ones first."""


HARM: Final = (aiohttp.ClientError, HttpProcessingError, OSError)
"""What reading an answer can raise; the one in the middle where aiohttp has its parser in Python
alone."""


class _Try:
    """What is known of one try of a request."""

    __slots__ = ("fresh", "sockets")

    def __init__(self, sockets: WeakSet[socket.socket]) -> None:
        self.fresh = False  # a connection was made for it
        self.sockets = sockets  # of its session


_trying: Final[ContextVar[_Try]] = ContextVar("towline_http_try")


def open_socket(address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """A socket for a new connection, for a connector that has looked the address up.

    So a request that fails without it has been given a connection of an earlier one. aiohttp would
    tell that too, but by hooks that cost every request a tenth of its time.
    """
    made = socket.socket(*address[:3])
    tried = _trying.get(None)
    if tried is not None:
        tried.fresh = True
        tried.sockets.add(made)
    return made


class ClientSession:
    """One loop's client and how many requests it carries.

    Args:
        connector: Makes connections; its sockets are made by `open_socket`.
        connect_s: Seconds to get a connection.
    """

    def __init__(self, connector: aiohttp.TCPConnector, connect_s: float) -> None:
        self.client = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        """The client itself."""
        self.in_flight = 0
        """Requests under way."""
        self.closing = False
        """Close the client once nobody uses it."""
        self.guard: AsyncGenerator[None] | None = None
        """Closes the client when it is closed itself, at the latest with the loop."""
        self._connect_s = connect_s
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}
        self._proxies: dict[str, str | None] = {}
        self._sockets: WeakSet[socket.socket] = WeakSet()

    async def send(self, call: HttpCall) -> aiohttp.ClientResponse:
        """The answer's head.

        A connection that was used before may have been closed by the peer in the meantime. Then the
        request goes again at once (A3.7): a broken connection never comes back, so this ends.
        """
        while True:
            tried = _Try(self._sockets)
            _trying.set(tried)
            try:
                return await self._request(call)
            except aiohttp.ClientConnectorError as error:
                raise failure(error) from error
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
                if tried.fresh or _answered(error):
                    raise failure(error) from error
            except (aiohttp.ClientError, OSError, ValueError) as error:  # of odd names of hosts
                raise failure(error) from error

    def _request(self, call: HttpCall) -> Awaitable[aiohttp.ClientResponse]:
        return self.client.request(
            call.method,
            call.url,
            data=call.body,
            headers=call.headers,
            timeout=self._timeout(call.idle_s),
            allow_redirects=False,  # a redirected POST would lose its body
            proxy=self._proxy(call.url),
        )

    def _timeout(self, idle_s: float) -> aiohttp.ClientTimeout:
        """The limits of a request; models have few different ones, and making one takes time."""
        found = self._timeouts.get(idle_s)
        if found is None:
            found = aiohttp.ClientTimeout(total=None, connect=self._connect_s, sock_read=idle_s)
            self._timeouts[idle_s] = found
        return found

    def _proxy(self, url: str) -> str | None:
        """The environment's proxy for an address (A3.2).

        aiohttp's own `trust_env` would ask for it in a thread before each request, and would add a
        password out of `.netrc` to a request that must have none (A2.65).
        """
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0]
        origin = f"{scheme}://{host}"
        if origin not in self._proxies:
            direct = is_loopback(urlsplit(url).hostname or "") or proxy_bypass(host)
            found = None if direct else getproxies().get(scheme)
            self._proxies[origin] = found and _read_proxy(found, f"{scheme.upper()}_PROXY")
        return self._proxies[origin]

    async def close_if_idle(self) -> None:
        """Close the client, once it was asked for and nobody uses it."""
        if self.closing and not self.in_flight:
            await self.close()

    async def close(self) -> None:
        """Close the client now."""
        if self.guard is not None:
            await self.guard.aclose()

    async def abandon(self) -> None:
        """Close the client of a loop that is closed itself, and so can close no connection."""
        with suppress(RuntimeError):  # what still waited there has no loop to be told on
            await self.close()
        for left in list(self._sockets):
            left.close()


class LineWatch:
    """Watches the rest of an answer in aiohttp's place, in its block.

    Where aiohttp finds a chunk garbled, it closes the connection and tells no reader, who would
    wait out its idle limit. What ends a connection ends the reading here.

    Args:
        response: The answer, its head read.
    """

    __slots__ = ("_closed", "_content")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._content = response.content
        self._closed: asyncio.Future[None] | None = None
        connection = response.connection
        if connection is None or connection.protocol is None:  # all of it has come
            return
        connection.protocol.read_timeout = None  # its timer would be made anew for each chunk
        self._closed = connection.protocol.closed
        if self._closed is None:
            self._tell()

    def __enter__(self) -> None:
        closed = self._closed
        if closed is None:
            return
        if closed not in watched:
            watched.add(closed)
            closed.add_done_callback(_look_at)
        closed.add_done_callback(self._tell)

    def __exit__(self, *_: object) -> None:
        if self._closed is not None:
            self._closed.remove_done_callback(self._tell)

    def _tell(self, _: object = None) -> None:
        content = self._content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError())


watched: Final[WeakSet[asyncio.Future[None]]] = WeakSet()
"""The ends of connections that answers came over; each is looked at once, whoever reads then."""


def _look_at(closed: asyncio.Future[None]) -> None:
    """Look at why a connection has ended, else asyncio complains that nobody did."""
    if not closed.cancelled():
        closed.exception()


def _read_proxy(value: str, setting: str) -> str:
    """The address of a proxy; `http://` where it says no scheme.

    Raises:
        TransportFailed: It is unusable. The value is not shown: it may hold a password.
    """
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        usable = usable and all(char > " " for char in url)
    except ValueError:
        raise TransportFailed("proxy", _BROKEN_PROXY.format(setting)) from None
    if parts.scheme.startswith("socks"):
        raise TransportFailed(
            "proxy", f"{setting} names a SOCKS proxy, which is not supported; name an HTTP proxy."
        )
    if not usable or parts.scheme not in ("http", "https"):
        raise TransportFailed("proxy", _BROKEN_PROXY.format(setting))
    return url


def _answered(error: Exception) -> bool:
    """Whether the peer had begun its answer before it hung up."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def failure(error: Exception) -> TransportFailed:
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


def trust(ca_file: str) -> ssl.SSLContext:
    """A TLS context that trusts one more file of certificates (A2.79).

    Raises:
        TransportFailed: The file cannot be read.
    """
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ValueError) as error:  # a ValueError for what no file can be called
        told = getattr(error, "strerror", None) or "no file can be called so"
        raise TransportFailed("ca_file", f"{str(ca_file)!r}: {told}") from error
    return context

"""The transport over HTTP, on aiohttp. Imported with the first client that needs it."""

import io
import ipaddress
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from towline_client.errors import ConnectionLost, ContractUnavailable
from towline_client.transport import MAX_ANSWER_BYTES, Call, Reply, StreamReply
from towline_protocol import UsageError

__all__ = ["CONNECT_S", "KEEP_ALIVE_S", "HttpTransport"]

CONNECT_S: Final = 10.0
"""Seconds to reach the server (C4.5)."""
KEEP_ALIVE_S: Final = 10.0
"""Seconds an idle connection is kept: shorter than any server keeps it, so that a request does
not meet one that is just being closed."""

_LARGE: Final = 64 * 1024  # what a socket takes at once
_BYTES: Final = "application/octet-stream"
_LOST: Final = (aiohttp.ClientError, OSError, TimeoutError)


class HttpTransport:
    """One aiohttp session for one server address."""

    def __init__(self, url: str) -> None:
        """Make a transport; nothing is opened before the first request.

        Args:
            url: The server's address, such as `http://127.0.0.1:4747`; a path behind it is where
                the server is mounted.

        Raises:
            UsageError: The address cannot be used.
        """
        self._url = _read_url(url)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def request(self, call: Call) -> Reply:
        """Send an ordinary request and read the answer whole."""
        limits = aiohttp.ClientTimeout(total=call.timeout_s, sock_connect=CONNECT_S)
        try:
            async with await self._send(call, limits) as answer:
                body = await self._read(answer)
        except _LOST as error:
            raise self._lost(error) from error
        return Reply(status=answer.status, headers=answer.headers, body=body, address=self._address)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[StreamReply]:
        """Open a stream; how long it may be silent is the link's business."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        try:
            answer = await self._send(call, limits)
        except _LOST as error:
            raise self._lost(error) from error
        try:
            yield StreamReply(
                status=answer.status,
                headers=answer.headers,
                chunks=_Chunks(answer.content, self._lost),
                address=self._address,
            )
        finally:
            answer.close()  # an open stream has no end to wait for

    async def close(self) -> None:
        """Let go of every connection; calls after it raise `UsageError`."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(self, call: Call, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        usual = call.operation.media or "application/json"
        headers = {"accept": "text/event-stream" if call.operation.stream else usual}
        headers.update(call.headers)
        if call.body is not None:
            headers["content-type"] = _BYTES if call.operation.raw else "application/json"
        if call.token is not None:
            headers["authorization"] = f"Bearer {call.token}"
        return await self._opened().request(
            call.operation.method,
            self._url.joinpath(call.path.removeprefix("/"), encoded=True).with_query(call.query),
            data=_payload(call.body),
            headers=headers,
            timeout=limits,
            allow_redirects=False,
            proxy=_find_proxy(self._url),
        )

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        parts: list[bytes] = []
        size = 0
        while part := await answer.content.readany():
            parts.append(part)
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise ContractUnavailable(
                    f"The answer of {self._address!r} is larger than {MAX_ANSWER_BYTES} bytes, so "
                    "no towline server sent it; check the address.",
                    status=answer.status,
                    reason="not_json",
                )
        return b"".join(parts)

    @property
    def _address(self) -> str:
        return f"{self._url.scheme}://{self._url.host}:{self._url.port}"

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise UsageError("This client is closed; open a new one to go on.")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _lost(self, error: BaseException) -> ConnectionLost:
        return ConnectionLost(
            f"No answer from {self._address!r} ({_reason(error)}); check the address and that the "
            "server runs."
        )


class _Chunks:
    """A body's bytes as they come."""

    def __init__(
        self,
        content: aiohttp.StreamReader,
        lost: Callable[[BaseException], ConnectionLost],
    ) -> None:
        self._content = content
        self._lost = lost

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except _LOST as error:
            raise self._lost(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """What aiohttp sends without a word: a large body as a file, so that it goes piece by piece."""
    return body if body is None or len(body) <= _LARGE else io.BytesIO(body)


def _read_url(url: str) -> URL:
    url = url.strip()
    try:
        found = URL(url)
    except ValueError:
        found = URL()
    if found.scheme not in ("http", "https") or not found.host:
        raise UsageError(
            f"{_without_secrets(url)!r} is no server address; give one such as "
            "'http://127.0.0.1:4747'."
        )
    if found.raw_fragment or found.raw_query_string:
        raise UsageError(
            f"{_without_secrets(url)!r} has more behind it, from a '?' or '#' on; give the address "
            "alone, such as 'http://127.0.0.1:4747'."
        )
    return found.with_user(None)


def _find_proxy(url: URL) -> str | None:
    """The proxy that the environment names for an address.

    aiohttp's own look at the environment would take in `~/.netrc`, too: a password of another
    service would then leave with the requests that have no credential, and break all others.
    """
    host = url.host or ""
    # The proxy of the environment cannot reach this machine's own loopback.
    if _is_loopback(host) or proxy_bypass(host):
        return None
    proxy = getproxies().get(url.scheme)
    if proxy is None or "://" not in proxy:
        return proxy and f"http://{proxy}"
    if not proxy.startswith("http://"):
        raise UsageError(
            f"The environment names {_without_secrets(proxy)!r} as the proxy; only one that begins "
            "with 'http://' can be used. Change it, or set no_proxy."
        )
    return proxy


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _without_secrets(url: str) -> str:
    """An address as it may be shown: a query or a fragment may hold a code."""
    return url.partition("#")[0].partition("?")[0].rpartition("@")[2]


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or type(error.os_error).__name__
    if isinstance(error, TimeoutError):
        return "it took too long"
    return type(error).__name__

"""Asks web servers, and no machine of one's own network unless that was allowed (A5.29 to A5.34).

What counts is the address that a socket is about to connect to, whatever the name was resolved to
before: so no name can lead elsewhere between a check and its use.
"""

import asyncio
import socket
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver

from towline_agent.errors import ToolDenied, ToolError
from towline_agent.tools.web.address import is_public
from towline_agent.tools.web.url import WebUrl

__all__ = ["MAX_BYTES", "TIMEOUT_S", "WebAnswer", "WebClient"]

TIMEOUT_S: Final = 20.0
"""Seconds from the first look-up to the last byte, redirects included (A5.34)."""
MAX_BYTES: Final = 2_000_000
"""Bytes of a body that are read, unpacked; some hundred times what a model is shown."""
_AGENT: Final = "towline"

_PACKED_BYTES: Final = 4_000_000
"""Bytes that may come over the wire for one body: what is packed badly is longer than its content."""
_MAX_LINE: Final = 16_384
_CONNECT_S: Final = 10.0

_Address = tuple[int, int, int, str, tuple[Any, ...]]


class WebAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered."""

    status: int
    """The HTTP status."""
    reason: str
    """Its words, of the server's own choice."""
    headers: tuple[tuple[str, str], ...]
    """The headers in their order."""
    body: bytes = b""
    """The beginning of the body, or all of it, unpacked."""
    cut: str | None = None
    """Why the body is not whole, as half a sentence; `None` when it is."""

    def header(self, name: str) -> str:
        """The first header of that name; empty for none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


class _Guard:
    """Opens the sockets of one request, to the public internet alone unless it may go elsewhere."""

    def __init__(self, public: Callable[[str], bool], *, anywhere: bool) -> None:
        self.refused = False
        """Whether an address was refused."""
        self._public = public
        self._anywhere = anywhere

    def open_socket(self, address: _Address) -> socket.socket:
        """A socket for an address that is about to be connected to."""
        if not self._anywhere and not self._public(str(address[4][0])):
            self.refused = True
            raise OSError("refused")
        return socket.socket(*address[:3])


class WebClient:
    """Makes one request at a time, with nothing kept from one to the next: no cookie, no connection.

    Args:
        timeout_s: Seconds that a request may take in all.
        max_bytes: Bytes of a body that are read.
        public: Tells whether an address in numbers lies in the public internet.
        resolver: Looks names up; `None` for the system's way.
        environ_proxies: The proxies that the environment names.
    """

    def __init__(
        self,
        *,
        timeout_s: float = TIMEOUT_S,
        max_bytes: int = MAX_BYTES,
        public: Callable[[str], bool] = is_public,
        resolver: Callable[[], AbstractResolver] | None = None,
        environ_proxies: Callable[[], Mapping[str, str]] = getproxies,
    ) -> None:
        self.timeout_s = timeout_s
        """Seconds that a request may take in all."""
        self._max_bytes = max_bytes
        self._public = public
        self._resolver = resolver
        self._proxies = environ_proxies

    async def ask(
        self,
        url: WebUrl,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | bytes | None = None,
    ) -> WebAnswer:
        """Make one request; redirects are answers like others.

        A host that is private by its name was allowed by a rule or a person before this is called.

        Raises:
            ToolDenied: The host leads into one's own network, and its name did not say so.
            ToolError: There is no answer; the message says why, in our own words.
        """
        proxy = self._proxy(url)
        guard = _Guard(self._public, anywhere=url.private or proxy is not None)
        own = {"user-agent": _AGENT, "accept-encoding": "gzip, deflate"}
        try:
            async with (
                asyncio.timeout(self.timeout_s),
                self._session(guard) as session,
                session.request(
                    method,
                    url.url,
                    headers=own | {name.lower(): value for name, value in (headers or {}).items()},
                    data=body.encode() if isinstance(body, str) else body,
                    allow_redirects=False,
                    proxy=proxy,
                ) as response,
            ):
                return await self._read(response)
        except TimeoutError as error:
            raise ToolError(
                f"{url.place} took longer than {self.timeout_s:g} s; try again later, or another "
                "address."
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _explain(url, error, refused=guard.refused) from error

    def _session(self, guard: _Guard) -> aiohttp.ClientSession:
        """A client for one request."""
        connector = aiohttp.TCPConnector(
            limit=1,
            force_close=True,
            use_dns_cache=False,
            resolver=None if self._resolver is None else self._resolver(),
            socket_factory=guard.open_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # it would unpack a bomb whole
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            max_line_size=_MAX_LINE,
            max_field_size=_MAX_LINE,
        )

    def _proxy(self, url: WebUrl) -> str | None:
        """The environment's proxy for an address. It connects in our place, by its own rules."""
        if url.private or proxy_bypass(url.host):
            return None
        found = self._proxies().get(url.url.scheme)
        if not found:
            return None
        return found if "://" in found else f"http://{found}"

    async def _read(self, response: aiohttp.ClientResponse) -> WebAnswer:
        headers = tuple((name, value) for name, value in response.headers.items())
        body, cut = bytearray(), None
        unpack = _unpacker(response.headers.get("Content-Encoding", ""))
        if unpack is None:
            cut = "it is packed in a way that was not asked for"
        else:
            try:
                cut = await self._fill(body, response, unpack)
            except (aiohttp.ClientError, ConnectionError):
                cut = "the connection broke off"
            except zlib.error:
                cut = "it is packed wrongly"
        return WebAnswer(
            status=response.status,
            reason=response.reason or "",
            headers=headers,
            body=bytes(body),
            cut=cut,
        )

    async def _fill(
        self, body: bytearray, response: aiohttp.ClientResponse, unpack: "_Unpack"
    ) -> str | None:
        """Read a body to its end or to the bound; says why it stopped before."""
        packed = 0
        async for piece in response.content.iter_any():
            packed += len(piece)
            body += unpack(piece, self._max_bytes + 1 - len(body))
            if len(body) > self._max_bytes:
                del body[self._max_bytes :]
                return f"only its first {self._max_bytes} bytes were read"
            if packed > _PACKED_BYTES:
                return f"only its first {_PACKED_BYTES} packed bytes were read"
        return None


_Unpack = Callable[[bytes, int], bytes]


def _unpacker(encoding: str) -> _Unpack | None:
    """What unpacks a body piece by piece, each time so many bytes at most; `None` for no way."""
    wanted = encoding.strip().lower()
    if wanted in ("", "identity"):
        return lambda piece, most: piece[:most]
    if wanted in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress
    if wanted == "deflate":
        return _Deflate().unpack
    return None


class _Deflate:
    """Both forms that servers mean by `deflate`, told apart by the first piece."""

    def __init__(self) -> None:
        self._inner: Any = None

    def unpack(self, piece: bytes, most: int) -> bytes:
        if self._inner is None:
            whole = piece[0] & 0x0F == 8 and int.from_bytes(piece[:2], "big") % 31 == 0
            self._inner = zlib.decompressobj(zlib.MAX_WBITS if whole else -zlib.MAX_WBITS)
        return self._inner.decompress(piece, most)


def _explain(url: WebUrl, error: Exception, *, refused: bool) -> ToolError:
    """An exception as a sentence without its text: that may hold a proxy's password."""
    if refused:
        return ToolDenied(
            f"{url.place} leads to a private address, which is not reached by a public name. If "
            "that is wanted, name the address itself, such as http://127.0.0.1:8000/; a person is "
            "asked then."
        )
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (aiohttp.ClientConnectorCertificateError, "has a certificate that is not trusted"),
        (aiohttp.ClientConnectorSSLError, "does not speak TLS as it should"),
        (aiohttp.ClientConnectorDNSError, "is not known; check the name"),
        (aiohttp.ClientProxyConnectionError, "can't be reached: the proxy does not answer"),
        (aiohttp.ClientHttpProxyError, "can't be reached: the proxy refuses"),
        (aiohttp.ServerTimeoutError, "does not answer"),
        (aiohttp.ClientConnectorError, "refuses the connection, or is not reachable"),
        (aiohttp.ClientResponseError, "answers with something that is no HTTP"),
    )
    why = next((words for kind, words in kinds if isinstance(error, kind)), "broke the connection")
    return ToolError(f"{url.place} {why}.")


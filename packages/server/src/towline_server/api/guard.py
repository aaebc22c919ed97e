"""What every request passes: names, hosts, sizes, headers. Pure ASGI (D12)."""

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders

from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION, Fault, TowlineError
from towline_server.api.problem import problem
from towline_server.errors import HostRefused

__all__ = [
    "MAX_BODY",
    "MAX_PROMPT_BODY",
    "App",
    "Guard",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "request_id",
]

MAX_BODY: Final = 1024 * 1024
"""Bytes of an ordinary body (C6)."""
MAX_PROMPT_BODY: Final = 28 * 1024 * 1024
"""Bytes of a body that carries what a person sends (C6)."""

_log: Final = logging.getLogger("towline.server.http")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})

Scope = MutableMapping[str, Any]
"""ASGI: what is known of a connection."""
Message = MutableMapping[str, Any]
"""ASGI: a piece of a request or of an answer."""
Receive = Callable[[], Awaitable[Message]]
"""ASGI: where a request comes from."""
Send = Callable[[Message], Awaitable[None]]
"""ASGI: where an answer goes."""
App = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI app."""


def request_id(scope: Scope) -> str:
    """How the log names this request."""
    return str(scope.get("towline.request_id", ""))


class Guard:
    """Refuses foreign hosts and origins, and gives each answer the contract's headers.

    The `Host` check keeps a page of another site from reaching a loopback server through a name of
    its own; the `Origin` check keeps it from writing with the cookie of this one.
    """

    def __init__(self, app: App, *, hosts: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._hosts = _LOOPBACK | hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        name = given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}"
        scope["towline.request_id"] = name
        began = time.perf_counter()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = MutableHeaders(scope=message)
                own.setdefault(CONTRACT_HEADER, CONTRACT_VERSION)
                own.setdefault("x-request-id", name)
                own.setdefault("x-content-type-options", "nosniff")
                own.setdefault("cache-control", "no-store")
            await send(message)

        try:
            fault = self._refusal(scope, headers)
            if fault is not None:
                await problem(fault, name)(scope, receive, answer)
                return
            await self._app(scope, receive, answer)
        finally:
            took_ms = (time.perf_counter() - began) * 1000
            _log.debug("%s %s %s %d %.1f ms", name, scope["method"], scope["path"], status, took_ms)

    def _refusal(self, scope: Scope, headers: Headers) -> Fault | None:
        host = headers.get("host", "")
        name = _without_port(host)
        if name not in self._hosts:
            return _refused(
                f"The host {host!r} is not one of this server's names; use its address."
            )
        if scope["method"] in _SAFE:
            return None
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refused(
                f"The origin {origin!r} may not write here; open this server's own page."
            )
        return None


def _refused(message: str) -> Fault:
    error: TowlineError = HostRefused(message)
    return error.fault()


def _without_port(host: str) -> str:
    """The name in a `Host` header, lower case."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()

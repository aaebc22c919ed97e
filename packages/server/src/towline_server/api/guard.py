"""What every request passes: names, hosts, sizes, headers. Pure ASGI (D12)."""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Container, MutableMapping
from typing import Any, Final, cast

from starlette.datastructures import Headers, MutableHeaders

from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION, TowlineError, VersionMismatch
from towline_server.api.cors import Origins
from towline_server.api.problem import problem
from towline_server.api.trace import name_request, read_trace
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
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]\\]+)(?::[0-9]{0,5})?")
_HSTS: Final = "max-age=15552000"  # 180 days; never for loopback, where it would bind all ports
_EVERY: Final = {
    CONTRACT_HEADER: CONTRACT_VERSION,
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""What every answer carries that says nothing else itself."""

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
    """Refuses foreign hosts, origins and contracts, and gives each answer the contract's headers.

    The `Host` check keeps a page of another site from reaching a loopback server through a name of
    its own; the `Origin` check keeps it from writing with the cookie of this one.
    """

    def __init__(
        self, app: App, *, hosts: Container[str] = frozenset(), origins: tuple[str, ...] = ()
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = Origins(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        name = scope["towline.request_id"] = name_request(headers)
        began = time.perf_counter()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = MutableHeaders(scope=message)
                for header, value in _EVERY.items():
                    own.setdefault(header, value)
                own.setdefault("x-request-id", name)
                if (
                    scope["scheme"] == "https"
                    and _without_port(headers.get("host", "")) not in _LOOPBACK
                ):
                    own.setdefault("strict-transport-security", _HSTS)
                self._origins.mark(headers, own)
            await send(message)

        try:
            await self._checked(scope, headers)(scope, receive, answer)
        finally:
            _note(scope, headers, status, (time.perf_counter() - began) * 1000)

    def _is_ours(self, name: str) -> bool:
        return name in _LOOPBACK or name in self._hosts

    def _checked(self, scope: Scope, headers: Headers) -> App:
        """Who answers a request: the app, unless it is refused or a browser's question."""
        name = request_id(scope)
        host = headers.get("host", "")
        if not self._is_ours(_without_port(host)):
            error = f"The host {host!r} is not one of this server's names; use its address."
            return _refusal(HostRefused(error), name)
        if scope["method"] not in _SAFE and not self._origins.may_write(headers, scope["scheme"]):
            error = (
                f"The origin {headers.get('origin')!r} may not write here; open this server's own "
                "page, or add it to `origins` in config.toml."
            )
            return _refusal(HostRefused(error), name)
        preflight = self._origins.preflight(scope["method"], headers)
        if preflight is not None:
            return cast("App", preflight)
        contract = headers.get(CONTRACT_HEADER, CONTRACT_VERSION)
        if contract.partition(".")[0] != CONTRACT_VERSION:
            error = (
                f"The request speaks contract {contract[:20]!r}, this server {CONTRACT_VERSION!r}; "
                "update the older of the two."
            )
            return _refusal(VersionMismatch(error), name)
        return self._app


def _note(scope: Scope, headers: Headers, status: int, took_ms: float) -> None:
    """One line about a request that has been answered; never its query."""
    if not _log.isEnabledFor(logging.DEBUG):
        return
    name, method, path = request_id(scope), scope["method"], scope["path"]
    known: dict[str, Any] = {
        "request_id": name,
        "trace": read_trace(headers),
        "session": scope.get("path_params", {}).get("session"),
        "method": method,
        "path": path,
        "status": status,
        "duration_ms": round(took_ms, 1),
    }
    _log.debug("%s %s %s %d %.1f ms", name, method, path, status, took_ms, extra=known)


def _refusal(error: TowlineError, name: str) -> App:
    return cast("App", problem(error.fault(), name))


def _without_port(host: str) -> str:
    """The name in a `Host` header, lower case; nothing where more stands there than a port."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1].lower()

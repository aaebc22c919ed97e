"""Pages of other sites that may call this server (C2.8), and all others, which may not write."""

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from towline_protocol import CONTRACT_HEADER
from towline_server.api.deadline import TIMEOUT_HEADER

__all__ = ["EXPOSED", "Origins"]

EXPOSED: Final = (CONTRACT_HEADER, "etag", "retry-after", "x-request-id", "location")
"""Headers of an answer that such a page may read."""

_TAKEN: Final = (
    "authorization",
    "content-type",
    "idempotency-key",
    "if-match",
    "last-event-id",
    CONTRACT_HEADER,
    TIMEOUT_HEADER,
    "traceparent",
    "x-request-id",
)
_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
_ANY: Final = "*"
_KEPT_S: Final = 600  # a browser asks again after that, so that a changed setting counts soon


class Origins:
    """The origins that are allowed, by the setting `origins`."""

    def __init__(self, allowed: tuple[str, ...] = ()) -> None:
        self._named = frozenset(allowed) - {_ANY}
        self._any = _ANY in allowed

    def may_write(self, headers: Headers, scheme: str = "http") -> bool:
        """Whether the page that a request comes from may change something.

        Its own name over plain HTTP is not this server's page when that comes over HTTPS: anybody
        on the way can make one. The other way round a proxy may not have told of its HTTPS.

        Under `*` a foreign page must bring a token of its own: with the cookie of this server's
        page any site could write in its name.
        """
        origin = headers.get("origin")
        if origin is None:
            return True
        came_by, _, name = origin.partition("://")
        if name == headers.get("host", "") and came_by in {scheme, "https"}:
            return True
        return origin.lower() in self._named or (self._any and "cookie" not in headers)

    def preflight(self, method: str, headers: Headers) -> Response | None:
        """The answer to a browser that asks first; `None` when it is no such question.

        An origin that is not allowed gets the answer of everybody, which lets it do nothing.
        """
        asked = method == "OPTIONS" and "access-control-request-method" in headers
        if not asked or self._allowed(headers.get("origin")) is None:
            return None
        return Response(
            status_code=204,
            headers={
                "access-control-allow-methods": _METHODS,
                "access-control-allow-headers": ", ".join(_TAKEN),
                "access-control-max-age": str(_KEPT_S),
            },
        )

    def mark(self, asked: Headers, answer: MutableHeaders) -> None:
        """Say on an answer who may read it."""
        if not self._named and not self._any:
            return
        answer.add_vary_header("origin")
        allowed = self._allowed(asked.get("origin"))
        if allowed is None:
            return
        answer["access-control-allow-origin"] = allowed
        answer["access-control-expose-headers"] = ", ".join(EXPOSED)
        if allowed != _ANY:
            answer["access-control-allow-credentials"] = "true"

    def _allowed(self, origin: str | None) -> str | None:
        if origin is None:
            return None
        if origin.lower() in self._named:
            return origin
        return _ANY if self._any else None

"""The transport seam: one HTTP exchange with a provider, whatever its dialect (A3.1)."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Protocol

import msgspec

from towline_protocol import SseEvent, TowlineError

__all__ = [
    "CA_SETTING",
    "HttpAnswer",
    "HttpCall",
    "Transport",
    "TransportFailed",
    "is_document",
]

CA_SETTING: Final = "TOWLINE_CA_FILE"
"""The environment variable that names a PEM file to trust besides the system's (A2.79)."""

_DOCUMENT_STARTS: Final = (b"{", b"[", b"<")


class HttpCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request. Its `repr` shows neither headers nor body: both may hold secrets."""

    url: str
    """The whole address."""
    method: str = "POST"
    """`POST` or `GET`."""
    headers: dict[str, str] = {}
    """Names in lower case. Without `authorization` none is sent (A2.65)."""
    body: bytes | None = None
    """The bytes to send."""
    idle_s: float = 120.0
    """Seconds without a byte after which the answer is given up (A3.4)."""

    def __repr__(self) -> str:
        size = len(self.body or b"")
        return f"HttpCall({self.method!r}, {self.url!r}, {size} bytes)"


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str] = {}
    """Names in lower case; of a repeated one the last."""
    body: bytes = b""
    """The whole body of a document; empty when the body was a stream of events."""


class TransportFailed(TowlineError):
    """There is no answer, or its end is missing. `reason` names the cause (A3.T11).

    `dns`, `certificate`, `tls`, `refused`, `unreachable`, `proxy`, `connect_timeout`, `idle`,
    `no_answer` (something kept the line warm, and no answer came),
    `lost` (the connection broke), `cut` (the body ended too early), `too_large`, `malformed` (no
    HTTP), `address` (no usable URL) or `ca_file`.
    """

    code: ClassVar[str] = "upstream_unavailable"

    def __init__(self, cause: str, detail: str = "") -> None:
        super().__init__(f"No answer ({cause}). {detail}".rstrip(), reason=cause)
        self.cause = cause
        """One word of the list above."""
        self.detail = detail
        """The system's own words; may be empty. Never holds a header or a body."""


class Transport(Protocol):
    """Sends requests and reads answers.

    Both calls raise `TransportFailed` and nothing else of their own; an HTTP error status is an
    answer. Cancelling closes the connection before the cancellation goes on (A3.11). `aclose` gives
    back idle connections at once and the others when their answer ends; it is idempotent, and the
    transport may be used again.
    """

    async def sse(self, call: HttpCall, on_event: Callable[[SseEvent], bool]) -> HttpAnswer:
        """Send a request whose answer should be a stream of events.

        Args:
            call: The request.
            on_event: Called with each event in order. It returns whether all that matters has
                come; the rest of the stream is still read, for a short while, and still told, so
                that the connection can be used again (A3.8). A later event may take that back.

        Returns:
            The status; with a body when it was an error or a document after all.
        """
        ...

    async def json(self, call: HttpCall) -> HttpAnswer:
        """Send a request and read the whole answer."""
        ...

    async def aclose(self) -> None:
        """Give back connections."""
        ...


def is_document(head: bytes) -> bool:
    """Whether a body that begins so is a document: no stream of events has such a first byte.

    The content type is not asked; gateways send errors as streams and streams as text (A2.20).
    """
    return head.lstrip(b" \t\r\n").startswith(_DOCUMENT_STARTS)

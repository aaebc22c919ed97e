"""What lies below ASGI: the transport of a connection, how much of it is on its way, rude peers.

ASGI shows none of them. Without the first two a slow reader cannot be told from a stuck one, and a
stuck one cannot be let go at once; without bounds of its own a connection that says half a request
and waits is kept for ever.
"""

import array
import asyncio
import fcntl
import resource
import socket
import sys
import termios
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from towline_protocol import CONTRACT_HEADER, CONTRACT_VERSION, FAULT_CODES, Problem, encode

__all__ = [
    "BODY_STALL_S",
    "HEAD_S",
    "MAX_CONNECTIONS",
    "TRANSPORT_KEY",
    "StreamProtocol",
    "bound_connections",
    "transport_of",
    "unsent_bytes",
]

TRANSPORT_KEY: Final = "towline.transport"
"""Where the transport lies in `scope["state"]`."""
HEAD_S: Final = 10.0
"""Seconds that the head of a request may take, from its first byte or from the connection on."""
BODY_STALL_S: Final = 30.0
"""Seconds in which at least one byte of a body must come."""
MAX_CONNECTIONS: Final = 4096
"""Connections at once, if the process may have so many descriptors: far more than the readers of
one machine's sessions, few enough that all their buffers fit into memory."""

_SO_NWRITE: Final = 0x1024  # macOS: bytes the peer has not taken; not in the socket module
_OWN_FILES: Final = 128  # descriptors for the store, tools and providers
_LEAST: Final = 64
_RETRY_S: Final = 5


def bound_connections() -> int:
    """How many connections there may be: so few that descriptors are left for the server's own."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(_LEAST, min(MAX_CONNECTIONS, soft - _OWN_FILES))


class StreamProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, which also puts its transport into `scope["state"]`.

    It lets go of a peer that does not end what it began, and refuses connections beyond a bound.
    What it says itself has the contract's header and is a problem, as all other answers (C2.1).
    For `uvicorn.Config(http=StreamProtocol)`; a test makes a subclass with other bounds.
    """

    head_s: ClassVar[float] = HEAD_S
    """Seconds that a request's head may take."""
    body_stall_s: ClassVar[float] = BODY_STALL_S
    """Seconds in which at least one byte of a body must come."""
    max_connections: ClassVar[int] = bound_connections()
    """Connections at once."""

    _timer: asyncio.TimerHandle | None = None
    _watched: str | None = None
    _surplus: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn declares it
        """Note the transport, and begin to wait for a request."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT_KEY: transport}
        if len(self.connections) > self.max_connections:
            self._surplus = True
            self._refuse(
                "capacity_exceeded",
                f"This server has {self.max_connections} connections already; come back soon.",
                retry_after_s=_RETRY_S,
            )
        else:
            self._watch("head")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._watch(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and see what the peer owes now."""
        if self._surplus:
            return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """An answer is out; the next request may have begun already."""
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse("invalid_request", f"{msg.rstrip('.')}; speak HTTP/1.1.")

    def _look(self) -> None:
        """Wait for the rest of a request that has begun."""
        state = self.conn.their_state
        if self.transport.is_closing():
            self._watch(None)
        elif state is h11.SEND_BODY:
            self._watch("body")
        elif state is h11.IDLE and (self._watched == "head" or self.conn.trailing_data[0]):
            if self._watched != "head":  # counted from its first byte, not from its last
                self._watch("head")
        else:
            self._watch(None)

    def _watch(self, part: str | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._watched = part
        self._timer = None
        if part is not None:
            limit_s = self.head_s if part == "head" else self.body_stall_s
            self._timer = self.loop.call_later(limit_s, self._give_up)

    def _give_up(self) -> None:
        """The peer has not ended what it began."""
        part = self._watched
        self._timer = None
        if self.transport.is_closing():
            return
        if part == "body" and self.flow.read_paused:
            self._watch("body")  # it is the app that does not take what came
        elif part == "head" and not self.conn.trailing_data[0]:
            self.transport.close()  # it asked nothing, so it gets no answer
        elif self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            limit_s = self.head_s if part == "head" else self.body_stall_s
            self._refuse(
                "invalid_request",
                f"The request's {part} did not come to its end; {limit_s:g} s were waited for it. "
                "Send it anew.",
                reason="request_timeout",
            )
        else:
            self.transport.abort()  # its answer is out already

    def _refuse(
        self,
        code: str,
        message: str,
        *,
        reason: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """Answer on the connection itself, and close it."""
        row = FAULT_CODES[code]
        problem = Problem(
            title=code.replace("_", " "),
            status=row.status,
            detail=message,
            code=code,
            retry=row.retry,
            retry_after_s=retry_after_s,
            scope="limit" if code == "capacity_exceeded" else None,
            reason=reason,
        )
        self._watch(None)
        self._send(row.status, encode(problem), retry_after_s)
        self.transport.close()
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None:
            cycle.disconnected = True  # what the app still says goes nowhere
            cycle.message_event.set()

    def _send(self, status: int, body: bytes, retry_after_s: int | None) -> None:
        headers = [
            ("content-type", "application/problem+json"),
            ("content-length", f"{len(body)}"),
            ("cache-control", "no-store"),
            ("connection", "close"),
            (CONTRACT_HEADER, CONTRACT_VERSION),
        ]
        if retry_after_s is not None:
            headers.append(("retry-after", f"{retry_after_s}"))
        head = h11.Response(
            status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode()
        )
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")


def transport_of(scope: Mapping[str, Any]) -> asyncio.Transport | None:
    """The connection's transport; `None` under another server."""
    state = cast("Mapping[str, Any]", scope.get("state") or {})
    found = state.get(TRANSPORT_KEY)
    return found if isinstance(found, asyncio.Transport) else None


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Bytes that the peer has not taken yet: those of the transport and those of the kernel.

    Where the kernel does not tell, those of the transport alone.
    """
    waiting = transport.get_write_buffer_size()
    sock = cast("socket.socket | None", transport.get_extra_info("socket"))
    if sock is None or sock.fileno() < 0:
        return waiting
    try:
        if sys.platform == "darwin":
            return waiting + sock.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
        count = array.array("i", [0])
        fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, count)
        return waiting + count[0]
    except OSError:  # no such question for this kind of socket
        return waiting

"""What lies below ASGI: the transport of a connection, and how much of it is on its way.

ASGI shows neither. Without them a slow reader cannot be told from a stuck one, and a stuck one
cannot be let go at once.
"""

import array
import asyncio
import fcntl
import socket
import sys
import termios
from collections.abc import Mapping
from typing import Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["TRANSPORT_KEY", "StreamProtocol", "transport_of", "unsent_bytes"]

TRANSPORT_KEY: Final = "towline.transport"
"""Where the transport lies in `scope["state"]`."""

_SO_NWRITE: Final = 0x1024  # macOS: bytes the peer has not taken; not in the socket module


class StreamProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, which also puts its transport into `scope["state"]`.

    For `uvicorn.Config(http=StreamProtocol)`.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn declares it
        """Note the transport."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT_KEY: transport}


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

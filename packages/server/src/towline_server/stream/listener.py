"""The listening socket: found, bound, and set so that no dead peer is kept (C3.8)."""

import errno
import os
import socket
import sys
from typing import Final

from towline_protocol import UsageError
from towline_server.errors import AddressInUse

__all__ = ["BACKLOG", "SEND_BUFFER_BYTES", "USER_TIMEOUT_MS", "open_listener"]

SEND_BUFFER_BYTES: Final = 256 * 1024
"""What the kernel holds for one peer: a fixed size, so that a stalled one is noticed (C3.8)."""
USER_TIMEOUT_MS: Final = 30_000
"""Milliseconds that sent bytes may stay unacknowledged, then the kernel drops the peer (C3.8)."""
BACKLOG: Final = 2048
"""Connections that may wait to be accepted: after a restart all clients come at once."""


def open_listener(host: str, port: int, *, others: int = 0) -> socket.socket:
    """A socket that listens; every connection it accepts has its settings.

    Args:
        host: An address or a name of this machine.
        port: The port; 0 for any free one.
        others: How many of the following ports may be tried when it is taken (D1).

    Raises:
        AddressInUse: The port and the others are taken.
        UsageError: The host is none of this machine, or the port is not for this user.
    """
    family, address = _resolve(host, port)
    last = min(port + others, 65535) if port else port
    for number in range(port, last + 1):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            _prepare(listener)
            listener.bind((address, number))
            listener.listen(BACKLOG)
            return listener
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise UsageError(_unusable(host, number, error)) from error
    ports = f"port {port!r} is" if last == port else f"the ports {port!r} to {last!r} are"
    raise AddressInUse(
        f"At {host!r} {ports} in use by another program. Stop it, or choose another port with "
        "--port or TOWLINE_PORT."
    )


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"The host {host!r} cannot be found; use an address of this machine, such as "
            "'127.0.0.1' or '0.0.0.0'."
        ) from error
    family, _, _, _, address = found[0]
    return family, str(address[0])


def _prepare(listener: socket.socket) -> None:
    listener.setblocking(False)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    if listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)


def _unusable(host: str, port: int, error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Port {port!r} is not for this user; choose one above 1023 with --port."
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"The host {host!r} is no address of this machine; use one that is, such as "
            "'127.0.0.1' or '0.0.0.0'."
        )
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"Cannot listen at {host!r}, port {port!r} ({reason}); choose another address."

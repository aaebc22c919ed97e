"""The names that a server is reached by, and whether it listens to this machine alone."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

__all__ = ["Hosts", "is_loopback", "reach_url"]


class Hosts:
    """The names that a request may call this server by, lower case and without a port.

    A page of another site reaches a server by a name of its own that leads here. So names are
    listed: loopback, the machine's own, the one that is listened at, and those that are set. On a
    network any bare address is taken too: no name leads to one, so a page that was loaded from it
    came from this server.
    """

    def __init__(self, host: str, names: Iterable[str] = (), *, url: str | None = None) -> None:
        """Gather the names.

        Args:
            host: What is listened at.
            names: More names.
            url: The address that links name, if it is another one.
        """
        machine = socket.gethostname().lower()
        short = machine.partition(".")[0]
        own = {host.lower(), machine, short, f"{short}.local", *(name.lower() for name in names)}
        if url is not None:
            own.add((urlsplit(url).hostname or "").lower())
        self._names = frozenset(own - {""})
        self._addresses = not is_loopback(host)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        bare = name.removeprefix("[").removesuffix("]")
        return bare in self._names or (self._addresses and _is_address(bare))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at `host`; a doubtful name does not count."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def reach_url(host: str, port: int) -> str:
    """The address by which another device reaches what listens at `host`.

    Where all addresses are listened at, it names the one that this machine is known by outside;
    nothing is sent to find it.
    """
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = _outer_address() or socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _outer_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address of nobody's: only the route is looked up
            found = str(probe.getsockname()[0])
        except OSError:
            return None
    return None if is_loopback(found) else found


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

"""Which addresses and hosts lie in the public internet (A5.32). Pure."""

import ipaddress
import socket
from typing import Final

__all__ = ["is_literal", "is_public", "looks_private", "read_number"]

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_REFUSED: Final[tuple[_Network, ...]] = tuple(
    ipaddress.ip_network(net)
    for net in (
        "0.0.0.0/8",  # this machine
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, and the metadata of clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # the relay of 6to4
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",
        "::/96",  # unspecified, loopback, and an old form of IPv4
        "::ffff:0:0/96",  # IPv4 in IPv6
        "::ffff:0:0:0/96",
        "64:ff9b:1::/48",  # NAT64 of one's own network
        "100::/64",
        "2001::/23",  # Teredo and other tunnels
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",  # one's own network
        "fe80::/10",  # link-local
        "fec0::/10",
        "ff00::/8",  # multicast
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL: Final = frozenset(
    {"arpa", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain",
     "localhost", "onion", "private", "test"}
)  # fmt: skip
"""Last labels of names that lead into one's own network, or nowhere."""
_ISATAP: Final = (b"\0\0\x5e\xfe", b"\2\0\x5e\xfe")
"""What stands before an IPv4 address in some tunnels."""


def is_public(address: str) -> bool:
    """Whether an IP address, as a socket connects to it, lies in the public internet.

    IPv6 addresses that lead to an IPv4 address on the way are judged by that one or refused.

    Args:
        address: The address in numbers, with or without a zone.
    """
    bare, _, zone = address.partition("%")
    if zone:
        return False
    try:
        ip = ipaddress.ip_address(bare)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)))
        if ip.packed[8:12] in _ISATAP:
            return False
    return ip.is_global and not any(ip in net for net in _REFUSED)


def is_literal(host: str) -> bool:
    """Whether a host is an address in numbers rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def read_number(host: str) -> str | None:
    """The IPv4 address that the system reads in a host such as `0x7f.1`; `None` for a name."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, ValueError, UnicodeError):
        return None


def looks_private(host: str) -> bool:
    """Whether a host leads into one's own network as far as its name says; nobody is asked.

    A name that says nothing of it is judged by the address that is connected to in the end.

    Args:
        host: In lower case, in ASCII, without a dot at its end.
    """
    if is_literal(host):
        return not is_public(host)
    return "." not in host or host.rpartition(".")[2] in _LOCAL

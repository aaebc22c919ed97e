"""Whether a server can be read by others on its network, and how to reach one that cannot."""

from typing import Final
from urllib.parse import urlsplit

from towline_server import Config, is_loopback

__all__ = ["HOW_TO_OPEN", "describe_phone", "is_only_here", "warn_of_plain_http"]

HOW_TO_OPEN: Final = (
    "For another device, listen on your network (`towline users password`, then `towline up --host "
    "0.0.0.0`), or set `url` in config.toml to the address that a proxy or a tunnel gives it: "
    "docs/phone.md has all ways."
)
"""What to do where no other device reaches the server."""


_WAYS: Final = """\
not yet: this server can be reached on this machine alone. Three ways, all in docs/phone.md:
Tailscale: `tailscale serve --bg {port}`, and in config.toml `url = "https://MACHINE.TAILNET.ts.net"`
a proxy with HTTPS in front, such as Caddy, and in config.toml `url = "https://…"`
the same network: `towline users password`, then `towline up --host 0.0.0.0`. That is plain HTTP: a
phone gets no installation, no notifications and nothing offline"""
_SCAN: Final = "scan the picture, or open the link there"
_PLAIN: Final = """\
{scan}, in the same network. Over plain HTTP it
gets no installation, no notifications and nothing offline: docs/phone.md"""


def describe_phone(url: str, port: int, *, drawn: bool) -> list[str]:
    """How a phone comes in, line by line, and what it lacks that way.

    Args:
        url: The address that other devices are told.
        port: The port on this machine.
        drawn: Whether the link was drawn for a camera.
    """
    scan = _SCAN if drawn else "open the link there"
    if is_only_here(url):
        return list(_WAYS.format(port=port).splitlines())
    if url.startswith("https:"):
        return [f"{scan}, then install it from the browser's menu"]
    return list(_PLAIN.format(scan=scan).splitlines())


def is_only_here(url: str) -> bool:
    """Whether an address leads to this machine alone."""
    return is_loopback(urlsplit(url).hostname or "localhost")


def warn_of_plain_http(config: Config) -> str | None:
    """What a person should know before passwords go over a network unencrypted, if they would."""
    if is_loopback(config.host) or (config.url or "").startswith("https:"):
        return None
    return (
        f"The server listens at {config.host!r} over plain HTTP: whoever can read the traffic gets "
        "passwords and tokens. Put HTTPS in front and set `url`, or use it only where you trust "
        "every device: docs/network.md."
    )

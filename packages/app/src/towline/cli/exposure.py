"""Whether a server can be read by others on its network, and how to reach one that cannot."""

from urllib.parse import urlsplit

from towline_server import Config, is_loopback

__all__ = ["HOW_TO_OPEN", "is_only_here", "warn_of_plain_http"]

HOW_TO_OPEN = (
    "For another device, listen on your network (`towline users password`, then `towline up --host "
    "0.0.0.0`), or set `url` in config.toml to the address that a proxy or a tunnel gives it: "
    "docs/network.md has all ways."
)
"""What to do where no other device reaches the server."""


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

"""What a server says of itself."""

from towline_protocol.commands.body import Body

__all__ = ["Health"]


class Health(Body, frozen=True, kw_only=True):
    """The server lives."""

    status: str
    """`ok`."""
    server_version: str
    """Its version."""
    pid: int
    """Its process id."""

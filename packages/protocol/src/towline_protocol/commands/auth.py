"""Who one is: codes, tokens, accounts."""

from towline_protocol.commands.body import Body

__all__ = ["Claim", "Claimed", "Identity", "Pairing"]


class Claim(Body, frozen=True, kw_only=True):
    """A one-time code, to be turned into a token."""

    code: str
    """The code as it was shown; case and dashes do not matter."""
    cookie: bool = False
    """Whether the token is also set as a cookie, for browsers."""
    name: str = ""
    """What the device calls itself."""


class Claimed(Body, frozen=True, kw_only=True):
    """A code that was accepted."""

    token: str | None = None
    """The device's token; `None` when it was set as a cookie."""
    user: str
    """Who one is now."""


class Pairing(Body, frozen=True, kw_only=True):
    """A new one-time code."""

    code: str
    """8 characters; works once."""
    url: str
    """The page with the code in its fragment."""
    expires_at: str
    """RFC 3339 time."""


class Identity(Body, frozen=True, kw_only=True):
    """Who the caller is."""

    user: str
    """The user's name."""
    server_name: str
    """What the server calls itself."""

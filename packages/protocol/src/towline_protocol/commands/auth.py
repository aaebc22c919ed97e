"""Who one is: codes, passwords, tokens, users."""

from towline_protocol.commands.body import Body

__all__ = [
    "AddUser",
    "ChangePassword",
    "Claim",
    "Claimed",
    "CreateToken",
    "Identity",
    "LoggedIn",
    "Login",
    "NewToken",
    "Pairing",
    "TokenInfo",
    "TokenList",
    "UserInfo",
    "UserList",
]


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


class Login(Body, frozen=True, kw_only=True):
    """A name and a password, to be turned into a token of 24 hours."""

    password: str
    """The password."""
    user: str = "owner"
    """The user's name; case does not matter."""
    cookie: bool = False
    """Whether the token is set as a cookie instead, for browsers."""
    name: str = ""
    """What the device calls itself."""


class LoggedIn(Body, frozen=True, kw_only=True):
    """A password that was right."""

    token: str | None = None
    """The token; `None` when it was set as a cookie."""
    user: str
    """Who one is now."""
    expires_at: str
    """RFC 3339 time at which the token ends."""


class Pairing(Body, frozen=True, kw_only=True):
    """A new one-time code."""

    code: str
    """8 characters; works once."""
    url: str
    """The page with the code in its fragment, at an address that other devices reach."""
    qr: str = ""
    """An SVG picture of `url`, for a camera."""
    expires_at: str
    """RFC 3339 time."""


class Identity(Body, frozen=True, kw_only=True):
    """Who the caller is."""

    user: str
    """The user's name."""
    server_name: str
    """What the server calls itself."""
    admin: bool = False
    """Whether they may change what concerns everybody."""


class CreateToken(Body, frozen=True, kw_only=True):
    """What a new token is called and how long it works."""

    name: str
    """What it is for, such as the name of a program."""
    lifetime_s: int | None = None
    """Seconds that it works; `None` for until it is revoked."""


class NewToken(Body, frozen=True, kw_only=True):
    """A token that was just made."""

    id: str
    """Names it in lists; no secret."""
    token: str
    """The token itself. It is told this once and can never be read again."""
    name: str
    """What it is for."""
    expires_at: str | None = None
    """RFC 3339 time at which it ends; `None` for never."""


class TokenInfo(Body, frozen=True, kw_only=True):
    """One credential of a user: a paired device, a login, a token of a program."""

    id: str
    """Names it; no secret."""
    name: str
    """What the device calls itself, or what the token is for."""
    kind: str
    """How it came to be: `device` (a code), `login` (a password) or `program` (made by name)."""
    created: str
    """RFC 3339 time."""
    last_used: str
    """RFC 3339 time, exact to the hour."""
    expires_at: str | None = None
    """RFC 3339 time at which it ends; for a device it moves on with each use."""
    current: bool = False
    """Whether the call came with this one."""


class TokenList(Body, frozen=True, kw_only=True):
    """The caller's credentials."""

    tokens: tuple[TokenInfo, ...]
    """Oldest first."""


class UserInfo(Body, frozen=True, kw_only=True):
    """One user."""

    name: str
    """The name."""
    admin: bool = False
    """Whether they may change what concerns everybody."""
    has_password: bool = False
    """Whether they can log in with one."""
    created: str
    """RFC 3339 time."""


class UserList(Body, frozen=True, kw_only=True):
    """The users of a server."""

    users: tuple[UserInfo, ...]
    """By name."""


class AddUser(Body, frozen=True, kw_only=True):
    """A new user."""

    name: str
    """Lower-case letters, digits, `.`, `_` and `-`, at most 64."""
    password: str
    """What they log in with; 8 characters at least."""
    admin: bool = False
    """Whether they may change what concerns everybody."""
    restore: bool = False
    """Whether a removed user of this name comes back, with the sessions that are still stored."""


class ChangePassword(Body, frozen=True, kw_only=True):
    """A new password. It ends the user's logins, except the one that asks."""

    password: str
    """The new one; 8 characters at least."""
    old: str | None = None
    """The old one; needed to change one's own."""
    everywhere: bool = False
    """Whether the user's devices and programs are let go as well."""

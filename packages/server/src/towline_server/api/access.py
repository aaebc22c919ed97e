"""Who is asking (C2, auth): bearer tokens for programs, a cookie for the page."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from starlette.requests import Request

from towline_protocol import UsageError, format_time
from towline_server.auth.codes import CODE_LIFE_S, Codes
from towline_server.auth.token import hash_token, new_token
from towline_server.errors import AccessDenied, StoreError
from towline_server.store import tokens
from towline_server.store.sqlite_store import SqliteStore
from towline_server.store.tokens import Token

__all__ = ["DEVICE_LIFE_S", "NOBODY", "OWNER", "Access", "Caller"]

OWNER: Final = "owner"
"""The one user of a server without accounts."""
DEVICE_LIFE_S: Final = 180 * 24 * 3600
"""Seconds that a device's token lives, counted anew with each use."""

_NAME_CHARS: Final = 80
_TOUCH_MS: Final = 3600 * 1000  # a use is noted once an hour, not with each request


class Caller(NamedTuple):
    """Who a request comes from."""

    user: str
    """The user's name."""
    admin: bool = False
    """Whether they may change what concerns everybody."""


NOBODY: Final = Caller("")
"""Who calls an operation that takes no credential."""


class Access:
    """Knows tokens and codes; says who a request comes from."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        server_id: str,
        local_token: str,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self.codes = Codes(monotonic)
        """One-time codes that wait to be claimed."""
        self.cookie = f"towline-{server_id}"
        """The cookie's name: cookies ignore ports, so it carries the server's id."""
        self._store = store
        self._local = hash_token(local_token)
        self._now_ms = now_ms

    async def caller(self, request: Request) -> Caller:
        """Who a request comes from.

        Raises:
            AccessDenied: It carries no credential, or one that is unknown or too old.
        """
        token = self.credential(request)
        if token is None:
            raise AccessDenied(
                "This server wants to know who you are; open the link that `towline pair` prints.",
                reason="missing",
            )
        hashed = hash_token(token)
        if hashed == self._local:
            return Caller(OWNER, admin=True)
        now_ms = self._now_ms()
        found = await self._store.query(partial(tokens.find, sha256=hashed, now_ms=now_ms))
        if found is None:
            raise AccessDenied(
                "This server does not know your token; make a new one with `towline pair`.",
                reason="unknown_token",
            )
        if now_ms - found.last_used_ms > _TOUCH_MS:
            until = now_ms + DEVICE_LIFE_S * 1000  # its life counts anew with each use
            with suppress(StoreError):  # on a full disk a person can still read
                await self._store.write(
                    partial(tokens.touch, sha256=hashed, now_ms=now_ms, expires_ms=until)
                )
        return Caller(found.user, admin=found.user == OWNER)

    def credential(self, request: Request) -> str | None:
        """The token that a request carries, in its header or its cookie."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            return token.strip()
        return request.cookies.get(self.cookie)

    async def claim(self, code: str, name: str) -> str:
        """Turn a code into a device's token.

        Raises:
            AccessDenied: The code is wrong, used or too old.
            TooManyTries: Too many wrong ones came.
        """
        self.codes.claim(code)
        token = new_token()
        now_ms = self._now_ms()
        row = Token(
            sha256=hash_token(token),
            user=OWNER,
            name=name[:_NAME_CHARS] or "device",
            created_ms=now_ms,
            last_used_ms=now_ms,
            expires_ms=now_ms + DEVICE_LIFE_S * 1000,
        )
        try:
            await self._store.write(partial(tokens.add, token=row))
        except StoreError:
            self.codes.give_back(code)  # nothing was stored, so the code is still good
            raise
        return token

    async def revoke(self, request: Request) -> None:
        """Forget the token that a request carries."""
        token = self.credential(request)
        if token is not None and hash_token(token) == self._local:
            raise UsageError(
                "The server's own token cannot be revoked; it ends with the server: `towline stop`."
            )
        if token is not None:
            await self._store.write(partial(tokens.revoke, sha256=hash_token(token)))

    def new_code(self) -> tuple[str, str]:
        """A new code, and the RFC 3339 time until which it works."""
        until = self._now_ms() + round(CODE_LIFE_S * 1000)
        return self.codes.make(), format_time(until)

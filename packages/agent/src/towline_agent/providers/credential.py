"""Who asks: what a request carries so that a provider lets it in (A2.64)."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, Protocol

import msgspec

from towline_agent.errors import ProviderError
from towline_agent.host import Clock, SystemClock
from towline_agent.limits import forget_closed
from towline_agent.providers.oauth import (
    OAuthClient,
    OAuthService,
    OAuthTokens,
    refresh_tokens,
)
from towline_agent.providers.transport import Transport
from towline_protocol import UsageError

__all__ = [
    "BearerCredential",
    "Credential",
    "KeyCredential",
    "NoCredential",
    "OAuthCredential",
    "PastedToken",
    "auth_headers",
    "parse_pasted_token",
]

_AUTHORIZATION: Final = "authorization"
_EARLY_MS: Final = 60_000
"""A token is refreshed so long before it ends: a request that begins now may end then (A2.68)."""

_KeepTokens = Callable[[OAuthTokens], Awaitable[None]]


class Credential(Protocol):
    """An API key, a bearer token, an OAuth sign-in, or nothing.

    `token` is asked for before every request and may wait for the network. It raises
    `ProviderError` and nothing else of its own: `AuthenticationFailed` when a person has to act, a
    retryable one when the network failed. It may be called from many tasks at once. There is
    nothing to close.
    """

    bearer: ClassVar[bool]
    """Whether it goes as a bearer token even where keys have a header of their own."""

    @property
    def project(self) -> str | None:
        """The project that requests are counted for, where there are projects (A2.72)."""
        ...

    async def token(self) -> str | None:
        """What is sent; `None` sends no header for it at all (A2.65)."""
        ...


class KeyCredential(msgspec.Struct, frozen=True):
    """An API key; see `Credential`. Its `repr` does not show it."""

    key: str
    """The key."""
    bearer: ClassVar[bool] = False

    @property
    def project(self) -> str | None:
        """`None`: a key belongs to one."""
        return None

    async def token(self) -> str | None:
        """The key."""
        return self.key

    def __repr__(self) -> str:
        return "KeyCredential()"


class BearerCredential(msgspec.Struct, frozen=True):
    """A token that somebody else keeps fresh; see `Credential`. Its `repr` does not show it."""

    access: str
    """The token."""
    project: str | None = None
    """The project that requests are counted for."""
    bearer: ClassVar[bool] = True

    async def token(self) -> str | None:
        """The token."""
        return self.access

    def __repr__(self) -> str:
        return f"BearerCredential(project={self.project!r})"


class NoCredential(msgspec.Struct, frozen=True):
    """Nothing, for servers on this machine; see `Credential`."""

    bearer: ClassVar[bool] = False

    @property
    def project(self) -> str | None:
        """`None`."""
        return None

    async def token(self) -> str | None:
        """`None`."""
        return None


class OAuthCredential:
    """A sign-in whose access token is kept fresh; see `Credential`. Its `repr` shows no token.

    A token is refreshed 60 s before it ends, once for all tasks that wait for it (A2.68). When that
    fails for a passing reason, the old one is used until its very end.

    Args:
        service: Whose sign-in it is.
        client: The user's own registration with it.
        tokens: What the sign-in gave; a refresh token alone is enough.
        project: The project that requests are counted for.
        keep: Called with the new tokens when the service has replaced the refresh token.
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        transport: Who carries the requests; `None` for the process's own.
        clock: Time.
    """

    bearer: ClassVar[bool] = True

    def __init__(
        self,
        service: OAuthService,
        client: OAuthClient,
        tokens: OAuthTokens,
        *,
        project: str | None = None,
        keep: _KeepTokens | None = None,
        ca_file: str | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.project = project
        """The project that requests are counted for."""
        self._service = service
        self._client = client
        self._tokens = tokens
        self._keep = keep
        self._ca_file = ca_file
        self._given_transport = transport
        self._clock = clock or SystemClock()
        self._failures = 0
        self._failure: ProviderError | None = None
        # a lock belongs to one loop, and a credential may be used in several
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"OAuthCredential({self._service.provider!r}, project={self.project!r})"

    async def token(self) -> str | None:
        """An access token that holds for the next minute.

        Raises:
            AuthenticationFailed: The sign-in does not hold any more; the message says what to do.
            ProviderError: The service could not be asked, and the old token has ended.
        """
        if self._holds(_EARLY_MS):
            return self._tokens.access
        seen = self._failures
        async with self._lock():
            if self._holds(_EARLY_MS):
                return self._tokens.access
            if self._failure is not None and self._failures != seen:
                # somebody has just tried it for us: no storm on a service that is down
                return self._old_token(self._failure)
            try:
                return await self._refresh()
            except ProviderError as error:
                self._failure = error
                self._failures += 1
                return self._old_token(error)

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        lock = self._locks.get(loop)
        if lock is None:
            forget_closed(self._locks)
            lock = self._locks[loop] = asyncio.Lock()
        return lock

    async def _refresh(self) -> str:
        before = self._tokens
        fresh = await refresh_tokens(
            self._service, self._client, before, transport=self._transport(), clock=self._clock
        )
        self._tokens = fresh
        if self._keep is not None and fresh.refresh != before.refresh:
            await self._keep(fresh)
        return fresh.access

    def _old_token(self, error: ProviderError) -> str:
        if error.retryable and self._holds(0):
            return self._tokens.access
        raise error

    def _holds(self, margin_ms: int) -> bool:
        """Whether the token is there and does not end within so many milliseconds."""
        ends = self._tokens.expires_ms
        if not self._tokens.access:
            return False
        return ends is None or self._clock.now_ms() + margin_ms < ends

    def _transport(self) -> Transport:
        if self._given_transport is None:
            # aiohttp is imported with the first request, not with the library.
            from towline_agent.providers.http import shared_transport

            self._given_transport = shared_transport(self._ca_file)
        return self._given_transport


def auth_headers(
    credential: Credential,
    token: str | None,
    *,
    key_header: str = _AUTHORIZATION,
    project_header: str | None = None,
) -> dict[str, str]:
    """The headers that carry a credential.

    Args:
        credential: Whose token it is.
        token: What its `token` gave.
        key_header: Where this provider wants keys; in `authorization` they are bearer tokens.
        project_header: Where it wants the project beside a bearer token, if it does.
    """
    if token is None:
        return {}
    if not credential.bearer and key_header != _AUTHORIZATION:
        return {key_header: token}
    headers = {_AUTHORIZATION: f"Bearer {token}"}
    if credential.bearer and project_header and credential.project:
        headers[project_header] = credential.project
    return headers


class PastedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that a person pasted (A2.72). Its `repr` does not show it."""

    token: str
    """The token."""
    project: str | None
    """The project that was written behind it."""
    refresh: bool
    """Whether it is a refresh token."""

    def __repr__(self) -> str:
        return f"PastedToken(project={self.project!r}, refresh={self.refresh!r})"


def parse_pasted_token(service: OAuthService, pasted: str) -> PastedToken:
    """What was pasted: a refresh or access token, or `token|project` (A2.72).

    Raises:
        UsageError: It is no token.
    """
    token, _, project = (part.strip() for part in pasted.partition("|"))
    if not token or not all("!" <= char <= "~" for char in token + project):
        raise UsageError(
            f"What was pasted is no token of {service.title}: it is empty or holds white space or "
            "letters that no token has. Copy it anew, as TOKEN or TOKEN|PROJECT."
        )
    return PastedToken(
        token=token,
        project=project or None,
        refresh=token.startswith(service.refresh_prefixes),
    )

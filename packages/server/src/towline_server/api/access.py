"""Who is asking (C2, auth): bearer tokens for programs, a cookie for the page."""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from starlette.requests import HTTPConnection, Request

from towline_agent import Mint
from towline_protocol import TowlineError, UsageError, format_time
from towline_server.api.accounts import DEVICE_LIFE_S, LOGIN_LIFE_S, OWNER, Accounts, Issued
from towline_server.api.guard import App
from towline_server.api.watch import Watches
from towline_server.auth.codes import CODE_LIFE_S, Codes
from towline_server.auth.password import Passwords
from towline_server.auth.reserved_name import RESERVED_NAMES
from towline_server.auth.throttle import Throttle
from towline_server.auth.token import hash_token
from towline_server.errors import AccessDenied, NotOffered, StoreError, WrongPassword
from towline_server.store import tokens
from towline_server.store.sqlite_store import SqliteStore

__all__ = [
    "DEVICE_LIFE_S",
    "LOGIN_LIFE_S",
    "NOBODY",
    "OWNER",
    "Access",
    "Authenticate",
    "Caller",
    "address_of",
]

_NAME_CHARS: Final = 80  # longer than any name: what is counted must not grow with what is sent
_TOUCH_MS: Final = 3600 * 1000  # a use is noted once an hour, not with each request
_TRIES: Final = 10  # wrong passwords for a user: some 3,000 a day, which guess no decent one
_ADDRESS_TRIES: Final = 30  # and from one address, where a household may sit
_TRIES_WINDOW_S: Final = 300.0
_NETWORK_BITS: Final = 64  # of an IPv6 address: one home has all that lie below


class Caller(NamedTuple):
    """Who a request comes from."""

    user: str
    """The user's name."""
    admin: bool = False
    """Whether they may change what concerns everybody."""
    local: bool = False
    """Whether it comes with the server's own token, which only its system user can read."""


NOBODY: Final = Caller("")
"""Who calls an operation that takes no credential."""

Authenticate = Callable[[HTTPConnection], Awaitable[Caller | None]]
"""Says who a request comes from; `None` for nobody that is let in. Gets headers, cookies and
whatever a middleware left in the scope."""


class Access:
    """Knows tokens, codes and passwords; says who a request comes from."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        server_id: str,
        local_token: str,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float],
        mint: Mint,
        passwords: Passwords | None = None,
        authenticate: Authenticate | None = None,
    ) -> None:
        self.codes = Codes(monotonic)
        """One-time codes that wait to be claimed."""
        self.cookie = f"towline-{server_id}"
        """The cookie's name: cookies ignore ports, so it carries the server's id."""
        self.watches = Watches()
        """The streams that are open, by the token they were opened with."""
        self.accounts = Accounts(
            store, now_ms=now_ms, mint=mint, passwords=passwords, on_ended=self._end
        )
        """The users and their tokens."""
        self._store = store
        self._local = hash_token(local_token)
        self._now_ms = now_ms
        self._authenticate = authenticate
        self._by_user = Throttle(monotonic, tries=_TRIES, window_s=_TRIES_WINDOW_S)
        self._by_address = Throttle(monotonic, tries=_ADDRESS_TRIES, window_s=_TRIES_WINDOW_S)

    def close(self) -> None:
        """Let the threads go."""
        self.accounts.passwords.close()

    @property
    def own(self) -> bool:
        """Whether this server knows by itself who is who; else another program says it."""
        return self._authenticate is None

    def check_own(self) -> None:
        """Refuse what only a server with users of its own does.

        Raises:
            NotOffered: Another program says who is who.
        """
        if not self.own:
            raise NotOffered("This server has no users of its own; sign in where it is part of.")

    async def caller(self, request: Request) -> Caller:
        """Who a request comes from.

        Raises:
            AccessDenied: It carries no credential, or one that is unknown or too old; or another
                program says who it is, by a name that no user may have.
        """
        if self._authenticate is not None:
            caller = await self._authenticate(request)
            if caller is None or not caller.user:
                raise AccessDenied("This server does not know who you are.", reason="missing")
            if caller.user in RESERVED_NAMES:
                raise AccessDenied(
                    f"No user may be called {caller.user!r}: logs say so of what nobody decided; "
                    "have `authenticate` give another name.",
                    reason="reserved_name",
                )
            return caller
        digest = self.digest(request)
        if digest is None:
            raise AccessDenied(
                "This server wants to know who you are; open the link that `towline pair` prints, "
                "or send `Authorization: Bearer` with a token: `POST /api/auth/login` gives one "
                "for a password, and `POST /api/auth/tokens` makes one that lasts.",
                reason="missing",
            )
        if hmac.compare_digest(digest, self._local):
            return Caller(OWNER, admin=True, local=True)
        now_ms = self._now_ms()
        known = await self._store.query(partial(tokens.find, sha256=digest, now_ms=now_ms))
        if known is None:
            raise _unknown_token()
        if now_ms - known.token.last_used_ms > _TOUCH_MS:
            with suppress(StoreError):  # on a full disk a person can still read
                await self._store.write(partial(tokens.touch, sha256=digest, now_ms=now_ms))
        return Caller(known.token.user, admin=known.admin)

    def digest(self, request: Request) -> str | None:
        """The digest of the token that a request carries, in its header or its cookie."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return hash_token(token.strip())
        token = request.cookies.get(self.cookie_name(request), "")
        return hash_token(token) if token else None

    def stored_digest(self, caller: Caller, request: Request) -> str | None:
        """The digest of the token in the store that a request came with; `None` for another way."""
        return None if caller.local or not self.own else self.digest(request)

    async def check_still(self, caller: Caller, request: Request) -> None:
        """Refuse a request whose token has ended since it was looked at: its body took its time.

        Raises:
            AccessDenied: It has.
        """
        digest = self.stored_digest(caller, request)
        if digest is not None and not await self._counts(digest):
            raise _unknown_token()

    async def sliding_cookie(self, request: Request) -> str | None:
        """The token of a request's cookie, if each use moves its end on; `None` for any other.

        The browser counts the days of a cookie by itself, so it must be given anew.
        """
        token = request.cookies.get(self.cookie_name(request), "")
        if not token or not self.own or hash_token(token) != self.digest(request):
            return None
        find = partial(tokens.find, sha256=hash_token(token), now_ms=self._now_ms())
        known = await self._store.query(find)
        return None if known is None or known.token.slide_ms is None else token

    def cookie_name(self, request: Request) -> str:
        """The name of the cookie on this connection; over HTTPS browsers guard it by its prefix."""
        return f"__Host-{self.cookie}" if request.url.scheme == "https" else self.cookie

    async def login(self, user: str, password: str, *, name: str = "", address: str = "") -> Issued:
        """Turn a password into a token of 24 hours.

        Args:
            user: The user's name, as typed.
            password: The password.
            name: What the device calls itself.
            address: Where the call comes from.

        Raises:
            AccessDenied: The password is wrong, or there is no such user; both look the same.
            TooManyTries: Too many wrong ones came; even a right one waits now.
        """
        user = user.strip().lower()[:_NAME_CHARS]
        if not await self._is_right(user, password, address):
            raise AccessDenied(
                "The name or the password is wrong; try again, or use a code that `towline pair` "
                "prints.",
                reason="wrong_password",
            )
        return await self.accounts.admit(user, "login", name)

    async def change_password(
        self, caller: Caller, user: str, password: str, *, old: str | None, everywhere: bool,
        keep: str,
    ) -> None:  # fmt: skip
        """Give a user a new password: one's own with the old one, another's as an admin.

        Raises:
            UsageError: That is no password to be.
            UserNotFound: There is nobody of that name.
            WrongPassword: The old one is missing or wrong.
            TooManyTries: Too many wrong ones came.
        """
        own = caller.user == user and not caller.local
        if (
            own
            and await self.accounts.has_password(user)
            and (old is None or not await self._is_right(user, old, None))
        ):
            raise WrongPassword(
                "The old password is wrong; send the one that counts now as `old`.",
                reason="wrong_password",
            )
        await self.accounts.set_password(user, password, everywhere=everywhere, keep=keep)

    async def claim(self, code: str, name: str, *, address: str = "") -> Issued:
        """Turn a code into a device's token.

        Raises:
            AccessDenied: The code is wrong, used or too old.
            TooManyTries: Too many wrong ones came.
        """
        known = self.codes.claim(code, address)
        try:
            return await self.accounts.admit(known.user, "device", name)
        except StoreError:
            self.codes.give_back(code, known)  # nothing was stored, so the code is still good
            raise

    async def revoke(self, request: Request) -> None:
        """Forget the token that a request carries."""
        digest = self.digest(request)
        if digest is None:
            return
        if hmac.compare_digest(digest, self._local):
            raise UsageError(
                "The server's own token cannot be revoked; it ends with the server: `towline stop`."
            )
        await self._store.write(partial(tokens.revoke, sha256=digest))
        self._end([digest])

    async def remove_user(self, name: str) -> None:
        """Let a user in no more; see `Accounts.remove_user`."""
        await self.accounts.remove_user(name)
        self.codes.forget(name)

    def new_code(self, user: str = OWNER, by: str = "") -> tuple[str, str]:
        """A new code, and the RFC 3339 time until which it works at the longest.

        Args:
            user: Whom it lets in.
            by: The digest of the token that asks for it; with that the code ends as well.
        """
        until = self._now_ms() + round(CODE_LIFE_S * 1000)
        return self.codes.make(user, by), format_time(until)

    def watch(self, request: Request, answer: App) -> App:
        """The same answer, which ends when the token does that the request came with."""
        digest = self.digest(request)
        if self._authenticate is not None or digest is None or digest == self._local:
            return answer
        return self.watches.watch(digest, answer, partial(self._counts, digest))

    def _end(self, digests: Iterable[str]) -> None:
        """What was opened or asked for with tokens that have ended ends with them."""
        ended = tuple(digests)
        self.watches.end(ended)
        self.codes.end(ended)

    async def _counts(self, digest: str) -> bool:
        now_ms = self._now_ms()
        return (
            await self._store.query(partial(tokens.find, sha256=digest, now_ms=now_ms)) is not None
        )

    async def _is_right(self, user: str, password: str, address: str | None) -> bool:
        """Check a password; a wrong one, or one that nobody waited for, counts as a try."""
        counts = [(self._by_user, user)]
        if address is not None:
            counts.append((self._by_address, address))
        for throttle, key in counts:
            throttle.check(key)
        for throttle, key in counts:
            throttle.note(key)  # before the wait, so that tries at the same time all count
        try:
            right = await self.accounts.check_password(user, password)
        except TowlineError:
            self._take_back(counts)  # it was never looked at
            raise
        if right:
            self._take_back(counts)
        return right

    @staticmethod
    def _take_back(counts: list[tuple[Throttle, str]]) -> None:
        for throttle, key in counts:
            throttle.forget(key)


def _unknown_token() -> AccessDenied:
    return AccessDenied(
        "This server does not know your token, or it has ended; get a new one by `towline pair`, "
        "or by `POST /api/auth/login` with a password.",
        reason="unknown_token",
    )


def address_of(request: Request) -> str:
    """Where a request comes from, as far as tries are counted: of IPv6, the network."""
    host = request.client.host if request.client is not None else ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv4Address):
        return host
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _NETWORK_BITS), strict=False))

"""Users, their passwords and their tokens, as the store holds them (C2, auth)."""

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from towline_agent import Mint
from towline_protocol import (
    AddUser,
    CreateToken,
    NewToken,
    TokenInfo,
    TokenList,
    TowlineError,
    UsageError,
    UserInfo,
    UserList,
    format_time,
)
from towline_server.auth.hosts import is_loopback
from towline_server.auth.password import Passwords, check_new_password, check_user_name
from towline_server.auth.token import hash_token, new_token
from towline_server.errors import (
    AccessDenied,
    TokenNotFound,
    TooManyTokens,
    UserConflict,
    UserNotFound,
)
from towline_server.store import tokens, users
from towline_server.store.sqlite_store import SqliteStore
from towline_server.store.tokens import Token
from towline_server.store.users import User

__all__ = ["DEVICE_LIFE_S", "LOGIN_LIFE_S", "OWNER", "Accounts", "Issued", "check_exposure"]

OWNER: Final = "owner"
"""The user who is always there, and an admin: whoever starts the server."""
DEVICE_LIFE_S: Final = 180 * 24 * 3600
"""Seconds that a device's token lives, counted anew with each use."""
LOGIN_LIFE_S: Final = 24 * 3600
"""Seconds that a login lasts, however much it is used."""

_NAME_CHARS: Final = 80
_MOST: Final = {"device": 100, "login": 50, "program": 100}  # of a user: more were forgotten
_TOKENS_S: Final = 60.0  # nothing frees a place but the user
_LONGEST_LIFE_S: Final = 10 * 365 * 24 * 3600  # ten years: more is a mistyped number


class Issued(NamedTuple):
    """A token that was just made. It is shown once and never stored."""

    token: str
    """The token itself."""
    user: str
    """Whose it is."""
    expires_ms: int | None
    """When it stops to count, as far as is known now."""

    def __repr__(self) -> str:
        return f"Issued(user={self.user!r})"


class Accounts:
    """Who may come in. A running server has one; `towline users` makes one on a store at rest."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        now_ms: Callable[[], int],
        mint: Mint,
        passwords: Passwords | None = None,
        on_ended: Callable[[Iterable[str]], None] = lambda digests: None,
    ) -> None:
        """Make one; nothing is read yet.

        Args:
            store: Holds the users.
            now_ms: Milliseconds since 1970, UTC.
            mint: Makes the ids of tokens.
            passwords: Hashes passwords.
            on_ended: Told the digests of tokens that have just ended.
        """
        self.passwords = passwords or Passwords()
        """Hashes passwords."""
        self._store = store
        self._now_ms = now_ms
        self._mint = mint
        self._on_ended = on_ended

    async def list_users(self) -> UserList:
        """Those who may come in, by name."""
        return UserList(users=tuple(map(_user_info, await self._store.query(users.users))))

    async def add_user(self, new: AddUser) -> UserInfo:
        """Let somebody in by a name and a password.

        Raises:
            UsageError: That is no name, or no password to be.
            UserConflict: The name is taken, or was taken by somebody whose sessions are stored.
        """
        check_user_name(new.name)
        check_new_password(new.password)
        before = await self._store.query(partial(users.find, name=new.name))
        if before is not None and before.removed_ms is None:
            raise UserConflict(
                f"There is a user {new.name!r} already; take another name.", reason="name_taken"
            )
        if before is not None and not new.restore:
            raise UserConflict(
                f"There was a user {new.name!r} once, whose sessions are still stored; take "
                f"another name, or give that user back: `towline users add {new.name} --restore`, "
                "or `restore` in the body of the request.",
                reason="name_used",
            )
        hashed = await self.passwords.hash(new.password)
        user = User(name=new.name, password=hashed, admin=new.admin, created_ms=self._now_ms())
        if not await self._store.write(partial(_put_user, user=user, restore=new.restore)):
            raise UserConflict(
                f"There is a user {new.name!r} already; take another name.", reason="name_taken"
            )
        return await self._info(new.name)

    async def remove_user(self, name: str) -> None:
        """Let a user in no more, at once and on every device. Their sessions stay stored.

        Raises:
            UserNotFound: There is nobody of that name.
            UserConflict: It is the owner, who must stay.
        """
        if name == OWNER:
            raise UserConflict(
                f"{OWNER!r} cannot be removed: whoever starts the server is that user.",
                reason="owner_stays",
            )
        now_ms = self._now_ms()

        def remove(connection: sqlite3.Connection) -> list[str] | None:
            if not users.remove(connection, name, now_ms=now_ms):
                return None
            return tokens.revoke_of(connection, name)

        ended = await self._store.write(remove)
        if ended is None:
            raise _no_user(name)
        self._on_ended(ended)

    async def set_password(
        self, name: str, password: str, *, everywhere: bool = False, keep: str = ""
    ) -> None:
        """Give a user a new password, which ends their logins.

        Args:
            name: The user.
            password: The new password.
            everywhere: Whether their devices and programs are let go as well.
            keep: The digest of a token that stays.

        Raises:
            UsageError: That is no password to be.
            UserNotFound: There is nobody of that name.
        """
        check_new_password(password)
        await self._info(name)
        hashed = await self.passwords.hash(password)

        def change(connection: sqlite3.Connection) -> list[str] | None:
            if not users.set_password(connection, name, hashed):
                return None
            kind = None if everywhere else "login"
            return tokens.revoke_of(connection, name, kind=kind, but=keep)

        ended = await self._store.write(change)
        if ended is None:
            raise _no_user(name)
        self._on_ended(ended)

    async def has_password(self, name: str) -> bool:
        """Whether a user can log in with one."""
        user = await self._store.query(partial(users.find, name=name))
        return user is not None and user.password is not None

    async def check_password(self, name: str, password: str) -> bool:
        """Whether it is this user's; costs the same when there is no such user."""
        user = await self._store.query(partial(users.find, name=name))
        hashed = None if user is None or user.removed_ms is not None else user.password
        return await self.passwords.check(hashed, password)

    async def list_tokens(self, user: str, *, current: str = "") -> TokenList:
        """A user's devices, logins and tokens.

        Args:
            user: Whose.
            current: The digest of the one that asks.
        """
        rows = await self._store.query(partial(tokens.tokens_of, user=user, now_ms=self._now_ms()))
        return TokenList(tokens=tuple(_token_info(row, current) for row in rows))

    async def create_token(self, user: str, new: CreateToken) -> NewToken:
        """Make a token for a program.

        Raises:
            UsageError: The name or the lifetime cannot be used.
            TooManyTokens: There are as many as there may be.
        """
        name = new.name.strip()
        if not name or len(name) > _NAME_CHARS:
            raise UsageError(f"A token's name has 1 to {_NAME_CHARS} characters; give it one.")
        life_s = new.lifetime_s
        if life_s is not None and not 1 <= life_s <= _LONGEST_LIFE_S:
            raise UsageError(
                f"lifetime_s is {life_s!r}; it is from 1 to {_LONGEST_LIFE_S}, or left out."
            )
        made, row = await self._issue(user, "program", name, life_s, slides=False)
        return NewToken(id=row.id, token=made, name=name, expires_at=_time(row.expires_ms))

    async def revoke_token(self, user: str, token_id: str) -> None:
        """End one of a user's devices, logins or tokens.

        Raises:
            TokenNotFound: They have none of that id.
        """
        digest = await self._store.write(partial(tokens.revoke_id, id_=token_id, user=user))
        if digest is None:
            raise TokenNotFound(
                f"You have no token {token_id[:80]!r}; `towline devices list`, or `GET "
                "/api/auth/tokens`, names the ids."
            )
        self._on_ended([digest])

    async def admit(self, user: str, kind: str, name: str) -> Issued:
        """Make the token of somebody who proved who they are: a `device` or a `login`.

        Raises:
            AccessDenied: The user was removed in the meantime.
        """
        life_s = DEVICE_LIFE_S if kind == "device" else LOGIN_LIFE_S
        name = name.strip()[:_NAME_CHARS] or kind
        made, row = await self._issue(user, kind, name, life_s, slides=kind == "device")
        return Issued(made, user, row.expires_ms)

    async def prune(self) -> None:
        """Forget the tokens that have ended by themselves."""
        self._on_ended(await self._store.write(partial(tokens.prune, now_ms=self._now_ms())))

    async def _issue(
        self, user: str, kind: str, name: str, life_s: int | None, *, slides: bool
    ) -> tuple[str, Token]:
        made = new_token()
        now_ms = self._now_ms()
        life_ms = None if life_s is None else life_s * 1000
        row = Token(
            sha256=hash_token(made),
            id=self._mint("tok"),
            user=user,
            kind=kind,
            name=name,
            created_ms=now_ms,
            last_used_ms=now_ms,
            expires_ms=None if life_ms is None else now_ms + life_ms,
            slide_ms=life_ms if slides else None,
        )
        put = await self._store.write(partial(_put_token, row=row, now_ms=now_ms))
        self._on_ended(put.ended)
        if put.refusal is not None:
            raise put.refusal
        return made, row

    async def _info(self, name: str) -> UserInfo:
        user = await self._store.query(partial(users.find, name=name))
        if user is None or user.removed_ms is not None:
            raise _no_user(name)
        return _user_info(user)


async def check_exposure(host: str, store: SqliteStore) -> None:
    """Refuse to listen to a network that nobody needs a password on.

    Raises:
        UsageError: The host is not this machine alone, and no user has a password.
    """
    if is_loopback(host) or await store.query(users.count_passwords):
        return
    raise UsageError(
        f"host = {host!r} would let the network in, and no user has a password yet: set one with "
        f"`towline users password {OWNER}`, or leave host at 127.0.0.1."
    )


def _put_user(connection: sqlite3.Connection, user: User, *, restore: bool) -> bool:
    assert user.password is not None
    if users.find(connection, user.name) is None:
        users.add(connection, user)
        return True
    return restore and users.restore(
        connection, user.name, password=user.password, admin=user.admin
    )


class _Put(NamedTuple):
    """What came of a new token: the digests of those that made room, or why there is none."""

    ended: list[str]
    refusal: TowlineError | None = None


def _put_token(connection: sqlite3.Connection, row: Token, *, now_ms: int) -> _Put:
    """Keep a token within the bound of its kind."""
    user = users.find(connection, row.user)
    if user is None or user.removed_ms is not None:
        gone = AccessDenied("This user may not come in any more.", reason="unknown_user")
        return _Put([], gone)
    ended = tokens.prune(connection, now_ms=now_ms)
    if tokens.count(connection, row.user, row.kind) >= _MOST[row.kind]:
        if row.kind == "program":
            many = TooManyTokens(
                f"You have {_MOST[row.kind]} tokens for programs; revoke one first.",
                retry_after_s=_TOKENS_S,
            )
            return _Put(ended, many)
        oldest = tokens.revoke_oldest(connection, row.user, row.kind)
        ended += [] if oldest is None else [oldest]
    tokens.add(connection, row)
    return _Put(ended)


def _no_user(name: str) -> UserNotFound:
    return UserNotFound(
        f"There is no user {name[:80]!r}; `towline users list` names those there are."
    )


def _user_info(user: User) -> UserInfo:
    return UserInfo(
        name=user.name,
        admin=user.admin,
        has_password=user.password is not None,
        created=format_time(user.created_ms),
    )


def _token_info(row: Token, current: str) -> TokenInfo:
    return TokenInfo(
        id=row.id,
        name=row.name,
        kind=row.kind,
        created=format_time(row.created_ms),
        last_used=format_time(row.last_used_ms),
        expires_at=_time(row.expires_ms),
        current=row.sha256 == current,
    )


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_time(at_ms)

"""Calls about who may come in: logins, tokens, users."""

from typing import Unpack

from towline_client.caller import Caller
from towline_client.options import CallOptions
from towline_protocol import (
    AddUser,
    ChangePassword,
    CreateToken,
    LoggedIn,
    Login,
    NewToken,
    TokenList,
    UserInfo,
    UserList,
)

__all__ = ["Account"]


class Account:
    """The account of who calls, and for admins those of others; see `Client.account`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def login(
        self, password: str, *, user: str = "owner", name: str = "", **options: Unpack[CallOptions]
    ) -> LoggedIn:
        """Turn a password into a token of 24 hours. Needs no credential.

        A client that was made without a credential goes on with this token, in memory alone; any
        other keeps its own, and the answer has the token for `Client(url, token)`.

        Args:
            password: The password.
            user: The user's name.
            name: What this device calls itself.

        Raises:
            Unauthorized: The name or the password is wrong.
            CommandRejected: Too many wrong ones came; `retry_after_s` says how long to wait.
        """
        body = Login(password=password, user=user, name=name)
        answer = await self._caller.call("login", LoggedIn, body=body, options=options)
        self._caller.adopt(answer.token)
        return answer

    async def list_tokens(self, **options: Unpack[CallOptions]) -> TokenList:
        """The caller's devices, logins and tokens."""
        return await self._caller.call("list_tokens", TokenList, options=options)

    async def create_token(
        self, name: str, *, lifetime_s: int | None = None, **options: Unpack[CallOptions]
    ) -> NewToken:
        """Make a token for a program; it is told this once.

        Args:
            name: What it is for.
            lifetime_s: Seconds that it works; `None` for until it is revoked.
        """
        body = CreateToken(name=name, lifetime_s=lifetime_s)
        return await self._caller.call("create_token", NewToken, body=body, options=options)

    async def revoke_token(self, token_id: str, **options: Unpack[CallOptions]) -> None:
        """End one of the caller's devices, logins or tokens.

        Raises:
            CommandRejected: The caller has none of that id.
        """
        await self._caller.tell("revoke_token", params={"token": token_id}, options=options)

    async def list_users(self, **options: Unpack[CallOptions]) -> UserList:
        """The users; for admins."""
        return await self._caller.call("list_users", UserList, options=options)

    async def add_user(self, new: AddUser, **options: Unpack[CallOptions]) -> UserInfo:
        """Let somebody in by a name and a password; for admins.

        Raises:
            CommandRejected: The name is taken, or cannot be one, or the password is too short.
        """
        return await self._caller.call("add_user", UserInfo, body=new, options=options)

    async def remove_user(self, name: str, **options: Unpack[CallOptions]) -> None:
        """Let a user in no more; their sessions stay stored. For admins.

        Raises:
            CommandRejected: There is nobody of that name, or they must stay.
        """
        await self._caller.tell("remove_user", params={"user": name}, options=options)

    async def change_password(
        self,
        name: str,
        password: str,
        *,
        old: str | None = None,
        everywhere: bool = False,
        **options: Unpack[CallOptions],
    ) -> None:
        """Change one's own password, or as an admin that of another user.

        Args:
            name: Whose.
            password: The new one.
            old: The one that counts now; needed for one's own.
            everywhere: Whether their devices and programs are let go as well.

        Raises:
            CommandRejected: The old one is wrong, or the new one is too short.
        """
        body = ChangePassword(password=password, old=old, everywhere=everywhere)
        await self._caller.tell(
            "change_password", params={"user": name}, body=body, options=options
        )

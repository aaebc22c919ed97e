"""Where users and tokens are changed: by the server that runs, else in the store at rest."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from towline.cli.attach import find_server
from towline.paths import Paths, find_paths
from towline_agent import SystemClock, mint_now
from towline_client import Client
from towline_protocol import AddUser, TokenList, UserInfo, UserList
from towline_server import OWNER, Accounts, load_config, open_store

__all__ = ["Keeper", "open_keeper"]


class Keeper(Protocol):
    """What the commands need; `towline_client.Account` is one."""

    async def list_users(self) -> UserList:
        """Those who may come in."""
        ...

    async def add_user(self, new: AddUser) -> UserInfo:
        """Let somebody in."""
        ...

    async def remove_user(self, name: str) -> None:
        """Let somebody in no more."""
        ...

    async def change_password(self, name: str, password: str, *, everywhere: bool = False) -> None:
        """Set a password."""
        ...

    async def list_tokens(self) -> TokenList:
        """What is let in as the owner."""
        ...

    async def revoke_token(self, token_id: str) -> None:
        """Let one of them in no more."""
        ...


class _Store:
    """The store at rest, whose owner is whoever may read its file."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    async def list_users(self) -> UserList:
        return await self._accounts.list_users()

    async def add_user(self, new: AddUser) -> UserInfo:
        return await self._accounts.add_user(new)

    async def remove_user(self, name: str) -> None:
        await self._accounts.remove_user(name)

    async def change_password(self, name: str, password: str, *, everywhere: bool = False) -> None:
        await self._accounts.set_password(name, password, everywhere=everywhere)

    async def list_tokens(self) -> TokenList:
        return await self._accounts.list_tokens(OWNER)

    async def revoke_token(self, token_id: str) -> None:
        await self._accounts.revoke_token(OWNER, token_id)


@asynccontextmanager
async def open_keeper(environ: Mapping[str, str]) -> AsyncGenerator[Keeper]:
    """The accounts of this machine's own server, whether it runs or not.

    Raises:
        StoreLocked: A server runs on the data folder and cannot be found by its `run.json`.
        TowlineError: The server or the store cannot be used.
    """
    paths = find_paths(environ)
    server = find_server(paths.run_file)
    if server is None:
        async with _open_store(paths, environ) as store:
            yield store
        return
    async with Client(server.url, server.token) as client:
        yield client.account


@asynccontextmanager
async def _open_store(paths: Paths, environ: Mapping[str, str]) -> AsyncGenerator[Keeper]:
    config = load_config(paths.config_file, environ, data_dir=paths.data_dir)
    store = await open_store(config.data_dir, mint=mint_now)
    accounts = Accounts(store, now_ms=SystemClock().now_ms, mint=mint_now)
    try:
        yield _Store(accounts)
    finally:
        accounts.passwords.close()
        await store.close()

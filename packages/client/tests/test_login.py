"""How a client without a credential comes by one."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from towline_client import Client
from towline_client.testing import ScriptedServer, ScriptedTransport


async def _login(client: Client) -> object:
    return await client.account.login("a password")


async def _claim(client: Client) -> object:
    return await client.claim("ABCD1234")


@pytest.mark.rules("C4.6")
@pytest.mark.parametrize("come_in", [_login, _claim])
@pytest.mark.parametrize(("had", "has"), [(None, "a token"), ("own", "own")])
async def test_a_client_goes_on_with_the_token_it_was_given_unless_it_has_its_own(
    come_in: Callable[[Client], Awaitable[object]], had: str | None, has: str
) -> None:
    server = ScriptedServer()
    client = Client("", had, transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        await come_in(client)
        await client.me()
        assert [call.token for call in server.calls] == [None, has]

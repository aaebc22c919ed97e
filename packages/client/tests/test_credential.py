"""A credential that is a function, and one that cannot be sent."""

import asyncio
from collections import deque

import pytest

from towline_client import Client, Unauthorized, UsageError
from towline_client.testing import ManualClock, ScriptedServer, ScriptedTransport, refuse

_REVOKED = "It was revoked."


class _Keeper:
    """Gives another token each time."""

    def __init__(self, *tokens: str) -> None:
        self.count = 0
        self._tokens = tokens

    async def __call__(self) -> str:
        self.count += 1
        return self._tokens[self.count - 1] if self._tokens else f"token-{self.count}"


async def _settle() -> None:
    for _ in range(60):
        await asyncio.sleep(0)


def _refuse(server: ScriptedServer, name: str, times: int) -> None:
    server.replies[name] = deque([refuse("unauthorized", _REVOKED)] * times)


def _tokens(server: ScriptedServer, name: str) -> list[str | None]:
    return [call.token for call in server.calls if call.operation.name == name]


@pytest.mark.rules("C4.6")
async def test_a_command_that_was_refused_is_sent_again_with_a_fresh_token() -> None:
    server, clock = ScriptedServer(), ManualClock()
    client = Client("", _Keeper(), transport=ScriptedTransport(server), clock=clock)
    async with asyncio.timeout(10), server, client:
        _refuse(server, "me", 1)
        assert (await client.me()).user == "me"
        _refuse(server, "logout", 2)
        leaving = asyncio.create_task(client.logout())
        await _settle()
        assert _tokens(server, "logout") == ["token-3", "token-4"]
        clock.advance(1000)
        await leaving
    assert _tokens(server, "me") == ["token-1", "token-2"]
    assert _tokens(server, "logout") == ["token-3", "token-4", "token-5"]


@pytest.mark.rules("C4.6", "C4.9")
async def test_a_prompt_that_was_refused_is_sent_again_under_its_key_with_a_fresh_token() -> None:
    server, keeper = ScriptedServer(), _Keeper()
    client = Client("", keeper, transport=ScriptedTransport(server), clock=ManualClock())
    async with asyncio.timeout(10), server, client:
        session = await client.open()
        _refuse(server, "send_prompt", 1)
        assert await session.ask("once") == "You said: once"
    sent = [call for call in server.calls if call.operation.name == "send_prompt"]
    assert len({call.token for call in sent}) == 2
    assert len({call.headers["idempotency-key"] for call in sent}) == 1


@pytest.mark.rules("C4.6")
async def test_the_third_refusal_of_a_function_is_the_last() -> None:
    server, clock = ScriptedServer(), ManualClock()
    client = Client("", _Keeper(), transport=ScriptedTransport(server), clock=clock)
    async with asyncio.timeout(10), server, client:
        _refuse(server, "me", 9)
        asking = asyncio.create_task(client.me())
        await _settle()
        clock.advance(1000)
        with pytest.raises(Unauthorized, match=_REVOKED):
            await asking
        hasty = asyncio.create_task(client.me(timeout_s=0.5))
        with pytest.raises(Unauthorized):  # a wait of a second is more than it has
            await hasty
    assert len(_tokens(server, "me")) == 5


@pytest.mark.rules("C4.6")
async def test_a_plain_token_that_was_refused_is_not_sent_again() -> None:
    server = ScriptedServer()
    async with (
        asyncio.timeout(10),
        server,
        Client("", "token", transport=ScriptedTransport(server)) as client,
    ):
        _refuse(server, "me", 1)
        with pytest.raises(Unauthorized):
            await client.me()
    assert _tokens(server, "me") == ["token"]


@pytest.mark.rules("C4.6")
@pytest.mark.parametrize("token", ["hid\nden", "hid\tden", "hidden\x00", "hidd\u00e9n"])
async def test_a_token_that_cannot_be_sent_is_said_without_showing_it(token: str) -> None:
    server = ScriptedServer()
    with pytest.raises(UsageError, match="give a token of printable") as caught:
        Client("", token, transport=ScriptedTransport(server))
    client = Client("", _Keeper(token, " hidden\n"), transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        with pytest.raises(UsageError, match="give a token of printable") as later:
            await client.me()
        await client.me()
    assert "hid" not in str(caught.value) + str(later.value)
    assert _tokens(server, "me") == ["hidden"]


@pytest.mark.rules("C4.6")
async def test_a_line_asks_no_more_often_than_its_own_count() -> None:
    server, keeper, clock = ScriptedServer(), _Keeper(), ManualClock()
    client = Client("", keeper, transport=ScriptedTransport(server), clock=clock)
    async with asyncio.timeout(10), server, client:
        made = await client.create_session()
        _refuse(server, "get_view", 9)
        opening = asyncio.create_task(client.open(made.id))
        await _settle()
        clock.advance(1000)
        with pytest.raises(Unauthorized):
            await opening
    assert len(_tokens(server, "get_view")) == 3

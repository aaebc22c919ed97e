"""A provider whose key or address changes while sessions use it."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import Model, Provider, ProviderUnavailable, RateLimited, Request, StepFailed
from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import ChangeProvider, Message, Text, UsageError
from towline_server import Connection
from towline_server.models.testing import FakeProviders
from towline_server.sessions.connection import Line
from towline_server.testing import AppClient, open_test_app, ran

REQUEST = Request(model="one", messages=(Message("user", (Text(text="Hi"),)),))
MODEL = Model(provider="acme", id="one")


class Switch:
    """Connects to one provider after the other; the one before is stale from `turn` on."""

    def __init__(self, *providers: ScriptedProvider) -> None:
        self.providers = providers
        self.version = 0
        self.closed: list[Provider] = []

    def turn(self) -> None:
        """What was set has changed."""
        self.version += 1

    async def connect(self, name: str) -> Connection:
        """The provider of the newest version."""
        del name
        version = self.version
        if version >= len(self.providers):
            raise UsageError("There is no address any more.")
        return Connection(self.providers[version], stale=lambda: self.version != version)

    async def line(self) -> Line:
        """A line over the first one."""
        return Line("acme/one", await self.connect(""), self.connect, self.closed.append)


async def test_the_next_request_goes_over_the_newest_connection() -> None:
    first, second = ScriptedProvider("Old.", model=MODEL), ScriptedProvider("New.", model=MODEL)
    switch = Switch(first, second)
    line = await switch.line()
    await line.step(REQUEST, lambda _: None)
    switch.turn()
    await line.step(REQUEST, lambda _: None)
    assert (len(first.requests), len(second.requests)) == (1, 1)
    assert switch.closed == [first]


async def test_a_connection_is_closed_when_its_last_request_has_ended() -> None:
    gate = asyncio.Event()
    first = ScriptedProvider([gate], [gate], model=MODEL)
    second = ScriptedProvider("New.", model=MODEL)
    switch = Switch(first, second)
    line = await switch.line()
    running = [asyncio.create_task(line.step(REQUEST, lambda _: None)) for _ in range(2)]
    await asyncio.sleep(0)
    switch.turn()
    line.renew()
    await line.step(REQUEST, lambda _: None)
    assert (switch.closed, len(second.requests)) == ([], 1)
    running[0].cancel()
    await asyncio.wait({running[0]})
    assert switch.closed == []
    gate.set()
    await asyncio.wait({running[1]})
    assert switch.closed == [first]


async def test_what_nobody_uses_is_let_go_at_once_and_made_anew_when_it_is_needed() -> None:
    first, second = ScriptedProvider(model=MODEL), ScriptedProvider("New.", model=MODEL)
    switch = Switch(first, second)
    line = await switch.line()
    line.renew()
    assert switch.closed == []  # it is not stale
    switch.turn()
    line.renew()
    line.renew()
    assert switch.closed == [first]
    assert line.pause_s(1) == 0.0
    assert line.model == MODEL
    assert await line.models() == await second.models()
    await line.aclose()
    assert (first.closed, second.closed) == (0, 1)


async def test_many_that_need_a_new_connection_make_one() -> None:
    first = ScriptedProvider(model=MODEL)
    second = ScriptedProvider(*["New."] * 5, model=MODEL)
    switch = Switch(first, second)
    line = await switch.line()
    switch.turn()
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(line.step(REQUEST, lambda _: None))
    assert len(second.requests) == 5
    assert switch.closed == [first]


@pytest.mark.rules("A1.24")
async def test_a_connection_that_cannot_be_made_is_a_failed_step() -> None:
    switch = Switch(ScriptedProvider(model=MODEL))
    line = await switch.line()
    switch.turn()
    result = await line.step(REQUEST, lambda _: None)
    assert isinstance(result, StepFailed)
    assert isinstance(result.error, ProviderUnavailable)
    assert not result.error.retryable
    assert "no address" in result.error.message


async def test_a_key_that_is_set_while_a_turn_waits_counts_for_its_next_request(
    tmp_path: Path,
) -> None:
    limited = StepFailed(error=RateLimited("Too many.", reason="rate_limit", retry_after_s=60.0))
    old, new = ScriptedProvider(limited, model=MODEL), ScriptedProvider("Yes.", model=MODEL)
    providers, clock = FakeProviders("acme"), FakeClock(held=True)

    async def connect(model: str) -> Connection:
        del model
        version = providers.version
        made = new if version else old
        return Connection(made, stale=lambda: providers.version != version)

    async with open_test_app(
        old, root=tmp_path, connect=connect, providers=providers, clock=clock
    ) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "Hi")
        await client.until(session, lambda view: view.waiting is not None)
        body = ChangeProvider(key="sk-a-new-key-1234")
        assert (await client.ask("PUT", "/api/providers/acme", body)).status == 200
        clock.advance(60)
        await client.until(session, ran(1))
        assert old.closed == 1  # nobody was using it
    assert (len(old.requests), len(new.requests)) == (1, 1)
    assert new.closed == 1

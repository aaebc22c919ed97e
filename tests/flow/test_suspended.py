"""A phone that sleeps for minutes in mid-turn and finds its session when it wakes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from towline_agent import TextPiece, tool
from towline_agent.testing import ScriptedProvider, call
from towline_client import Client, CommandRejected, LinkPolicy, Rebuilt, Session
from towline_client.testing import ManualClock
from towline_protocol import Envelope, SessionView, block_text
from towline_server.build import BuiltApp
from towline_server.testing import AppClient, open_test_server, ran

PATIENCE_S: Final = 20.0
ASLEEP_MS: Final = 300_000
QUICK: Final = LinkPolicy(first_ms=0)


@tool(name="change")
async def change() -> str:
    """Change something."""
    return "changed"


@dataclass
class Phone:
    """A client that sleeps with a permission request on its screen."""

    session: Session
    other: AppClient
    """Another device, which is awake."""
    built: BuiltApp
    gate: asyncio.Event
    clock: ManualClock

    async def allow(self, done: int) -> None:
        """Allow the call before which so many have ended."""
        view = await self.other.until(
            self.session.id, lambda view: bool(view.permissions) and len(view.calls) == done
        )
        answered = await self.other.answer(self.session.id, view.permissions[0], "allow_once")
        assert answered.status == 200

    async def wake(self, asleep_ms: int = ASLEEP_MS) -> list[str]:
        """Wake after a while; gives the states of the line until it is live or has failed."""
        changes = aiter(self.session.connection)
        states = [(await anext(changes)).phase]
        self.clock.advance(asleep_ms)
        self.session.start()
        async for connection in changes:
            states.append(connection.phase)
            if connection.phase in ("live", "failed"):
                return states
        raise AssertionError("the line ended")


@asynccontextmanager
async def _asleep(root: Path) -> AsyncGenerator[Phone]:
    gate = asyncio.Event()
    provider = ScriptedProvider(
        call("change"), call("change"), [TextPiece(0, "half "), gate, TextPiece(0, "done")], "on"
    )
    clock = ManualClock()
    async with (
        asyncio.timeout(PATIENCE_S),
        open_test_server(provider, root=root, tools=[change], mode="ask") as built,
        Client(built.url, built.token, policy=QUICK, clock=clock) as client,
    ):
        session = await client.open()
        await session.prompt("change it twice")
        async for view in session.views:
            if view.permissions:
                break
        session.stop()
        async for connection in session.connection:
            if connection.phase == "idle":
                break
        yield Phone(session, AppClient(built), built, gate, clock)


async def _same(phone: Phone) -> SessionView:
    """The phone's view, once it is the server's."""
    async for view in phone.session.views:
        if view == await phone.other.view(phone.session.id):
            return view
    raise AssertionError("the line ended")


def _said(view: SessionView) -> list[str]:
    return [f"{m.role}: {block_text(m.content)}" for m in view.messages if block_text(m.content)]


@pytest.mark.rules("C4.2", "S37")
async def test_a_phone_that_slept_while_its_turn_ended_sees_each_message_once_and_no_old_request(
    tmp_path: Path,
) -> None:
    async with _asleep(tmp_path) as phone:
        await phone.allow(0)
        await phone.allow(1)
        phone.gate.set()
        await phone.other.until(phone.session.id, ran(1))
        assert len(phone.session.view.permissions) == 1  # asleep: it knows of nothing
        assert phone.session.connection.value.phase == "idle"
        states = await phone.wake()
        view = await _same(phone)
        assert (states[0], states[-1]) == ("idle", "live")
        assert (view.permissions, view.turn, view.lost) == ((), None, False)
        assert _said(view) == ["user: change it twice", "assistant: half done"]
        assert await phone.session.ask("and now?") == "on"


@pytest.mark.rules("C4.3", "S37")
async def test_a_phone_that_slept_while_its_turn_went_on_rebuilds_and_sees_the_request_of_now(
    tmp_path: Path,
) -> None:
    async with _asleep(tmp_path) as phone:
        before = phone.session.view.permissions[0]
        await phone.allow(0)
        await phone.other.until(
            phone.session.id, lambda view: bool(view.permissions) and len(view.calls) == 1
        )
        states = await phone.wake()
        assert states[-1] == "live"
        async for event in phone.session.events:
            if isinstance(event, Rebuilt):
                break
        view = await _same(phone)
        (now,) = view.permissions
        assert now.permission != before.permission
        await phone.allow(1)
        async for view in phone.session.views:
            if view.open_messages and block_text(view.open_messages[0].content) == "half ":
                break
        phone.gate.set()
        async for event in phone.session.events:
            if isinstance(event, Envelope) and type(event.event).__name__ == "TurnCompleted":
                break
        assert _said(await _same(phone)) == ["user: change it twice", "assistant: half done"]


@pytest.mark.rules("C4.2", "S37")
async def test_a_phone_that_was_away_for_a_moment_goes_on_from_its_last_event(
    tmp_path: Path,
) -> None:
    async with _asleep(tmp_path) as phone:
        seq = phone.session.view.seq
        await phone.allow(0)
        await phone.wake(30_000)
        async for event in phone.session.events:
            if isinstance(event, Envelope) and event.seq is not None and event.seq > seq:
                assert event.seq == seq + 1
                break
        await _same(phone)


@pytest.mark.rules("C4.4", "S37")
async def test_a_phone_whose_session_was_deleted_meanwhile_is_told_so(tmp_path: Path) -> None:
    async with _asleep(tmp_path) as phone:
        await phone.other.ask("DELETE", f"/api/sessions/{phone.session.id}")
        states = await phone.wake()
        assert states[-1] == "failed"
        error = phone.session.connection.value.error
        assert isinstance(error, CommandRejected)
        assert error.code == "gone"

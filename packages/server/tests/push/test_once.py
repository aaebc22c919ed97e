"""Whatever happens in whatever order, a device hears of a request once at the most (C7.1)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from towline_agent import mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    NotePresence,
    PermissionRequested,
    PushKeys,
    SessionId,
    SubscribePush,
)
from towline_server.push.message import Call
from towline_server.push.sender import PushSender, Reply
from towline_server.store.push import Device
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app

KEYS = PushKeys(
    p256dh="BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth="BTBZMqHH6r4Tts7J_aSIgg",
)
REPLIES = {
    "delivered": Reply("delivered", 201, ""),
    "busy": Reply("failed", 503, "busy", again=True, after_s=3.0),
    "refused": Reply("failed", 400, "no"),
}


@tool(name="change")
async def _change(what: str) -> str:
    """Change something."""
    return f"changed {what}"


class CountingSender(PushSender):
    """Sends nothing; answers as it is told."""

    def __init__(self, folder: Path, replies: list[str]) -> None:
        super().__init__(folder, local=True)
        self.replies = replies
        self.delivered: list[tuple[str, str, str]] = []
        self.tries = 0

    async def try_keys(self, device: Device) -> None:
        del device

    async def send(self, device: Device, call: Call, *, ttl_s: int, now_ms: int) -> Reply:
        del ttl_s, now_ms
        self.tries += 1
        await asyncio.sleep(0)
        reply = REPLIES[self.replies.pop() if self.replies else "delivered"]
        if reply.outcome == "delivered":
            self.delivered.append((device.id, call.kind, call.about))
        return reply


async def _rest() -> None:
    """Let whatever is ready run."""
    for _ in range(200):
        await asyncio.sleep(0)


class Life:
    """One server, and what may happen to it."""

    def __init__(self, client: AppClient, clock: FakeClock, session: SessionId) -> None:
        self.client = client
        self.clock = clock
        self.session = session

    async def look(self) -> None:
        await self.client.ask("POST", "/api/presence", NotePresence(client="a"))

    async def hide(self) -> None:
        body = NotePresence(client="a", visible=False)
        await self.client.ask("POST", "/api/presence", body)

    async def wait(self) -> None:
        self.clock.advance(20.0)

    async def subscribe(self) -> None:
        body = SubscribePush(endpoint="https://push.example.org/a", keys=KEYS)
        await self.client.ask("POST", "/api/push/subscriptions", body)


STEPS: dict[str, Callable[[Life], Awaitable[None]]] = {
    "look": Life.look,
    "hide": Life.hide,
    "wait": Life.wait,
    "subscribe": Life.subscribe,
}


@pytest.mark.rules("C7.1")
@pytest.mark.wide
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lives=st.lists(st.lists(st.sampled_from(sorted(STEPS)), max_size=8), min_size=1, max_size=3),
    replies=st.lists(st.sampled_from(sorted(REPLIES)), max_size=6),
)
def test_a_request_is_delivered_once_to_a_device_through_restarts_and_busy_services(
    tmp_path: Path, lives: list[list[str]], replies: list[str]
) -> None:
    asyncio.run(_live_through(tmp_path, lives, replies))


async def _live_through(tmp_path: Path, lives: list[list[str]], replies: list[str]) -> None:
    store = await open_memory_store(mint=mint_now)
    clock = FakeClock(held=True)
    sender = CountingSender(tmp_path, list(replies))
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    session: SessionId | None = None
    asked: list[PermissionRequested] = []
    try:
        for steps in lives:
            async with open_test_app(
                ScriptedProvider(call("change", what="a"), "done"),
                root=root,
                tools=[_change],
                mode="ask",
                clock=clock,
                store=store,
                permission_window_s=1800.0,
                push=sender,
            ) as built:
                client = AppClient(built)
                if session is None:
                    session = await client.create()
                    life = Life(client, clock, session)
                    await life.subscribe()
                    await client.prompt(session, "go")
                view = await client.until(session, lambda view: bool(view.permissions))
                asked = [*view.permissions]
                life = Life(client, clock, session)
                for step in steps:
                    await STEPS[step](life)
                    await _rest()
        assert len(sender.delivered) == len(set(sender.delivered)) <= 1
        assert {about for _, _, about in sender.delivered} <= {asked[0].permission}
    finally:
        await store.close()

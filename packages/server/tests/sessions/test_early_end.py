"""A turn that ends before it has really begun, or begun again."""

import asyncio
import threading
from pathlib import Path
from typing import Final

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    PromptAccepted,
    PromptWithdrawn,
    QuestionAsked,
    QuestionResolved,
    SessionView,
    ToolEnded,
    ToolStarted,
    TurnCancelled,
    TurnStarted,
    UsageError,
)
from towline_server import Connection
from towline_server.store.records import Append
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

ASK: Final = call("ask_user", items=[{"prompt": "Which?"}])
PATIENCE_S: Final = 10.0


def _asked(view: SessionView) -> bool:
    return bool(view.questions)


async def _spin() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.rules("C1.23", "C5.8")
async def test_a_question_from_before_a_restart_ends_with_a_turn_that_is_stopped_at_once(
    tmp_path: Path,
) -> None:
    gate = threading.Event()
    gate.set()
    loop = asyncio.get_running_loop()
    waiting = asyncio.Event()

    def hold(phase: str, appends: tuple[Append, ...]) -> None:
        if phase == "before" and appends and not gate.is_set():
            loop.call_soon_threadsafe(waiting.set)
            gate.wait(PATIENCE_S)

    store = await open_memory_store(mint=mint_now, on_commit=hold)
    async with open_test_app(ScriptedProvider(ASK), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, _asked)
    gate.clear()  # the turn that is taken up waits for its first commit
    async with open_test_app(ScriptedProvider("on"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        (live,) = built.sessions.live
        async with asyncio.timeout(PATIENCE_S):
            await waiting.wait()
        await _spin()  # it has begun, and asks nothing before its first event is durable
        turn = live.runner.interrupt("owner", "stopped by the user")
        assert turn is not None
        await _spin()
        gate.set()
        view = await client.until(session, ran(1))
        events = [envelope.event for envelope in await client.log(session)]
    await store.close()
    assert view.questions == ()
    kinds = [type(event) for event in events]
    counts = [kinds.count(kind) for kind in (QuestionAsked, QuestionResolved, ToolEnded)]
    assert counts == [1, 1, 1]
    assert kinds.count(ToolStarted) <= 2
    assert kinds[-1] is TurnCancelled


@pytest.mark.rules("C1.21", "C2.11")
@pytest.mark.parametrize("works", [True, False])
async def test_a_prompt_that_is_withdrawn_while_its_turn_is_made_ready_never_runs(
    tmp_path: Path, works: bool
) -> None:
    going = asyncio.Event()
    asked = asyncio.Event()
    provider = ScriptedProvider("the next one")

    async def connect(model: str) -> Connection:
        asked.set()
        await going.wait()
        if not works:
            raise UsageError(f"There is no {model!r}; take another model.")
        return Connection(provider)

    async with open_test_app(provider, root=tmp_path, connect=connect) as built:
        client = AppClient(built)
        session = await client.create()
        prompt = (await client.prompt(session, "do not")).read(PromptAccepted).prompt
        async with asyncio.timeout(PATIENCE_S):
            await asked.wait()
        path = f"/api/sessions/{session}/prompts/{prompt}/withdraw"
        assert (await client.ask("POST", path)).status == 200
        going.set()
        await client.prompt(session, "go on")
        view = await client.until(session, ran(1))
        events = [envelope.event for envelope in await client.log(session)]
    assert view.last_turn is not None
    assert view.last_turn.outcome == ("completed" if works else "failed")
    started = [event.prompt for event in events if isinstance(event, TurnStarted)]
    assert len(started) == 1
    assert prompt not in started
    assert [event.prompt for event in events if isinstance(event, PromptWithdrawn)] == [prompt]

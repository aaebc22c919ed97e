import asyncio
import base64
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from towline_agent import mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import Image, SendPrompt, SessionId, SessionView, Text
from towline_server.doctor.examine import examine_store
from towline_server.doctor.finding import Finding
from towline_server.store.sqlite_store import STORE_FILE, open_store
from towline_server.testing import AppClient, open_test_app, ran

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 40_000
NOW_MS = 4_000_000_000_000

Damage = Callable[..., None]
Examine = Callable[[], list[Finding]]
Serve = Callable[[], Awaitable[dict[SessionId, SessionView]]]


@tool
async def change() -> str:
    """Change something."""
    return "changed"


async def _make(folder: Path) -> None:
    """A store with a long session, a short one, one that waits for a person, and a deleted one."""
    store = await open_store(folder, mint=mint_now)
    async with open_test_app(
        ScriptedProvider(call("change"), "done", "again", "short", "gone"),
        root=folder.parent.parent,
        tools=(change,),
        store=store,
    ) as built:
        client = AppClient(built)
        long = await client.create()
        picture = Image(media_type="image/png", data=base64.b64encode(PNG).decode())
        said = SendPrompt(content=(Text(text="look at this"), picture))
        assert (await client.ask("POST", f"/api/sessions/{long}/prompts", said)).status == 202
        await client.until(long, ran(1))
        await client.prompt(long, "and again")
        await client.until(long, ran(2))
        for words in ("short one", "delete this one"):
            session = await client.create()
            await client.prompt(session, words)
            await client.until(session, ran(1))
        assert (await client.ask("DELETE", f"/api/sessions/{session}")).status == 200
    async with open_test_app(
        ScriptedProvider(call("change")),
        root=folder.parent.parent,
        tools=(change,),
        store=store,
        mode="ask",
    ) as built:
        client = AppClient(built)
        waiting = await client.create()
        await client.prompt(waiting, "change it")
        await client.until(waiting, lambda view: bool(view.permissions))
        await client.prompt(waiting, "then this")
    await store.close()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "data"
    asyncio.run(_make(folder))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A data folder of a test's own; no server runs on it."""
    return Path(shutil.copytree(made, tmp_path / "data"))


@pytest.fixture
def damage(folder: Path) -> Damage:
    """Runs statements on the store."""

    def run(*statements: str) -> None:
        connection = sqlite3.connect(folder / STORE_FILE, isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return run


@pytest.fixture
def examine(folder: Path) -> Examine:
    """Looks at the store, and gives all that is not as it should be."""

    def look() -> list[Finding]:
        return [one for one in examine_store(folder, now_ms=NOW_MS) if one.level != "ok"]

    return look


@pytest.fixture
def serve(folder: Path) -> Serve:
    """Opens each session, lets it take a prompt to its end, and gives the views."""

    async def run() -> dict[SessionId, SessionView]:
        store = await open_store(folder, mint=mint_now)
        views: dict[SessionId, SessionView] = {}
        try:
            async with open_test_app(
                ScriptedProvider(*["well"] * 40),
                root=folder.parent.parent,
                tools=(change,),
                store=store,
            ) as built:
                client = AppClient(built)
                for row in await store.sessions(user="owner"):
                    views[row.id] = await _prompt(client, row.id)
                assert built.sessions.started
        finally:
            await store.close()
        return views

    return run


async def _settle(
    client: AppClient, session: SessionId, met: Callable[[SessionView], bool]
) -> SessionView:
    """Wait until a session has come to where something is so, from what it is now on."""
    last = (await client.view(session)).seq
    return await client.until(session, lambda view: view.seq >= last and met(view))


def _idle(view: SessionView) -> bool:
    return view.turn is None and not view.queue


async def _prompt(client: AppClient, session: SessionId) -> SessionView:
    """One more prompt, to its end; what waits for a person is denied before."""
    view = await _settle(client, session, lambda v: bool(v.permissions) or _idle(v))
    for request in view.permissions:
        assert (await client.answer(session, request, "deny")).status == 200
    view = await _settle(client, session, _idle)
    assert (await client.prompt(session, "are you there?")).status == 202
    view = await client.until(session, lambda v: v.seq > view.seq + 2 and _idle(v))
    numbers = [envelope.seq for envelope in await client.log(session)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert view.last_turn is not None
    assert view.last_turn.outcome == "completed", view.last_turn.fault
    return view

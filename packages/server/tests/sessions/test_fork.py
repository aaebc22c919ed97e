"""A session that goes on from a turn of another one."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import TextPiece, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import ForkSession, Problem, SessionId, SessionInfo, TurnId, block_text
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran


def _asked(provider: ScriptedProvider, step: int) -> list[str]:
    return [block_text(message.content) for message in provider.requests[step].messages]


async def _fork(
    client: AppClient, session: str, turn: str | None = None, key: str | None = None
) -> Reply:
    body = ForkSession(turn=None if turn is None else TurnId(turn))
    headers = {} if key is None else {"idempotency-key": key}
    return await client.ask("POST", f"/api/sessions/{session}/fork", body, headers=headers)


async def _say(client: AppClient, session: str, text: str, number: int) -> str:
    await client.prompt(SessionId(session), text)
    view = await client.until(SessionId(session), ran(number))
    assert view.last_turn is not None
    return view.last_turn.id


async def test_a_fork_knows_what_was_said_up_to_its_turn_and_leaves_its_source_alone(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider("one", "two", "forked", "three")
    store = await open_memory_store(mint=lambda prefix: f"{prefix}_1")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        first = await _say(client, session, "first", 1)
        await _say(client, session, "second", 2)
        before = await client.view(session)
        made = await _fork(client, session, first, key="k")
        assert made.status == 201
        fork = made.read(SessionInfo)
        assert (await _fork(client, session, first, key="k")).read(SessionInfo).id == fork.id
        assert (fork.title, fork.model) == (before.title, before.model)
        assert [e.seq for e in await client.log(fork.id)] == list(range(1, fork.last_seq + 1))
        view = await client.view(fork.id)
        assert [block_text(m.content) for m in view.messages] == ["first", "one"]
        assert await client.view(session) == before
    async with open_test_app(provider, root=tmp_path, store=store) as built:  # as after a restart
        client = AppClient(built)
        await _say(client, fork.id, "other", 2)
        assert _asked(provider, 2) == ["first", "one", "other"]
        await _say(client, session, "third", 3)
        assert _asked(provider, 3) == ["first", "one", "second", "two", "third"]
    await store.close()


async def test_a_fork_has_calls_with_their_results_and_nothing_that_was_allowed(
    tmp_path: Path,
) -> None:
    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "seen"

    provider = ScriptedProvider([call("look")], "done", "again")
    async with open_test_app(provider, root=tmp_path, tools=[look]) as built:
        client = AppClient(built)
        session = await client.create()
        await _say(client, session, "look", 1)
        fork = (await _fork(client, session)).read(SessionInfo)
        view = await client.view(fork.id)
        assert [(c.tool, c.status) for c in view.calls] == [("look", "completed")]
        assert view.cost == 0.0  # what a step cost counts where it was taken
        await _say(client, fork.id, "more", 2)
        roles = [message.role for message in provider.requests[2].messages]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_turn_that_runs_or_is_unknown_cannot_be_forked_at(tmp_path: Path) -> None:
    provider = ScriptedProvider("one", [TextPiece(0, "two"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        empty = (await _fork(client, session)).read(SessionInfo)
        assert (await client.view(empty.id)).messages == ()
        await _say(client, session, "first", 1)
        await client.prompt(session, "second")
        view = await client.until(
            session, lambda view: len(view.messages) == 3 and bool(view.open_messages)
        )
        assert view.turn is not None
        busy = await _fork(client, session, view.turn.id)
        assert (busy.status, busy.read(Problem).reason) == (409, "turn_active")
        assert (await _fork(client, session, "trn_none")).status == 404
        fork = (await _fork(client, session)).read(SessionInfo)
        forked = await client.view(fork.id)
        assert [block_text(m.content) for m in forked.messages] == ["first", "one"]
        assert (forked.turn, forked.queue) == (None, ())


@pytest.mark.rules("C2.9")
async def test_a_session_of_somebody_else_cannot_be_forked(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        assert (await _fork(AppClient(built), "ses_none")).status == 404

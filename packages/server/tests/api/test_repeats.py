"""A request that comes again under its key (C2.5)."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from starlette.requests import Request

from towline_agent import TextPiece, mint_now
from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import (
    ClientTool,
    CloseSession,
    CreateSession,
    DeclareTools,
    ForkSession,
    MarkRead,
    Problem,
    PromptAccepted,
    SessionInfo,
    SessionList,
    TowlineError,
    UpdateSession,
)
from towline_server.api.remember import Repeats
from towline_server.build import BuiltApp
from towline_server.sessions.inbox import MAX_INBOX
from towline_server.store.idempotency import KEPT_MS
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app

_RING = ClientTool(name="ring", description="Ring.", parameters={"type": "object"})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(held=True)


@pytest.fixture
def gate() -> asyncio.Event:
    """The first turn stands at it."""
    return asyncio.Event()


@pytest.fixture
async def built(tmp_path: Path, clock: FakeClock, gate: asyncio.Event) -> AsyncGenerator[BuiltApp]:
    provider = ScriptedProvider([TextPiece(0, "well"), gate], *["well"] * MAX_INBOX)
    async with open_test_app(provider, root=tmp_path, clock=clock) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


@pytest.mark.rules("C2.5", "S25")
async def test_a_prompt_sent_again_and_again_is_one_prompt_with_one_answer(
    client: AppClient, gate: asyncio.Event
) -> None:
    session = await client.create()
    replies = await asyncio.gather(*(client.prompt(session, "hello", key="k") for _ in range(10)))
    replies.append(await client.prompt(session, "hello", key="k"))
    assert {reply.status for reply in replies} == {202}
    assert len({reply.body for reply in replies}) == 1
    gate.set()
    view = await client.until(session, lambda view: view.last_turn is not None)
    assert [m.id for m in view.messages if m.role == "user"] == [
        replies[0].read(PromptAccepted).prompt
    ]
    assert view.queue == ()
    again = await client.prompt(session, "hello", key="k")
    assert again.body == replies[0].body


@pytest.mark.rules("C2.5")
async def test_a_session_made_again_under_one_key_is_one_session(client: AppClient) -> None:
    new = CreateSession(title="Mine")
    headers = {"idempotency-key": "k"}
    made = [await client.ask("POST", "/api/sessions", new, headers=headers) for _ in range(2)]
    assert made[0].read(SessionInfo) == made[1].read(SessionInfo)
    assert [reply.status for reply in made] == [201, 201]
    assert len((await client.ask("GET", "/api/sessions")).read(SessionList).sessions) == 1


@pytest.mark.rules("C2.3", "C2.5", "S25")
async def test_another_body_under_the_same_key_is_a_conflict_and_does_nothing(
    client: AppClient,
) -> None:
    session = await client.create()
    await client.prompt(session, "hello", key="k")
    refused = await client.prompt(session, "good bye", key="k")
    assert (refused.status, refused.read(Problem).code) == (409, "idempotency_conflict")
    view = await client.until(session, lambda view: bool(view.open_messages))
    assert view.queue == ()


@pytest.mark.rules("C2.5")
async def test_a_key_counts_for_one_operation_on_one_path(client: AppClient) -> None:
    sessions = [await client.create() for _ in range(2)]
    for session in sessions:
        sent = await client.prompt(session, "hello", key="k")
        assert sent.read(PromptAccepted).session == session
    headers = {"idempotency-key": "k"}
    made = await client.ask("POST", "/api/sessions", CreateSession(), headers=headers)
    assert made.status == 201


@pytest.mark.rules("C2.5")
async def test_a_refusal_is_given_again_too(client: AppClient, gate: asyncio.Event) -> None:
    session = await client.create()
    await client.prompt(session, "hello")
    first = await client.prompt(session, "at once!", when="reject", key="k")
    gate.set()
    await client.until(session, lambda view: view.last_turn is not None)
    again = await client.prompt(session, "at once!", when="reject", key="k")
    assert (first.status, again.status) == (409, 409)
    assert again.headers["content-type"] == "application/problem+json"
    assert again.read(Problem).reason == first.read(Problem).reason == "turn_active"
    assert (await client.prompt(session, "at once!", when="reject", key="k2")).status == 202


@pytest.mark.rules("C2.5")
async def test_what_only_time_can_heal_is_not_kept(client: AppClient, gate: asyncio.Event) -> None:
    session = await client.create()
    for number in range(MAX_INBOX + 1):
        assert (await client.prompt(session, f"{number}")).status == 202
        await client.until(session, lambda view: bool(view.open_messages))
    assert (await client.prompt(session, "one more", key="k")).status == 429
    gate.set()
    await client.until(session, lambda view: view.seq > 1 and not view.queue and not view.turn)
    assert (await client.prompt(session, "one more", key="k")).status == 202


@pytest.mark.rules("C2.5")
async def test_a_key_is_free_again_after_a_day(
    client: AppClient, clock: FakeClock, gate: asyncio.Event
) -> None:
    gate.set()
    session = await client.create()
    first = (await client.prompt(session, "hello", key="k")).read(PromptAccepted)
    clock.advance(KEPT_MS / 1000 + 1)
    second = (await client.prompt(session, "hello", key="k")).read(PromptAccepted)
    assert first.prompt != second.prompt


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize("key", ["", "k" * 201])
async def test_a_key_has_1_to_200_characters(client: AppClient, key: str) -> None:
    session = await client.create()
    assert (await client.prompt(session, "hello", key=key)).status == 400
    assert (await client.view(session)).queue == ()


@pytest.mark.rules("C2.5")
async def test_an_answer_that_changed_nothing_is_given_again_and_holds_its_key(
    client: AppClient,
) -> None:
    session = await client.create()
    same = DeclareTools(reader="phone", tools=())
    other = DeclareTools(reader="phone", tools=(_RING,))
    path = f"/api/sessions/{session}"
    for method, where, wish, change in (
        ("PUT", f"{path}/tools", same, other),
        ("PATCH", path, UpdateSession(archived=False), UpdateSession(title="Later")),
        ("POST", f"{path}/close", CloseSession(reason="a"), None),
        ("POST", f"{path}/close", CloseSession(reason="b"), CloseSession(reason="c")),
    ):
        headers = {"idempotency-key": f"{method} {wish}"}
        first = await client.ask(method, where, wish, headers=headers)
        again = await client.ask(method, where, wish, headers=headers)
        assert (first.status, again.status, again.body) == (200, 200, first.body)
        if change is not None:
            refused = await client.ask(method, where, change, headers=headers)
            assert refused.read(Problem).code == "idempotency_conflict"


@pytest.mark.rules("C2.5", "C2.10")
async def test_all_who_delete_a_session_at_once_get_their_answer_again(client: AppClient) -> None:
    session = await client.create()

    async def delete(key: str) -> Reply:
        headers = {"idempotency-key": key}
        return await client.ask("DELETE", f"/api/sessions/{session}", headers=headers)

    replies = await asyncio.gather(*map(delete, "abc"))
    again = await asyncio.gather(*map(delete, "abc"))
    assert [reply.status for reply in (*replies, *again)] == [200] * 6
    assert [reply.body for reply in again] == [reply.body for reply in replies]
    assert (await delete("d")).status == 410


@pytest.mark.rules("C2.5")
async def test_what_is_answered_is_what_is_kept_whatever_happens_meanwhile(
    client: AppClient, gate: asyncio.Event
) -> None:
    session = await client.create()
    await client.prompt(session, "hello")
    view = await client.until(session, lambda view: bool(view.open_messages))
    await client.ask("POST", f"/api/sessions/{session}/read", MarkRead(seq=view.seq))
    path = f"/api/sessions/{session}"
    async with client.follow(session):
        for method, where, wish in (
            ("PATCH", path, UpdateSession(title="Mine")),
            ("POST", f"{path}/fork", ForkSession(title="Other")),
            ("POST", f"{path}/close", CloseSession()),
        ):
            headers = {"idempotency-key": "k"}
            first = await client.ask(method, where, wish, headers=headers)
            gate.set()
            again = await client.ask(method, where, wish, headers=headers)
            assert first.status in (200, 201)
            assert again.body == first.body
            if where != f"{path}/fork":
                assert first.read(SessionInfo).read_seq == view.seq


def _request(key: str) -> Request:
    return Request(
        {
            "type": "http",
            "method": "POST",
            "path": "/api/x",
            "query_string": b"",
            "headers": [(b"idempotency-key", key.encode())],
        }
    )


@pytest.mark.rules("C2.4", "C2.5")
async def test_a_repeat_waits_for_the_first_one_for_a_while_and_leaves_nothing_behind() -> None:
    store = await open_memory_store(mint=mint_now)
    repeats = Repeats(store, lambda: 0, wait_s=0.01)
    async with repeats.in_turn(_request("k"), "me"):
        with pytest.raises(TowlineError) as caught:
            async with repeats.in_turn(_request("k"), "me"):
                raise AssertionError("the first one is still here")
        async with repeats.in_turn(_request("other"), "me"):
            pass
        waiting = asyncio.create_task(repeats.in_turn(_request("k"), "me").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    assert caught.value.fault().code == "upstream_unavailable"
    assert caught.value.fault().retry == "same_request"
    async with repeats.in_turn(_request("k"), "me"):
        pass
    assert repeats.waiting == 0
    await store.close()

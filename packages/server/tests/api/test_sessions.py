"""Sessions over HTTP: made, listed, read."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    CreateSession,
    Envelope,
    Image,
    Problem,
    SessionCreated,
    SessionId,
    SessionInfo,
    SessionList,
    Text,
    ViewAnswer,
    block_text,
    encode,
)
from towline_server.build import BuiltApp
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import open_memory_store
from towline_server.stream.hub import MAX_READERS
from towline_server.testing import AppClient, open_test_app


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(*["well"] * 99), root=tmp_path) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


async def _refused(client: AppClient, new: CreateSession, status: int) -> Problem:
    reply = await client.ask("POST", "/api/sessions", new)
    assert reply.status == status, reply.body
    return reply.read(Problem)


@pytest.mark.rules("C2.10")
async def test_a_new_session_has_what_was_asked_for_and_is_idle(
    client: AppClient, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    new = CreateSession(title="Mine", cwd=str(tmp_path / "inner"), mode="ask", model="a/b")
    reply = await client.ask("POST", "/api/sessions", new)
    made = reply.read(SessionInfo)
    assert reply.status == 201
    assert (made.title, made.mode, made.model, made.agent) == ("Mine", "ask", "a/b", "towline")
    assert made.cwd == str((tmp_path / "inner").resolve())
    assert (made.live, made.last_seq, made.turn, made.queued) == (False, 1, None, 0)
    row = (await client.ask("GET", f"/api/sessions/{made.id}")).read(SessionInfo)
    assert row == made
    answer = (await client.ask("GET", f"/api/sessions/{made.id}/view")).read(ViewAnswer)
    assert answer.seq == answer.view.seq == 1
    assert answer.view.session == made.id


@pytest.mark.rules("A2.93")
async def test_a_session_may_begin_with_a_prompt_which_gives_it_its_title(
    client: AppClient,
) -> None:
    new = CreateSession(prompt=(Text(text="What  time\nis it?"),), key="mine")
    made = (await client.ask("POST", "/api/sessions", new)).read(SessionInfo)
    view = await client.until(made.id, lambda view: view.last_turn is not None)
    assert view.title == "What time is it?"
    assert [(m.role, block_text(m.content)) for m in view.messages] == [
        ("user", "What  time\nis it?"),
        ("assistant", "well"),
    ]
    assert view.messages[0].key == "mine"


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize(
    ("new", "says"),
    [
        (CreateSession(agent="nobody"), "no agent 'nobody'"),
        (CreateSession(mode="yolo"), "no mode 'yolo'"),
        (CreateSession(cwd="a\0b"), "no folder"),
        (CreateSession(cwd="~nobody-of-this-name/x"), "no folder"),
        (CreateSession(title="x" * 201), "title"),
        (CreateSession(model="x" * 201), "model"),
        (CreateSession(key="x" * 201), "key"),
        (CreateSession(prompt=()), "1 to 64 blocks"),
        (CreateSession(prompt=(Text(text=""),)), "empty"),
        (CreateSession(prompt=(Text(text="x"),) * 65), "1 to 64 blocks"),
        (CreateSession(prompt=(Image(media_type="image/png"),)), "either 'data' or 'file'"),
        (
            CreateSession(prompt=(Text(text="x"), Image(media_type="image/png", data="?"))),
            "no Base 64",
        ),
    ],
)
async def test_a_session_that_cannot_be_is_refused_in_words(
    client: AppClient, new: CreateSession, says: str
) -> None:
    problem = await _refused(client, new, 400)
    assert problem.code == "invalid_request"
    assert says in problem.detail
    assert len(problem.detail) < 500
    assert (await client.ask("GET", "/api/sessions")).read(SessionList).sessions == ()


@pytest.mark.rules("C6")
@pytest.mark.parametrize("letter", ["x", "é", "語", "👍", "\x01", '"'])
async def test_a_prompt_always_fits_into_an_event_of_a_mebibyte(
    client: AppClient, letter: str
) -> None:
    size = len(msgspec.json.encode(letter)) - 2
    session = await client.create()
    most = 1_000_000 // size
    refused = await client.prompt(session, letter * (most + 1))
    assert refused.status == 400
    assert "file" in refused.read(Problem).detail
    assert (await client.prompt(session, letter * (most - 100))).status == 202
    async with client.follow(session) as wire:
        await wire.until(lambda: b"turn_completed" in b"".join(wire.pieces))
        assert max(len(event.data) for event in wire.events) <= 1024 * 1024
        assert not wire.ended


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize("cwd", ["/", "/etc", "{root}/..", "{root}/link", "relative/../.."])
async def test_a_folder_outside_the_roots_is_forbidden(
    client: AppClient, tmp_path: Path, cwd: str
) -> None:
    (tmp_path / "link").symlink_to("/")
    problem = await _refused(client, CreateSession(cwd=cwd.replace("{root}", str(tmp_path))), 403)
    assert problem.code == "forbidden"
    assert "roots" in problem.detail
    assert "`towline up --root " in problem.detail


@pytest.mark.parametrize("cwd", ["file", "nothing", "nothing/at/all"])
async def test_a_folder_must_be_there(client: AppClient, tmp_path: Path, cwd: str) -> None:
    (tmp_path / "file").touch()
    problem = await _refused(client, CreateSession(cwd=str(tmp_path / cwd)), 400)
    assert "is not a folder" in problem.detail


async def test_the_list_goes_from_new_to_old_in_pages(client: AppClient) -> None:
    made = [await client.create() for _ in range(7)]
    await client.prompt(made[2], "hello")
    await client.until(made[2], lambda view: view.last_turn is not None)
    listed: list[str] = []
    pages = 0
    query = "?limit=3"
    while query:
        page = (await client.ask("GET", f"/api/sessions{query}")).read(SessionList)
        assert len(page.sessions) <= 3
        listed += [row.id for row in page.sessions]
        pages += 1
        query = "" if page.next is None else f"?limit=3&after={page.next}"
    assert pages == 3
    assert sorted(listed) == sorted(made)
    assert listed[0] == made[2]  # the last that something happened in


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize(
    "limit", ["0", "-1", "201", "x", "", "1.5", "²", "9" * 5000, "000000001000000"]
)
async def test_a_limit_that_is_no_number_in_its_bounds_is_refused(
    client: AppClient, limit: str
) -> None:
    reply = await client.ask("GET", f"/api/sessions?limit={limit}")
    assert reply.status == 400, reply.body
    assert len(reply.read(Problem).detail) < 200


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize("after", ["x", "1", "-", "1-", "99999999999999999999-ses_1"])
async def test_a_cursor_that_the_list_never_gave_asks_for_the_first_page(
    client: AppClient, after: str
) -> None:
    reply = await client.ask("GET", f"/api/sessions?after={after}")
    problem = reply.read(Problem)
    assert (reply.status, problem.code, problem.retry) == (412, "precondition_failed", "refresh")


@pytest.mark.rules("C2.10")
async def test_a_dormant_session_is_idle_in_the_list_and_loaded_by_a_look(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider("well"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "hello")
        before = await client.until(session, lambda view: view.last_turn is not None)
    async with open_test_app(ScriptedProvider("again"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        (row,) = (await client.ask("GET", "/api/sessions")).read(SessionList).sessions
        assert (row.id, row.live, row.last_seq) == (session, False, before.seq)
        assert row.title == "hello"
        assert built.sessions.live == ()
        assert await client.view(session) == before
        await client.prompt(session, "hello again")
        await client.until(session, lambda view: len(view.messages) == 4)
    await store.close()


@pytest.mark.rules("C2.9")
async def test_another_user_s_session_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    created = SessionCreated(agent="towline", model="a/b", mode="ask")
    foreign = SessionId("ses_of_another")
    envelope = Envelope(seq=1, session=foreign, time="2026-01-31T09:05:00.250Z", event=created)
    row = SessionRow(
        id=foreign,
        user="another",
        agent="towline",
        model="a/b",
        mode="ask",
        created_ms=0,
        updated_ms=0,
    )
    rows = (StoredRow(1, None, 0, encode(envelope)),)
    await append_and_wait(store, Append(session=foreign, first_seq=1, rows=rows, summary=row))
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        for path in ("", "/view", "/events"):
            refused = await client.ask("GET", f"/api/sessions/{foreign}{path}")
            nothing = await client.ask("GET", f"/api/sessions/ses_of_nobody{path}")
            assert refused.status == nothing.status == 404
            said = refused.read(Problem).detail.replace(foreign, "ses_of_nobody")
            assert said == nothing.read(Problem).detail
        assert (await client.prompt(foreign, "hello")).status == 404
        assert (await client.ask("GET", "/api/sessions")).read(SessionList).sessions == ()
        assert built.sessions.live == ()
    await store.close()


@pytest.mark.rules("C2.4", "C3.9", "C6")
async def test_a_session_has_sixteen_readers_and_one_that_comes_again_takes_its_own_place(
    client: AppClient, built: BuiltApp
) -> None:
    session = await client.create()
    (live,) = built.sessions.live
    async with AsyncExitStack() as stack:
        wires = [
            await stack.enter_async_context(client.follow(session, query=f"reader=device-{n}"))
            for n in range(MAX_READERS)
        ]
        for wire in wires:
            await wire.take(1)
        full = await client.ask("GET", f"/api/sessions/{session}/events")
        problem = full.read(Problem)
        assert (full.status, problem.code, problem.scope) == (429, "capacity_exceeded", "limit")
        assert full.headers["retry-after"] == "5"
        async with client.follow(session, query="reader=device-15") as again:
            await again.take(1)
            await wires[15].until(lambda: wires[15].ended)
            assert live.log.hub.readers == MAX_READERS
    assert live.log.hub.readers == 0

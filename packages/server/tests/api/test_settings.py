"""What people set on a session, how they find it, and how far they have read."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import msgspec
import pytest

from towline_agent import Model, mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    CreateSession,
    Limits,
    MarkRead,
    Problem,
    ReadMark,
    SendPrompt,
    SessionInfo,
    SessionList,
    SessionUpdated,
    Text,
    TurnStarted,
    UpdateSession,
)
from towline_server.build import BuiltApp
from towline_server.sessions.connection import Connection
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran, sign_in


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(*["well"] * 99), root=tmp_path) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


async def _update(
    client: AppClient,
    session: str,
    change: UpdateSession,
    *,
    match: str | None = None,
    key: str | None = None,
) -> Reply:
    headers = {"if-match": match, "idempotency-key": key}
    return await client.ask("PATCH", f"/api/sessions/{session}", change, headers=headers)


async def _row(client: AppClient, session: str) -> SessionInfo:
    return (await client.ask("GET", f"/api/sessions/{session}")).read(SessionInfo)


async def _found(client: AppClient, query: str) -> Sequence[str | None]:
    page = (await client.ask("GET", f"/api/sessions?{query}")).read(SessionList)
    return [row.title for row in page.sessions]


@pytest.mark.rules("C2.10")
async def test_what_is_set_stands_in_the_row_the_view_and_the_log(client: AppClient) -> None:
    session = await client.create(CreateSession(title="Old", labels=("home",)))
    change = UpdateSession(
        title=" A\nnew  title ", model="acme/two", mode="ask", labels=("b", " a ", "b"),
        archived=True,
    )  # fmt: skip
    row = (await _update(client, session, change)).read(SessionInfo)
    assert (row.title, row.model, row.mode) == ("A new title", "acme/two", "ask")
    assert (row.labels, row.archived) == (("b", "a"), True)
    assert await _row(client, session) == row
    view = await client.view(session)
    assert (view.title, view.model, view.mode) == ("A new title", "acme/two", "ask")
    assert (view.labels, view.archived) == (("b", "a"), True)
    (_, told) = await client.log(session)
    assert isinstance(told.event, SessionUpdated)
    assert told.turn is None


async def test_only_what_changes_is_told_and_what_changes_nothing_is_not(client: AppClient) -> None:
    session = await client.create(CreateSession(title="Old", labels=("home",)))
    await _update(client, session, UpdateSession(title="Old", labels=()))
    await _update(client, session, UpdateSession(title="Old", archived=False))
    await _update(client, session, UpdateSession())
    log = await client.log(session)
    assert [e.event for e in log[1:]] == [SessionUpdated(labels=())]


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        (UpdateSession(title=" \n"), 400, "empty"),
        (UpdateSession(title="x" * 201), 400, "title"),
        (UpdateSession(mode="yolo"), 400, "no mode 'yolo'"),
        (UpdateSession(labels=("x" * 65,)), 400, "1 to 64 characters"),
        (UpdateSession(labels=("a", "\n")), 400, "1 to 64 characters"),
        (UpdateSession(labels=tuple(map(str, range(17)))), 400, "at most 16 labels"),
        (UpdateSession(model="no-slash"), 422, "provider/model"),
        (UpdateSession(model="acme/"), 422, "provider/model"),
        (UpdateSession(model="/ "), 422, "provider/model"),
        (UpdateSession(model="x" * 201), 400, "model"),
    ],
)
async def test_what_cannot_be_set_is_refused_in_words_and_nothing_changes(
    client: AppClient, change: UpdateSession, status: int, says: str
) -> None:
    session = await client.create(CreateSession(title="Old"))
    before = await _row(client, session)
    reply = await _update(client, session, msgspec.structs.replace(change, archived=True))
    assert reply.status == status, reply.body
    assert says in reply.read(Problem).detail
    assert await _row(client, session) == before


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize(
    ("new", "status", "says"),
    [
        (CreateSession(model="no-slash"), 422, "provider/model"),
        (CreateSession(labels=("",)), 400, "1 to 64 characters"),
        (CreateSession(title="  "), 400, "empty"),
        (CreateSession(limits=Limits(max_steps=0)), 400, "limits.max_steps"),
        (CreateSession(limits=Limits(wall_s=float("-1"))), 400, "limits.wall_s"),
    ],
)
async def test_a_session_is_not_made_of_what_cannot_be(
    client: AppClient, new: CreateSession, status: int, says: str
) -> None:
    reply = await client.ask("POST", "/api/sessions", new)
    assert reply.status == status, reply.body
    assert says in reply.read(Problem).detail
    assert await _found(client, "") == []


@pytest.mark.rules("C2.3")
async def test_a_model_that_nobody_knows_is_rejected_at_once(tmp_path: Path) -> None:
    async with open_test_app(
        ScriptedProvider(), root=tmp_path, knows=lambda model: model.startswith("acme/")
    ) as built:
        client = AppClient(built)
        reply = await client.ask("POST", "/api/sessions", CreateSession(model="nobody/x"))
        problem = reply.read(Problem)
        assert (reply.status, problem.code, problem.reason) == (422, "rejected", "unknown_model")
        assert "no provider 'nobody'" in problem.detail
        session = await client.create(CreateSession(model="acme/x"))
        assert (await _update(client, session, UpdateSession(model="nobody/y"))).status == 422
        assert (await _update(client, session, UpdateSession(model="acme/y"))).status == 200


@pytest.mark.rules("C2.9")
async def test_a_running_turn_keeps_its_own_model_and_mode(tmp_path: Path) -> None:
    @tool(name="touch", effect="write")
    async def touch() -> str:
        """Touch."""
        return "touched"

    gate = asyncio.Event()

    @tool(name="wait", effect="read")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    one = ScriptedProvider(call("wait"), call("touch"), "well")
    two = ScriptedProvider(call("touch"), model=Model(provider="acme", id="two"))

    async def connect(model: str) -> Connection:
        return Connection(two if model == "acme/two" else one)

    async with open_test_app(
        one, root=tmp_path, tools=[wait, touch], mode="auto", connect=connect
    ) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_calls))
        change = UpdateSession(mode="ask", model="acme/two")
        assert (await _update(client, session, change)).status == 200
        gate.set()
        view = await client.until(session, ran(1))  # in mode `auto`: nobody is asked
        assert [c.status for c in view.calls] == ["completed", "completed"]
        await client.prompt(session, "second")
        view = await client.until(session, lambda view: bool(view.permissions))
        assert view.mode == "ask"
        models = [
            e.event.model for e in await client.log(session) if isinstance(e.event, TurnStarted)
        ]
    assert models == ["scripted/scripted", "acme/two"]


@pytest.mark.rules("C2.6")
async def test_a_change_of_what_somebody_else_changed_is_refused_with_what_counts_now(
    client: AppClient,
) -> None:
    session = await client.create(CreateSession(title="One"))
    read = await client.ask("GET", f"/api/sessions/{session}")
    tag = read.headers["etag"]
    theirs = await _update(client, session, UpdateSession(title="Two"), match=tag)
    assert theirs.status == 200
    mine = await _update(client, session, UpdateSession(title="Three"), match=tag)
    problem = mine.read(Problem)
    assert (mine.status, problem.code, problem.retry) == (412, "precondition_failed", "refresh")
    now = theirs.headers["etag"]
    assert problem.details == {"etag": now}
    assert (await _row(client, session)).title == "Two"
    assert (await _update(client, session, UpdateSession(title="Three"), match=now)).status == 200
    assert (await _update(client, session, UpdateSession(title="Four"), match="*")).status == 200


@pytest.mark.rules("C2.6")
async def test_neither_reading_nor_talking_makes_another_tag_but_each_setting_does(
    client: AppClient,
) -> None:
    session = await client.create(CreateSession(title="One"))

    async def tag() -> str:
        return (await client.ask("GET", f"/api/sessions/{session}")).headers["etag"]

    first = await tag()
    await client.prompt(session, "hello")
    await client.until(session, ran(1))
    await client.ask("POST", f"/api/sessions/{session}/read", MarkRead(seq=3))
    assert await tag() == first
    seen = {first}
    for change in (
        UpdateSession(title="Two"),
        UpdateSession(model="acme/two"),
        UpdateSession(mode="ask"),
        UpdateSession(labels=("a",)),
        UpdateSession(archived=True),
    ):
        answered = (await _update(client, session, change)).headers["etag"]
        assert answered == await tag()
        seen.add(answered)
    assert len(seen) == 6


@pytest.mark.rules("C2.5")
async def test_a_change_that_is_sent_again_is_made_once(client: AppClient) -> None:
    session = await client.create(CreateSession(title="One"))
    mine = UpdateSession(title="Two")
    first = await _update(client, session, mine, key="k")
    await _update(client, session, UpdateSession(title="Three"))
    again = await _update(client, session, mine, key="k")
    assert again.body == first.body
    assert (await _row(client, session)).title == "Three"
    nothing = UpdateSession(title="Three")  # what changes nothing is remembered as well
    await _update(client, session, nothing, key="n")
    await _update(client, session, UpdateSession(title="Four"))
    await _update(client, session, nothing, key="n")
    assert (await _row(client, session)).title == "Four"


@pytest.mark.rules("C2.10")
async def test_what_is_put_away_is_in_its_own_list_and_can_still_be_prompted(
    client: AppClient,
) -> None:
    session = await client.create(CreateSession(title="Away"))
    await client.create(CreateSession(title="Here"))
    await _update(client, session, UpdateSession(archived=True))
    assert await _found(client, "") == ["Here"]
    assert await _found(client, "archived=false") == ["Here"]
    assert await _found(client, "archived=true") == ["Away"]
    await client.prompt(session, "hello")
    await client.until(session, ran(1))
    await _update(client, session, UpdateSession(archived=False))
    assert await _found(client, "") == ["Away", "Here"]


@pytest.mark.rules("C2.10")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("search=BRIDGE", {"The bridge", "Fix the BRIDGE of Brno"}),
        ("search=the%20fix", {"Fix the BRIDGE of Brno"}),
        ("search=%25", set[str]()),
        ("search=_", set[str]()),
        ("search=over%20water", {"The bridge"}),
        ("search=holiday", {"Other"}),
        ("search=", {"The bridge", "Fix the BRIDGE of Brno", "Other"}),
        ("label=holiday", {"Other"}),
        ("label=holi", set[str]()),
        ("label=holiday&search=bridge", set[str]()),
        ("needs=true", set[str]()),
        ("needs=false&limit=1", {"Other"}),
    ],
)
async def test_a_session_is_found_by_its_title_its_first_prompt_and_its_labels(
    client: AppClient, query: str, found: set[str]
) -> None:
    for new in (
        CreateSession(title="The bridge", prompt=(Text(text="A way over\nWater"),)),
        CreateSession(prompt=(Text(text="Fix the BRIDGE of Brno"),)),
        CreateSession(title="Other", labels=("holiday",)),
    ):
        session = await client.create(new)
        if new.prompt:
            await client.until(session, ran(1))
            await client.prompt(session, "secret")  # no first prompt: it is not searched
            await client.until(session, ran(2))
    assert set(await _found(client, query)) == found or query == "needs=false&limit=1"
    assert await _found(client, "search=secret") == []


async def test_a_new_title_is_found_and_the_old_one_is_not(client: AppClient) -> None:
    session = await client.create(CreateSession(title="Old", labels=("a",)))
    await _update(client, session, UpdateSession(title="New", labels=("b",)))
    assert await _found(client, "search=old") == []
    assert await _found(client, "search=new%20b") == ["New"]


async def test_what_waits_for_a_person_is_listed_alone(tmp_path: Path) -> None:
    @tool(name="touch", effect="write")
    async def touch() -> str:
        """Touch."""
        return "touched"

    provider = ScriptedProvider(call("touch"), "well")
    async with open_test_app(provider, root=tmp_path, tools=[touch], mode="ask") as built:
        client = AppClient(built)
        await client.create(CreateSession(title="Idle"))
        session = await client.create(CreateSession(title="Asks"))
        await client.prompt(session, "go")
        view = await client.until(session, lambda view: bool(view.permissions))
        assert await _found(client, "needs=true") == ["Asks"]
        assert (await _row(client, session)).pending == 1
        await client.answer(session, view.permissions[0], "deny")
        await client.until(session, ran(1))
        assert await _found(client, "needs=true") == []


async def test_pages_of_a_search_go_on_from_their_cursor(client: AppClient) -> None:
    for number in range(5):
        await client.create(CreateSession(title=f"Bridge {number}"))
        await client.create(CreateSession(title=f"Other {number}"))
    found: list[str | None] = []
    query = "search=bridge&limit=2"
    while query:
        page = (await client.ask("GET", f"/api/sessions?{query}")).read(SessionList)
        found += [row.title for row in page.sessions]
        query = "" if page.next is None else f"search=bridge&limit=2&after={page.next}"
    assert sorted(found, key=str) == [f"Bridge {number}" for number in range(5)]


async def test_a_row_is_unread_until_its_last_message_is_marked(client: AppClient) -> None:
    session = await client.create(CreateSession(title="One"))
    row = await _row(client, session)
    assert (row.unread, row.read_seq) == (False, 0)  # nothing was said
    await client.prompt(session, "hello")
    said = (await client.until(session, ran(1))).messages[-1].seq
    assert (await _row(client, session)).unread

    async def mark(seq: int) -> int:
        path = f"/api/sessions/{session}/read"
        return (await client.ask("POST", path, MarkRead(seq=seq))).read(ReadMark).seq

    assert await mark(said - 1) == said - 1
    assert (await _row(client, session)).unread
    assert await mark(said) == said
    row = await _row(client, session)
    assert (row.unread, row.read_seq) == (False, said)
    assert await mark(1) == said  # never back
    last = row.last_seq
    assert await mark(last + 1000) == last  # what is to come is not read yet
    await _update(client, session, UpdateSession(title="Two"))
    assert not (await _row(client, session)).unread  # a new title is nothing to read
    assert [e.seq for e in await client.log(session)][-1] == last + 1  # a mark is no event
    await client.prompt(session, "again")
    await client.until(session, ran(2))
    page = (await client.ask("GET", "/api/sessions")).read(SessionList)
    assert [(r.unread, r.read_seq) for r in page.sessions] == [(True, last)]


@pytest.mark.rules("C2.3")
@pytest.mark.parametrize("seq", [-1, 2**63, 2**70])
async def test_a_mark_at_what_is_no_event_is_refused(client: AppClient, seq: int) -> None:
    session = await client.create()
    body = b'{"seq":%d}' % seq
    reply = await client.ask("POST", f"/api/sessions/{session}/read", body)
    assert reply.status == 400, reply.body


@pytest.mark.rules("C2.9")
async def test_another_user_changes_marks_and_ends_nothing(
    built: BuiltApp, client: AppClient
) -> None:
    session = await client.create(CreateSession(title="Mine"))
    other = await sign_in(built, "other")
    path = f"/api/sessions/{session}"
    for method, tail, body in (
        ("GET", "", None),
        ("PATCH", "", UpdateSession(title="Theirs")),
        ("POST", "/read", MarkRead(seq=1)),
        ("POST", "/close", UpdateSession()),
        ("DELETE", "", None),
    ):
        reply = await other.ask(method, path + tail, body)
        assert reply.status == 404, (method, tail, reply.body)
    row = await _row(client, session)
    assert (row.title, row.read_seq, row.closed) == ("Mine", 0, False)
    assert await _found(other, "") == []


async def test_a_session_s_own_limits_bound_the_turns_that_name_none(tmp_path: Path) -> None:
    @tool(name="again", effect="read")
    async def again() -> str:
        """Go on."""
        return "again"

    provider = ScriptedProvider(*[call("again")] * 9)
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(provider, root=tmp_path, tools=[again], store=store) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(limits=Limits(max_steps=2)))
        await client.prompt(session, "go")
        await client.until(session, ran(1))
    async with open_test_app(provider, root=tmp_path, tools=[again], store=store) as built:
        client = AppClient(built)
        named = SendPrompt(content=(Text(text="go"),), limits=Limits(max_steps=1))
        await client.ask("POST", f"/api/sessions/{session}/prompts", named)
        await client.until(session, ran(2))
        await client.prompt(session, "go")
        await client.until(session, ran(3))
        started = [e.event for e in await client.log(session) if isinstance(e.event, TurnStarted)]
    assert [event.limits.max_steps for event in started] == [2, 1, 2]
    await store.close()


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("  What\n\n is\u2028it? ", "What is it?"),
        ("👍" * 70, "👍" * 60),
        ("a\u0085b\tc\r\nd", "a b c d"),
    ],
)
async def test_a_title_is_one_line_of_the_first_prompt_at_once(
    client: AppClient, said: str, title: str
) -> None:
    reply = await client.ask("POST", "/api/sessions", CreateSession(prompt=(Text(text=said),)))
    assert reply.read(SessionInfo).title == title

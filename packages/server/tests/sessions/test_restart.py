"""A server that goes and comes back over the same store: what runs on, and what waits on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from towline_agent import Provider, TextPiece, Tool, mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    CloseSession,
    Envelope,
    MessageDiscarded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    Problem,
    PromptAccepted,
    SessionClosed,
    SessionId,
    ToolEnded,
    ToolResult,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    block_text,
    parse_time,
)
from towline_server import Connect, Connection
from towline_server.sessions.recovery import MAX_ATTEMPTS
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran


def _of(log: list[Envelope], *kinds: type) -> list[Envelope]:
    return [envelope for envelope in log if isinstance(envelope.event, kinds)]


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store that outlives the servers on it."""
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


class Server:
    """Starts one server after the other on one store."""

    def __init__(self, store: SqliteStore, root: Path) -> None:
        self.store = store
        self._root = root

    @asynccontextmanager
    async def up(
        self,
        *script: object,
        provider: Provider | None = None,
        tools: tuple[Tool, ...] = (),
        mode: str = "auto",
        clock: FakeClock | None = None,
        connect: Connect | None = None,
    ) -> AsyncGenerator[AppClient]:
        """One life of it; it ends without a drain, as if its machine had been turned off."""
        async with open_test_app(
            provider or ScriptedProvider(*script),  # pyright: ignore[reportArgumentType] - a script
            root=self._root,
            store=self.store,
            tools=tools,
            mode=mode,
            clock=clock,
            connect=connect,
            permission_window_s=120.0,
        ) as built:
            yield AppClient(built)


@pytest.fixture
def server(store: SqliteStore, tmp_path: Path) -> Server:
    return Server(store, tmp_path)


@pytest.mark.rules("C5.4", "C5.8", "S20")
async def test_an_open_request_is_offered_again_with_its_id_its_digest_and_its_time_left(
    server: Server,
) -> None:
    clock = FakeClock(held=True)
    async with server.up(call("change"), tools=(_change,), mode="ask", clock=clock) as client:
        session = await client.create()
        await client.prompt(session, "change it")
        view = await client.until(session, lambda view: bool(view.permissions))
        clock.advance(50)
        await client.prompt(session, "and then?")  # it is not blocked by the request
    request = view.permissions[0]
    clock.advance(3600)  # an hour in which no server runs
    async with server.up("done", "then that", tools=(_change,), mode="ask", clock=clock) as client:
        view = await client.until(
            session,
            lambda v: bool(v.permissions) and v.permissions[0].expires_at > request.expires_at,
        )
        again = view.permissions[0]
        assert (again.permission, again.digest) == (request.permission, request.digest)
        assert parse_time(again.expires_at) - clock.now_ms() == 70_000
        assert (await client.answer(session, again, "allow_once")).status == 200
        view = await client.until(session, ran(2))
        log = await client.log(session)
    assert [call.status for call in view.calls] == ["completed"]
    assert len(_of(log, PermissionRequested)) == 2
    assert len(_of(log, PermissionResolved)) == 1
    assert len(_of(log, TurnCompleted)) == 2


@pytest.mark.rules("C5.8", "C5.10", "S20")
async def test_an_answer_that_comes_before_the_request_is_offered_again_counts(
    server: Server,
) -> None:
    async with server.up(call("change"), tools=(_change,), mode="ask") as client:
        session = await client.create()
        await client.prompt(session, "change it")
        view = await client.until(session, lambda view: bool(view.permissions))
    go = asyncio.Event()
    provider = ScriptedProvider("done")

    async def connect(model: str) -> Connection:
        del model
        await go.wait()
        return Connection(provider)

    async with server.up(tools=(_change,), mode="ask", connect=connect) as client:
        wrong = await client.answer(session, view.permissions[0], "allow_once", digest="0" * 64)
        assert wrong.status == 409
        answered = await client.answer(session, view.permissions[0], "allow_once")
        assert answered.status == 200, answered.body
        go.set()
        view = await client.until(session, ran(1))
        log = await client.log(session)
    assert [call.status for call in view.calls] == ["completed"]
    assert len(_of(log, PermissionRequested)) == len(_of(log, PermissionResolved)) == 1


@pytest.mark.rules("C5.10", "S17")
async def test_after_a_restart_a_late_answer_is_still_refused_with_its_reason(
    server: Server,
) -> None:
    script = (call("change"), "done", call("change"))
    async with server.up(*script, tools=(_change,), mode="ask") as client:
        answered = await client.create()
        await client.prompt(answered, "change it")
        one = (await client.until(answered, lambda view: bool(view.permissions))).permissions[0]
        await client.answer(answered, one, "deny")
        await client.until(answered, ran(1))
        stopped = await client.create()
        await client.prompt(stopped, "change it")
        two = (await client.until(stopped, lambda view: bool(view.permissions))).permissions[0]
        await client.interrupt(stopped)
    async with server.up(tools=(_change,), mode="ask") as client:
        for session, request, option, status, reason in (
            (answered, one, "deny", 200, None),
            (answered, one, "allow_once", 409, "already_resolved"),
            (stopped, two, "allow_once", 410, "expired"),
        ):
            before = await client.log(session)
            reply = await client.answer(session, request, option)
            assert reply.status == status
            assert reason is None or reply.read(Problem).reason == reason
            view = await client.view(session)
            assert (view.permissions, view.turn) == ((), None)
            assert await client.log(session) == before  # nothing runs


@pytest.mark.rules("C5.5", "S12", "S14")
async def test_a_call_that_was_running_ends_unknown_and_is_not_run_again(server: Server) -> None:
    runs: list[str] = []
    began = asyncio.Event()

    @tool(name="change")
    async def change() -> str:
        """Change it."""
        runs.append("run")
        began.set()
        await asyncio.Event().wait()
        return "never"

    async with server.up(call("change"), tools=(change,)) as client:
        session = await client.create()
        await client.prompt(session, "change it")
        async with asyncio.timeout(10):
            await began.wait()
    second = ScriptedProvider("I see")
    async with server.up(provider=second, tools=(change,)) as client:
        await client.until(session, ran(1))
        log = await client.log(session)
    (ended,) = [e.event for e in log if isinstance(e.event, ToolEnded)]
    assert ended.status == "unknown"
    assert runs == ["run"]
    (result,) = second.requests[0].messages[-1].content
    assert isinstance(result, ToolResult)
    assert "may or may not" in block_text(result.content)


@pytest.mark.rules("C5.4")
async def test_a_message_that_was_cut_off_is_given_up_and_asked_for_again(server: Server) -> None:
    async with server.up([TextPiece(0, "half of"), asyncio.Event()]) as client:
        session = await client.create()
        await client.prompt(session, "speak")
        await client.until(session, lambda view: bool(view.open_messages))
    async with server.up("a whole answer") as client:
        view = await client.until(session, ran(1))
        log = await client.log(session)
    assert len(_of(log, MessageDiscarded)) == len(_of(log, TurnResumed)) == 1
    assert [block_text(m.content) for m in view.messages] == ["speak", "a whole answer"]


@pytest.mark.rules("C1.20", "C1.21", "C5.4")
async def test_a_turn_is_taken_up_three_times_and_then_fails(server: Server) -> None:
    held = [TextPiece(0, "half of"), asyncio.Event()]
    async with server.up(held) as client:
        session = await client.create()
        await client.prompt(session, "speak")
        await client.until(session, lambda view: bool(view.open_messages))
        await client.prompt(session, "and speak again")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        async with server.up(held) as client:
            await client.until(
                session,
                lambda view, at=attempt: (
                    view.turn is not None and view.turn.attempt == at and bool(view.open_messages)
                ),
            )
    async with server.up("the next one is well") as client:
        view = await client.until(session, ran(2))
        log = await client.log(session)
    (failed,) = [e.event for e in log if isinstance(e.event, TurnFailed)]
    assert failed.fault.reason == "resumed_too_often"
    assert len(_of(log, TurnResumed)) == MAX_ATTEMPTS
    assert block_text(view.messages[-1].content) == "the next one is well"


@pytest.mark.rules("C2.5", "S25")
async def test_a_prompt_that_waits_runs_after_a_restart_and_its_key_is_still_known(
    server: Server,
) -> None:
    async with server.up([TextPiece(0, "a"), asyncio.Event()]) as client:
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        sent = (await client.prompt(session, "second", key="k")).read(PromptAccepted)
    async with server.up("one", "two") as client:
        again = (await client.prompt(session, "second", key="k")).read(PromptAccepted)
        assert again == sent
        assert (await client.prompt(session, "something else", key="k")).status == 409
        view = await client.until(session, ran(2))
    assert [block_text(m.content) for m in view.messages] == ["first", "one", "second", "two"]


@pytest.mark.rules("C2.11")
async def test_a_queue_that_a_person_stopped_is_still_held_after_a_restart(server: Server) -> None:
    async with server.up([TextPiece(0, "a"), asyncio.Event()]) as client:
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        await client.prompt(session, "second")
        await client.interrupt(session)
        await client.until(session, lambda view: view.last_turn is not None)
    provider = ScriptedProvider("two", "three")
    async with server.up(provider=provider) as client:
        view = await client.view(session)
        assert (len(view.queue), view.turn, provider.requests) == (1, None, [])
        await client.prompt(session, "third")
        await client.until(session, ran(3))


@pytest.mark.rules("C2.11", "C5.14")
async def test_a_queue_that_the_server_s_own_end_stopped_runs_on(
    server: Server, tmp_path: Path
) -> None:
    provider = ScriptedProvider([TextPiece(0, "a"), asyncio.Event()])
    async with open_test_app(provider, root=tmp_path, store=server.store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, lambda view: bool(view.open_messages))
        await client.prompt(session, "second")
        async with asyncio.timeout(10):
            await built.sessions.drain(0.01)
    async with server.up("two") as client:
        view = await client.until(session, ran(2))
    assert block_text(view.messages[-1].content) == "two"


@pytest.mark.rules("C5.4", "S12")
async def test_a_summary_that_a_restart_cut_is_told_to_have_come_to_nothing_once(
    server: Server,
) -> None:
    async with server.up("one", [asyncio.Event()]) as client:
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, ran(1))
        path = f"/api/sessions/{session}/compact"
        assert (await client.ask("POST", path)).status == 202
    for _ in range(2):
        async with server.up() as client, asyncio.timeout(20):
            notices: list[str] = []
            while len(notices) < 2:  # it is told once the session is in memory
                log = await client.log(session)
                notices = [e.event.code for e in log if isinstance(e.event, Notice)]
        assert notices == ["compacting", "not_compacted"]


@pytest.mark.rules("C5.4")
async def test_a_summary_that_a_close_cut_is_told_to_have_come_to_nothing(server: Server) -> None:
    async with server.up("one", [asyncio.Event()]) as client:
        session = await client.create()
        await client.prompt(session, "first")
        await client.until(session, ran(1))
        assert (await client.ask("POST", f"/api/sessions/{session}/compact")).status == 202
        closed = await client.ask("POST", f"/api/sessions/{session}/close", CloseSession())
        assert closed.status == 200
        log = await client.log(session)
    assert [e.event.code for e in log if isinstance(e.event, Notice)] == [
        "compacting",
        "not_compacted",
    ]
    assert isinstance(log[-1].event, SessionClosed)


@pytest.mark.rules("C5.14")
async def test_an_end_without_a_drain_writes_nothing_of_its_own_into_the_log(
    server: Server,
) -> None:
    async with server.up(call("change"), tools=(_change,), mode="ask") as client:
        session = await client.create()
        await client.prompt(session, "change it")
        await client.until(session, lambda view: bool(view.permissions))
        before = await client.log(session)
    row = await server.store.session(session)
    assert row is not None
    assert row.last_seq == len(before)


async def test_a_log_that_cannot_be_read_is_told_and_keeps_no_other_one_down(
    server: Server,
) -> None:
    async with server.up([TextPiece(0, "a"), asyncio.Event()]) as client:
        good = await client.create()
        await client.prompt(good, "first")
        await client.until(good, lambda view: bool(view.open_messages))
    for number, (data, private) in enumerate([(b"no event", None), (b"", b"no list")]):
        await _store_row(server.store, f"ses_{number}", data, private)
    async with server.up("well") as client:
        await client.until(good, ran(1))
        for number in range(2):
            answer = await client.ask("GET", f"/api/sessions/ses_{number}/view")
            assert answer.status == 500
            assert b"towline doctor --repair" in answer.body


async def _store_row(store: SqliteStore, session: str, data: bytes, private: bytes | None) -> None:
    """A log of one event with a turn that looks open, so that a start takes it up."""
    whole = data or b'{"seq":1,"session":"s","time":"2026-01-01T00:00:00.000Z","event":{}}'
    row = SessionRow(
        id=SessionId(session),
        user="owner",
        agent="a",
        model="a/b",
        mode="ask",
        created_ms=0,
        updated_ms=0,
        queued=1,
    )
    event = StoredRow(1, None, 0, whole, private)
    await append_and_wait(
        store, Append(session=SessionId(session), first_seq=1, rows=(event,), summary=row)
    )


@tool(name="change")
async def _change() -> str:
    """Change it."""
    return "changed"

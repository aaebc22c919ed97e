"""Background jobs of a session: they outlive turns, and nothing outlives the session."""

import subprocess
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from towline_agent import Tool, ToolContext, ToolOutput, builtin_tools, mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_agent.workspaces.processes import list_processes, start_time
from towline_protocol import (
    CallId,
    CloseSession,
    CommandArtifact,
    Envelope,
    ForkSession,
    Notice,
    Process,
    SessionId,
    SessionInfo,
    Text,
    ToolEnded,
    ToolStarted,
    block_text,
)
from towline_server.sessions.recovery import JOBS_KEPT, Loaded, take
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

LIMIT_S = 60

TOOLS = tuple(made for made in builtin_tools() if made.name in ("shell", "job"))


def _alive(pid: int) -> bool:
    return any(row.pid == pid and not row.zombie for row in list_processes())


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    """A store that outlives the servers on it."""
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


async def _begin(client: AppClient) -> tuple[SessionId, Process]:
    session = await client.create()
    await client.prompt(session, "serve it")
    await client.until(session, ran(1))
    (process,) = [
        envelope.event.process
        for envelope in await client.log(session)
        if isinstance(envelope.event, ToolStarted)
    ]
    assert process is not None
    assert _alive(process.pid)
    return session, process


def _start_job() -> object:
    return call("shell", command="exec sleep 1000", background=True)


@pytest.mark.rules("A5.20", "A4.12", "C6")
async def test_a_job_outlives_its_turn_and_the_next_one_is_reminded_of_it(
    store: SqliteStore, tmp_path: Path
) -> None:
    provider = ScriptedProvider(_start_job(), "It runs.", "Still.", "a", "b")  # pyright: ignore[reportArgumentType] - a script
    async with open_test_app(
        provider, root=tmp_path, store=store, tools=TOOLS, live_sessions=2
    ) as built:
        client = AppClient(built)
        session, process = await _begin(client)
        found = next(live for live in built.sessions.live if live.log.session == session)
        assert found.active
        assert not found.live
        await client.prompt(session, "does it?")
        await client.until(session, ran(2))
        reminded = provider.requests[2].trailing
        assert f"Background jobs:\njob_{process.pid} runs since" in reminded
        await client.create()
        await client.create()
        assert found in built.sessions.live, "others make no room at its cost"
        assert _alive(process.pid)
    assert not _alive(process.pid), "the server's end is its end"


@pytest.mark.rules("A5.20", "A5.19", "C2.10")
async def test_closing_a_session_ends_its_jobs(store: SqliteStore, tmp_path: Path) -> None:
    provider = ScriptedProvider(_start_job(), "It runs.")  # pyright: ignore[reportArgumentType] - a script
    async with open_test_app(provider, root=tmp_path, store=store, tools=TOOLS) as built:
        client = AppClient(built)
        session, process = await _begin(client)
        await client.ask("POST", f"/api/sessions/{session}/close", CloseSession(reason="done"))
        assert not _alive(process.pid)


@pytest.mark.rules("A5.20")
async def test_a_job_that_ended_lets_its_session_rest(store: SqliteStore, tmp_path: Path) -> None:
    start = call("shell", command="exit 3", background=True)
    provider = ScriptedProvider(start, "It ended.")
    async with open_test_app(provider, root=tmp_path, store=store, tools=TOOLS) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "try it")
        await client.until(session, ran(1))
        found = next(live for live in built.sessions.live if live.log.session == session)
        assert not found.state.busy
        (ended,) = [
            envelope.event
            for envelope in await client.log(session)
            if isinstance(envelope.event, ToolEnded)
        ]
        assert "has ended after 0 s: exit code 3" in block_text(ended.content)


@pytest.fixture
def orphan() -> Iterator[subprocess.Popen[bytes]]:
    """A program that no server holds, as a crash leaves a job."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as program:
        yield program
        if program.poll() is None:
            program.kill()


def _leave_behind(program: "subprocess.Popen[bytes]") -> Tool:
    """A tool whose log says that it started the program as a job."""

    @tool(effect="exec", journals=True)
    async def serve(context: ToolContext) -> ToolOutput:
        pid = program.pid
        await context.start(Process(pid=pid, group=pid, started=start_time(pid) or ""))
        artifact = CommandArtifact(command="sleep 1000", job=f"job_{pid}")
        return ToolOutput(content=(Text(text="It runs."),), artifacts=(artifact,))

    return serve


@pytest.mark.rules("A5.25", "C5.6", "A5.20")
async def test_a_job_that_a_crash_left_running_is_ended_with_the_sessions_next_load(
    store: SqliteStore, tmp_path: Path, orphan: "subprocess.Popen[bytes]"
) -> None:
    serve = _leave_behind(orphan)
    provider = ScriptedProvider(call("serve"), "It runs.")
    async with open_test_app(provider, root=tmp_path, store=store, tools=(serve,)) as built:
        session, _ = await _begin(AppClient(built))
    assert orphan.poll() is None
    async with open_test_app(ScriptedProvider("x"), root=tmp_path, store=store) as built:
        await AppClient(built).view(session)
    assert not _alive(orphan.pid)


@pytest.mark.rules("A5.25")
async def test_a_fork_does_not_end_the_jobs_of_its_source(
    store: SqliteStore, tmp_path: Path, orphan: "subprocess.Popen[bytes]"
) -> None:
    serve = _leave_behind(orphan)
    provider = ScriptedProvider(call("serve"), "It runs.")
    async with open_test_app(provider, root=tmp_path, store=store, tools=(serve,)) as built:
        client = AppClient(built)
        session, _ = await _begin(client)
        made = await client.ask("POST", f"/api/sessions/{session}/fork", ForkSession())
        fork = made.read(SessionInfo).id
    async with open_test_app(ScriptedProvider("x"), root=tmp_path, store=store) as built:
        await AppClient(built).view(fork)
        assert orphan.poll() is None
        await AppClient(built).view(session)
    assert not _alive(orphan.pid)


def test_only_the_last_jobs_are_looked_for() -> None:
    loaded = Loaded()
    for number in range(JOBS_KEPT + 10):
        id_ = CallId(f"call_{number}")
        process = Process(pid=number + 2, group=number + 2, started="x")
        events = (
            ToolStarted(call=id_, process=process),
            ToolEnded(
                call=id_,
                status="completed",
                content=(),
                artifacts=(CommandArtifact(command="x", job="job_1"),),
            ),
        )
        for event in events:
            take(loaded, _envelope(loaded, event), ())
    assert len(loaded.jobs) == JOBS_KEPT
    assert CallId("call_0") not in loaded.jobs
    assert not loaded.processes
    take(loaded, _envelope(loaded, Notice(code="forked", message="x")), ())
    assert not loaded.jobs


def _envelope(loaded: Loaded, event: ToolStarted | ToolEnded | Notice) -> Envelope:
    return Envelope(
        session=SessionId("ses_1"),
        seq=loaded.view.seq + 1,
        time="2026-01-01T00:00:00Z",
        event=event,
    )

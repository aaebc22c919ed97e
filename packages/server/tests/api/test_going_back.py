"""What turns did to files, and the way back to before them, over the API."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from towline_agent import (
    Checkpoints,
    MakeDir,
    Put,
    Remove,
    StepAnswer,
    ToolContext,
    mint_now,
    tool,
)
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    CheckpointList,
    FilesReverted,
    ForkSession,
    Problem,
    Reverted,
    RevertTurn,
    SessionId,
    SessionInfo,
    TurnDiff,
    TurnId,
    TurnReverted,
    block_text,
)
from towline_server.main import BuiltApp
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran


@tool(effect="write")
async def put(context: ToolContext, path: str, text: str) -> str:
    """Write a file."""
    await context.workspace.apply((Put(path=path, data=text.encode()),))
    return "written"


@tool(effect="write")
async def tidy(context: ToolContext) -> str:
    """Remove and make some."""
    await context.workspace.apply((Remove(path="old.txt"), MakeDir(path="made/in")))
    return "tidied"


def _put(path: str, text: str) -> StepAnswer:
    return call("put", path=path, text=text)


@asynccontextmanager
async def _serve(
    root: Path, provider: ScriptedProvider, store: SqliteStore | None = None
) -> AsyncGenerator[BuiltApp]:
    async with (
        asyncio.timeout(30),
        open_test_app(provider, root=root, tools=[put, tidy], store=store) as built,
    ):
        yield built


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "old.txt").write_text("old\n")
    return root


async def _say(client: AppClient, session: str, text: str, number: int) -> TurnId:
    await client.prompt(SessionId(session), text)
    view = await client.until(SessionId(session), ran(number))
    assert view.last_turn is not None
    return view.last_turn.id


async def _revert(
    client: AppClient, session: str, turn: str, *, key: str | None = None, **flags: bool
) -> Reply:
    headers = {} if key is None else {"idempotency-key": key}
    body = RevertTurn(**flags)
    return await client.ask(
        "POST", f"/api/sessions/{session}/turns/{turn}/revert", body, headers=headers
    )


async def _checkpoints(client: AppClient, session: str, query: str = "") -> CheckpointList:
    reply = await client.ask("GET", f"/api/sessions/{session}/checkpoints{query}")
    assert reply.status == 200, reply.body
    return reply.read(CheckpointList)


async def _diff(client: AppClient, session: str, turn: str, query: str = "") -> TurnDiff:
    reply = await client.ask("GET", f"/api/sessions/{session}/turns/{turn}/diff{query}")
    assert reply.status == 200, reply.body
    return reply.read(TurnDiff)


def _files(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text() if path.is_file() else "/"
        for path in sorted(root.rglob("*"))
    }


def _stand_in(place: Path) -> None:
    place.write_text("a file in its place")


def _lead(place: Path, target: Path) -> None:
    place.symlink_to(target)


def _move(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    source.rename(target)


def _script() -> ScriptedProvider:
    return ScriptedProvider(
        [_put("a.txt", "two\n")], "first", [_put("a.txt", "three\n")], [call("tidy")], "second",
        "third", "fourth",
    )  # fmt: skip


@pytest.mark.rules("A4.12", "A5.73", "A5.76")
async def test_files_go_back_to_before_a_turn_and_the_model_is_told(root: Path) -> None:
    before = _files(root)
    provider = _script()
    async with _serve(root, provider) as built:
        client = AppClient(built)
        session = await client.create()
        first = await _say(client, session, "one", 1)
        after_first = _files(root)
        second = await _say(client, session, "two", 2)
        found = await _checkpoints(client, session)
        assert [(row.turn, row.files) for row in found.checkpoints] == [(second, 4), (first, 1)]
        page = await _checkpoints(client, session, "?limit=1")
        assert page.next == second
        rest = await _checkpoints(client, session, f"?limit=1&after={page.next}")
        assert ([row.turn for row in rest.checkpoints], rest.next) == ([first], None)
        diff = await _diff(client, session, second)
        assert [(change.path, change.kind) for change in diff.changes] == [
            ("a.txt", "changed"), ("made/", "created"), ("made/in/", "created"),
            ("old.txt", "deleted"),
        ]  # fmt: skip
        assert (diff.changes[0].diff or "").endswith("-two\n+three\n")
        assert (await _diff(client, session, second, "?limit=3")).next == "3"
        assert len((await _diff(client, session, second, "?limit=3&after=3")).changes) == 1
        reverted = (await _revert(client, session, second, key="k")).read(TurnReverted)
        assert reverted.reverted == ("a.txt", "made", "made/in", "old.txt")
        assert _files(root) == after_first
        again = (await _revert(client, session, second, key="k")).read(TurnReverted)
        assert again == reverted
        view = await client.view(session)
        assert view.messages[-1].mark is not None
        assert view.messages[-1].mark.kind == "files_reverted"
        assert not any(entry.undone for entry in view.messages)
        await _say(client, session, "three", 3)
        said = [block_text(message.content) for message in provider.requests[-1].messages]
        assert any("- old.txt" in text and "undone what turns" in text for text in said)
        assert f"to before turn {second}: a.txt, made" in provider.requests[-1].trailing
        await _say(client, session, "four", 4)
        assert "put back" not in provider.requests[-1].trailing
        reverted = (await _revert(client, session, first)).read(TurnReverted)
        assert (_files(root), reverted.reverted) == (before, ("a.txt",))


@pytest.mark.rules("A5.73", "A5.76")
async def test_the_conversation_goes_back_too_when_that_is_asked(root: Path) -> None:
    before = _files(root)
    provider = _script()
    async with _serve(root, provider) as built:
        client = AppClient(built)
        session = await client.create()
        first = await _say(client, session, "one", 1)
        await _say(client, session, "two", 2)
        reverted = (await _revert(client, session, first, conversation=True)).read(TurnReverted)
        assert reverted.conversation
        assert _files(root) == before
        events = [envelope.event for envelope in await client.log(session)]
        assert isinstance(events[-2], Reverted)
        assert isinstance(events[-1], FilesReverted)
        await _say(client, session, "three", 3)
        said = [block_text(message.content) for message in provider.requests[-1].messages]
        assert [text.split("\n")[0][:10] for text in said] == ["[Not said ", "three"]
        problem = (await _revert(client, session, first, conversation=True)).read(Problem)
        assert (problem.code, problem.reason) == ("rejected", "turn_gone")


@pytest.mark.rules("A5.75")
async def test_a_person_s_later_edit_is_a_conflict_that_keeps_all_or_itself(root: Path) -> None:
    async with _serve(root, _script()) as built:
        client = AppClient(built)
        session = await client.create()
        await _say(client, session, "one", 1)
        second = await _say(client, session, "two", 2)
        (root / "a.txt").write_text("a person's\n")
        now, log = _files(root), len(await client.log(session))
        reverted = (await _revert(client, session, second, conversation=True)).read(TurnReverted)
        assert ([c.path for c in reverted.conflicts], reverted.reverted) == (["a.txt"], ())
        assert not reverted.conversation
        assert (_files(root), len(await client.log(session))) == (now, log)
        reply = await _revert(client, session, second, skip_conflicts=True, conversation=True)
        reverted = reply.read(TurnReverted)
        assert reverted.reverted == ("made", "made/in", "old.txt")
        assert reverted.conversation
        assert _files(root) == {"a.txt": "a person's\n", "old.txt": "old\n"}
        mark = (await client.view(session)).messages[-1].mark
        assert mark is not None
        assert mark.not_reverted == ("a.txt: it was changed since",)


async def test_nothing_is_put_back_while_a_turn_runs_or_of_a_turn_that_is_not_there(
    root: Path,
) -> None:
    hangs = asyncio.Event()

    @tool(effect="read")
    async def wait() -> str:
        """Wait."""
        hangs.set()
        await asyncio.Event().wait()
        return ""

    provider = ScriptedProvider([_put("a.txt", "two\n")], "first", [call("wait")], "after")
    async with (
        asyncio.timeout(30),
        open_test_app(provider, root=root, tools=[put, wait]) as built,
    ):
        client = AppClient(built)
        session = await client.create()
        first = await _say(client, session, "one", 1)
        for path in ("diff", "diff?after=x"):
            reply = await client.ask("GET", f"/api/sessions/{session}/turns/trn_0/{path}")
            assert reply.read(Problem).code == "not_found"
        reply = await client.ask("GET", f"/api/sessions/{session}/turns/{first}/diff?after=x")
        assert reply.read(Problem).code == "precondition_failed"
        reply = await client.ask("GET", f"/api/sessions/{session}/checkpoints?after=trn_0")
        assert reply.read(Problem).code == "precondition_failed"
        assert (await _revert(client, session, "trn_0")).read(Problem).code == "not_found"
        await client.prompt(session, "hang")
        await hangs.wait()
        problem = (await _revert(client, session, first)).read(Problem)
        assert (problem.code, problem.reason) == ("conflict", "turn_active")
        await client.interrupt(session)
        assert (await _revert(client, session, first)).status == 200
        assert (root / "a.txt").read_text() == "one\n"


@pytest.mark.rules("A5.71")
async def test_after_a_restart_files_go_back_as_before(root: Path) -> None:
    before = _files(root)
    store = await open_memory_store(mint=lambda prefix: f"{prefix}_1")
    provider = _script()
    async with _serve(root, provider, store) as built:
        session = await AppClient(built).create()
        first = await _say(AppClient(built), session, "one", 1)
    async with _serve(root, provider, store) as built:
        await _say(AppClient(built), session, "two", 2)
    async with _serve(root, provider, store) as built:
        assert (await _revert(AppClient(built), session, first)).status == 200
        assert _files(root) == before
    await store.close()


@pytest.mark.rules("A5.73", "A5.76")
async def test_a_revert_that_a_crash_cut_is_ended_and_told_by_the_next_start(root: Path) -> None:
    before = _files(root)
    store = await open_memory_store(mint=lambda prefix: f"{prefix}_1")
    async with _serve(root, _script(), store) as built:
        session = await AppClient(built).create()
        first = await _say(AppClient(built), session, "one", 1)
        await _say(AppClient(built), session, "two", 2)
    turns = _cut_revert(root, session)
    assert _files(root) != before
    async with _serve(root, ScriptedProvider("well"), store) as built:
        client = AppClient(built)
        assert _files(root) == before
        events = [envelope.event for envelope in await client.log(session)]
        told = [event for event in events if isinstance(event, Reverted | FilesReverted)]
        assert [type(event) for event in told] == [Reverted, FilesReverted]
        await _say(client, session, "three", 3)
        assert (await _checkpoints(client, session)).checkpoints == ()
        assert first == turns[0]
    await store.close()


def _cut_revert(root: Path, session: SessionId) -> list[str]:
    """Undo all turns of a session, as a server that ends in the midst of it; gives the turns."""

    class Crash(BaseException):
        pass

    left = [2]

    def crash(path: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Crash(path)

    data = root.with_name("project-data") / "checkpoints"
    crashing = Checkpoints(data, now_ms=lambda: 0, on_write=crash)
    turns = [kept.turn for kept in crashing.turns(session)]
    with pytest.raises(Crash):
        crashing.revert(session, turns, rewinds=True)
    crashing.close()
    return turns


@pytest.mark.rules("A5.73")
async def test_a_cut_revert_writes_in_no_folder_that_was_left_or_leads_elsewhere_by_now(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = _files(root)
    store = await open_memory_store(mint=lambda prefix: f"{prefix}_1")
    async with _serve(root, _script(), store) as built:
        session = await AppClient(built).create()
        await _say(AppClient(built), session, "one", 1)
        await _say(AppClient(built), session, "two", 2)
    _cut_revert(root, session)
    cut = _files(root)
    data, away, other = root.with_name("project-data"), tmp_path / "away", tmp_path / "other"
    other.mkdir()

    _move(data, tmp_path / "other-data")
    async with _serve(other, ScriptedProvider(), store):  # its folder is no root any more
        assert _files(root) == cut
    assert "lies outside the folders" in caplog.text
    _move(tmp_path / "other-data", data)

    _move(root, away)
    _lead(root, other)
    async with _serve(root, ScriptedProvider(), store):  # a root still, but another folder
        assert _files(other) == {}
    assert "a link leads to another one" in caplog.text

    _move(away, root)
    async with _serve(root, ScriptedProvider("well"), store) as built:
        assert _files(root) == before
        events = [envelope.event for envelope in await AppClient(built).log(session)]
        assert isinstance(events[-1], FilesReverted)
    await store.close()


async def test_a_fork_can_go_back_and_a_deleted_session_leaves_nothing(root: Path) -> None:
    before = _files(root)
    async with _serve(root, _script()) as built:
        client = AppClient(built)
        session = await client.create()
        first = await _say(client, session, "one", 1)
        made = await client.ask("POST", f"/api/sessions/{session}/fork", ForkSession(turn=first))
        fork = made.read(SessionInfo).id
        assert [row.turn for row in (await _checkpoints(client, fork)).checkpoints] == [first]
        assert (await client.ask("DELETE", f"/api/sessions/{session}")).status == 200
        assert (await _revert(client, fork, first)).read(TurnReverted).reverted == ("a.txt",)
        assert _files(root) == before
        assert (await client.ask("DELETE", f"/api/sessions/{fork}")).status == 200
    kept = Checkpoints(root.with_name("project-data") / "checkpoints", now_ms=lambda: 0)
    assert (kept.turns(session), kept.turns(fork)) == ([], [])
    kept.close()


@pytest.mark.rules("A5.73")
async def test_files_go_back_only_in_a_folder_that_may_be_worked_in_now(
    root: Path, tmp_path: Path
) -> None:
    store = await open_memory_store(mint=mint_now)
    (tmp_path / "other").mkdir()
    async with _serve(root, _script(), store) as built:
        client = AppClient(built)
        session = await client.create()
        turn = await _say(client, session, "one", 1)
        _move(root, tmp_path / "away")
        gone = await _revert(client, session, turn, skip_conflicts=True)
        assert gone.read(Problem).reason == "folder_gone"
        _stand_in(root)
        gone = await _revert(client, session, turn, skip_conflicts=True)
        assert gone.read(Problem).reason == "folder_gone"
        _move(tmp_path / "away", root)
    _move(root.with_name("project-data"), tmp_path / "other-data")
    async with _serve(tmp_path / "other", _script(), store) as built:
        before = _files(root)
        outside = await _revert(AppClient(built), session, turn)
        assert outside.read(Problem).reason == "outside_roots"
        assert _files(root) == before
    await store.close()

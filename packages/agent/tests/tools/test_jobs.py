"""Programs in the background."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin import jobs as module
from towline_agent.tools.builtin.jobs import JOBS_MAX, Jobs, job
from towline_agent.tools.builtin.program import run_program, shell
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import Tool, ToolOutput
from towline_agent.workspaces import processes
from towline_agent.workspaces.base import ProgramResult
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_agent.workspaces.processes import list_processes
from towline_protocol import CommandArtifact, Text

LIMIT_S = 60


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[MemoryContext]:
    """A conversation whose jobs run without a sandbox, so that their own ids are the machine's."""
    made = MemoryContext(LocalWorkspace(tmp_path, sandbox="off"))
    yield made
    await made.state.aclose()
    assert [row for row in list_processes() if row.parent == os.getpid()] == []


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE_S", 0.1)
    monkeypatch.setattr(module, "_EARLY_S", 0.05)


async def _call(context: MemoryContext, tool: Tool, **arguments: object) -> tuple[str, ToolOutput]:
    async with asyncio.timeout(LIMIT_S):
        output = await tool.run(context, tool.check(json.dumps(arguments)))
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text, output


async def _start(context: MemoryContext, command: str, until: str = "") -> str:
    """Begin a job, and wait for a word of its output."""
    text, output = await _call(context, shell, command=command, background=True)
    (artifact,) = output.artifacts
    assert isinstance(artifact, CommandArtifact)
    assert artifact.job is not None
    assert text.startswith(f"{artifact.job} runs since ")
    if until not in text.partition("\n")[2]:
        await _read_until(context, artifact.job, until)
    return artifact.job


async def _read_until(context: MemoryContext, id_: str, word: str) -> str:
    text = ""
    async with asyncio.timeout(LIMIT_S):
        while word not in text:
            await asyncio.get_running_loop().run_in_executor(None, os.sched_yield)
            text += (await _call(context, job, action="read", id=id_))[0]
    return text


def _alive(pid: int) -> bool:
    return any(row.pid == pid and not row.zombie for row in list_processes())


@pytest.mark.rules("A5.20", "A5.24")
async def test_a_job_has_an_id_and_its_start_is_durable(context: MemoryContext) -> None:
    id_ = await _start(context, "echo ready; exec sleep 1000")
    (process,) = context.processes
    assert id_ == f"job_{process.pid}"
    assert _alive(process.pid)
    assert context.state.get(Jobs).busy


@pytest.mark.rules("A5.20")
async def test_its_output_is_read_once_and_as_it_comes(context: MemoryContext) -> None:
    id_ = await _start(
        context, "mkfifo go; echo one; read line < go; echo two; exec sleep 1000", "one"
    )
    assert isinstance(context.workspace, LocalWorkspace)
    (Path(context.workspace.root) / "go").write_text("\n")
    text = await _read_until(context, id_, "two")
    assert "one" not in text
    assert (await _call(context, job, action="read", id=id_))[0].endswith("(no new output)")


@pytest.mark.rules("A5.20")
async def test_it_can_be_waited_for(context: MemoryContext) -> None:
    id_ = await _start(context, "mkfifo go; echo begun; read line < go; echo done; exit 3", "begun")
    waiting = asyncio.create_task(_call(context, job, action="read", id=id_, wait_s=60))
    assert isinstance(context.workspace, LocalWorkspace)
    (Path(context.workspace.root) / "go").write_text("\n")
    text, output = await waiting
    assert "has ended after 0 s: exit code 3" in text
    assert text.endswith("\ndone\n")
    (artifact,) = output.artifacts
    assert isinstance(artifact, CommandArtifact)
    assert (artifact.job, artifact.exit_code) == (None, 3)
    assert not context.state.get(Jobs).busy


@pytest.mark.rules("A5.20", "A5.19")
async def test_a_stop_ends_it_and_all_its_children(context: MemoryContext) -> None:
    id_ = await _start(context, "sleep 1000 & echo $! > pid; echo begun; wait", "begun")
    assert isinstance(context.workspace, LocalWorkspace)
    pids = [context.processes[0].pid, int((Path(context.workspace.root) / "pid").read_text())]
    assert all(map(_alive, pids))
    text, _ = await _call(context, job, action="stop", id=id_)
    assert f"{id_} was stopped after" in text
    assert not [pid for pid in pids if _alive(pid)]
    assert (await _call(context, job, action="list"))[0].startswith(f"{id_} was stopped")


async def test_what_ends_at_once_is_told_at_once(
    context: MemoryContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_EARLY_S", 30.0)
    text, _ = await _call(context, shell, command="echo no port >&2; exit 7", background=True)
    assert "has ended after 0 s: exit code 7" in text
    assert text.endswith("no port\n")
    assert context.state.get(Jobs).remind() == ()
    with pytest.raises(ToolError, match="no program 'nope'"):
        await _call(context, run_program, command="nope", background=True)


@pytest.mark.rules("A5.20", "A4.12")
async def test_a_model_is_reminded_of_jobs_that_run_and_that_ended_unread(
    context: MemoryContext,
) -> None:
    jobs = context.state.get(Jobs)
    assert jobs.remind() == ()
    id_ = await _start(context, "mkfifo go; echo begun; read line < go; exit 2", "begun")
    (told,) = jobs.remind()
    assert told.startswith(f"Background jobs:\n{id_} runs since 0 s: mkfifo go;")
    assert isinstance(context.workspace, LocalWorkspace)
    (Path(context.workspace.root) / "go").write_text("\n")
    await asyncio.wait({jobs.get(id_).task}, timeout=LIMIT_S)
    assert "has ended after 0 s: exit code 2" in jobs.remind()[0]
    await _call(context, job, action="read", id=id_)
    assert jobs.remind() == ()


async def test_only_so_many_run_at_once(tmp_path: Path) -> None:
    begun: list[int] = []

    async def wait(_: tuple[str, ...]) -> ProgramResult:
        begun.append(1)
        await asyncio.Event().wait()
        raise AssertionError

    context = MemoryContext(MemoryWorkspace(programs={"serve": wait}))
    for _ in range(JOBS_MAX):
        await _call(context, run_program, command="serve", background=True)
    with pytest.raises(ToolError, match="stop one first"):
        await _call(context, run_program, command="serve", background=True)
    assert len(begun) == JOBS_MAX
    await context.state.aclose()
    assert context.state.get(Jobs).all() == ()


async def test_old_jobs_that_ended_are_forgotten() -> None:
    done = ProgramResult(exit_code=0, output="")
    context = MemoryContext(MemoryWorkspace(programs={"true": done}))
    for _ in range(40):
        await _call(context, run_program, command="true", background=True)
    assert len(context.state.get(Jobs).all()) == 17
    with pytest.raises(ToolInputInvalid, match="no job 'job_1'"):
        await _call(context, job, action="read", id="job_1")


@pytest.mark.rules("A4.23", "A5.19")
async def test_a_cancel_of_the_call_before_its_start_is_durable_ends_it(
    context: MemoryContext,
) -> None:
    waiting = asyncio.Event()

    async def start(process: object, child: object = None) -> None:
        waiting.set()
        await asyncio.Event().wait()

    context.start = start  # pyright: ignore[reportAttributeAccessIssue]
    call = asyncio.create_task(
        _call(context, shell, command="touch effect; sleep 1000", background=True)
    )
    await waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not context.state.get(Jobs).busy
    assert isinstance(context.workspace, LocalWorkspace)
    assert not (Path(context.workspace.root) / "effect").exists()


@pytest.mark.rules("A5.20", "A5.19")
async def test_with_the_conversation_all_its_jobs_end(context: MemoryContext) -> None:
    for _ in range(3):
        await _start(context, "trap '' TERM; sleep 1000")
    pids = [process.pid for process in context.processes]
    assert all(map(_alive, pids))
    await context.state.aclose()
    assert not any(map(_alive, pids))


@pytest.mark.rules("A5.20")
async def test_a_job_has_an_end(context: MemoryContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towline_agent.tools.builtin.program.JOB_MAX_S", 0.2)
    id_ = await _start(context, "exec sleep 1000")
    text, _ = await _call(context, job, action="read", id=id_, wait_s=60)
    assert "its time limit" in text


@pytest.mark.sandbox
@pytest.mark.rules("A5.20", "A5.21")
async def test_a_server_without_the_network_is_told_that_nobody_reaches_it(tmp_path: Path) -> None:
    context = MemoryContext(LocalWorkspace(tmp_path))
    closed, _ = await _call(context, shell, command="exec sleep 1000", background=True)
    opened, _ = await _call(
        context, shell, command="exec sleep 1000", background=True, network=True
    )
    await context.state.aclose()
    assert "Nothing outside its sandbox reaches its ports" in closed
    assert "reaches its ports" not in opened

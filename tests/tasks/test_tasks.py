"""Whole tasks on small projects: a scripted model, the real tools, and the project's own tests."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tasks.index import open_index
from tasks.script import TaskScript
from tasks.task import TASKS, Call, Step, Task, Verdict, judge

from towline_agent import Agent, AgentResult, builtin_tools
from towline_protocol import Text, ToolResult

pytestmark = pytest.mark.slow


each_task = pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, id=task.name, marks=[pytest.mark.node] if "node" in task.needs else [])
        for task in TASKS
    ],
)


@pytest.fixture(autouse=True)
def package_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with open_index() as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        yield


def _results(result: AgentResult[None]) -> list[tuple[bool, str]]:
    """Of each call whether it failed, and its words."""
    return [
        (block.is_error, "\n".join(one.text for one in block.content if isinstance(one, Text)))
        for message in result.messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]


@each_task
async def test_a_task_is_done_through_the_tools_and_only_its_last_change_makes_the_tests_pass(
    task: Task, tmp_path: Path
) -> None:
    folder, half = task.copy(tmp_path / "project"), tmp_path / "half"
    assert not judge(task, folder, "").passed, "there is nothing to do"
    script = TaskScript(task, lambda: shutil.copytree(folder, half))
    agent = Agent(script, tools=builtin_tools(), root=str(folder), mode="auto")
    result = await agent.run(task.prompt)
    calls = [call for step in task.step for call in step.call]
    for call, (failed, words) in zip(calls, _results(result), strict=True):
        assert failed == call.fails, f"{call.tool}: {words}"
        assert re.search(call.shows, words), f"{call.tool}: {words}"
    assert (result.stop_reason, result.steps) == ("end_turn", len(task.step) + 1)
    assert judge(task, folder, result.final_message).why == ""
    if half.exists():
        assert not judge(task, half, result.final_message).passed, "the half would have done"


async def test_a_model_that_changes_the_tests_has_not_done_the_task(tmp_path: Path) -> None:
    (task,) = [task for task in TASKS if task.name == "fix_failing_test"]
    folder = task.copy(tmp_path / "project")
    call = Call("write_file", {"path": "tests/test_hours.py", "content": "import unittest\n"})
    look = Call("read_file", {"path": "tests/test_hours.py"})
    script = TaskScript(msgspec.structs.replace(task, step=(Step((look,)), Step((call,)))))
    agent = Agent(script, tools=builtin_tools(), root=str(folder), mode="auto")
    result = await agent.run(task.prompt)
    assert [failed for failed, _ in _results(result)] == [False, False]
    verdict = judge(task, folder, result.final_message)
    assert verdict == Verdict(passed=False, why="changed what must stay: tests/test_hours.py")

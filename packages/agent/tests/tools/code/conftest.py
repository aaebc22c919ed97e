"""What the tests of the tools that know code share."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import Tool, ToolOutput
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_protocol import Text

MakeContext = Callable[[dict[str, str]], MemoryContext]
RunTool = Callable[..., Awaitable[ToolOutput]]
Ask = Callable[..., Awaitable[str]]


def _said(output: ToolOutput) -> str:
    return "\n".join(block.text for block in output.content if isinstance(block, Text))


@pytest.fixture(params=["memory", "disk"])
def make_context(request: pytest.FixtureRequest, tmp_path: Path) -> MakeContext:
    """Makes a context whose workspace holds these files: in memory, and on disk."""

    def make(files: dict[str, str]) -> MemoryContext:
        if request.param == "memory":
            return MemoryContext(MemoryWorkspace(files))
        return on_disk(tmp_path, files)

    return make


@pytest.fixture
def make_disk(tmp_path: Path) -> MakeContext:
    """Makes a context whose workspace is a folder on disk."""
    return lambda files: on_disk(tmp_path, files)


def on_disk(folder: Path, files: dict[str, str]) -> MemoryContext:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return MemoryContext(LocalWorkspace(folder))


@pytest.fixture
def run_tool() -> RunTool:
    """Runs a tool as a turn does: arguments checked, looked at, and run with what was seen."""

    async def run(context: MemoryContext, tool: Tool, **arguments: Any) -> ToolOutput:
        checked = tool.check(json.dumps(arguments))
        if tool.look is not None:
            context.bases = (await tool.look(context, checked)).bases
        return await tool.run(context, checked)

    return run


@pytest.fixture
def ask(run_tool: RunTool) -> Ask:
    """Runs a tool and gives what the model is told."""

    async def run(context: MemoryContext, tool: Tool, **arguments: Any) -> str:
        return _said(await run_tool(context, tool, **arguments))

    return run

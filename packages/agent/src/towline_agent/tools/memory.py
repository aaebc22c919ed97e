"""A tool's context in memory, for tests of tools."""

from collections.abc import Mapping

import msgspec

from towline_agent.tools.state import ToolState
from towline_agent.tools.tool import Look, Tool, ToolOutput
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_protocol import (
    CallId,
    Process,
    SessionId,
    Todo,
    Usage,
    UsageError,
    block_text,
)

__all__ = ["MemoryContext"]


class MemoryContext:
    """Keeps what a tool shows.

    ```python
    context = MemoryContext(MemoryWorkspace({"a.txt": "words"}))
    output = await context.use(read_file, path="a.txt")
    ```

    Args:
        workspace: Where the tool works; `None` for an empty one in memory.
        result_limit: Characters that a result may have.
    """

    def __init__(self, workspace: Workspace | None = None, *, result_limit: int = 50_000) -> None:
        self.call = CallId("call_1")
        """The call's id."""
        self.workspace: Workspace = MemoryWorkspace() if workspace is None else workspace
        """Where the tool works."""
        self.result_limit: int = result_limit
        """Characters that a result may have."""
        self.state = ToolState()
        """What tools keep."""
        self.bases: Mapping[str, str] = {}
        """The hashes of the files as they were looked at."""
        self.outputs: list[str] = []
        """Each piece of output, in order."""
        self.steps: list[tuple[str, float | None]] = []
        """Each word of progress with its fraction, in order."""
        self.processes: list[Process] = []
        """Each program whose start was made durable, in order."""
        self.children: list[SessionId] = []
        """Each sub-agent's session whose start was made durable, in order."""
        self.plans: list[tuple[Todo, ...]] = []
        """Each plan that was shown, in order."""
        self.bills: list[tuple[Usage, float | None]] = []
        """What was used elsewhere, in order."""
        self.stop_reason: str | None = None
        """Why nothing more may be used."""

    async def look(self, tool: Tool, **arguments: object) -> Look:
        """What a tool would do; only for one that looks.

        Args:
            tool: The tool.
            arguments: Its arguments by name, as JSON values.
        """
        if tool.look is None:
            raise UsageError(f"{tool.name!r} has no look; use it.")
        return await tool.look(self, tool.check(_json(arguments)))

    async def run(self, tool: Tool, **arguments: object) -> ToolOutput:
        """Run a tool without a look before it; `bases` are as they stand."""
        return await tool.run(self, tool.check(_json(arguments)))

    async def use(self, tool: Tool, **arguments: object) -> ToolOutput:
        """Run a tool as the loop does when all is allowed: look, grant, run.

        Args:
            tool: The tool.
            arguments: Its arguments by name, as JSON values.
        """
        if tool.look is None:
            return await self.run(tool, **arguments)
        found = await self.look(tool, **arguments)
        kept = self.workspace
        self.bases = found.bases
        self.workspace = kept.grant(
            frozenset(place for part in found.parts for place in part.grants)
        )
        try:
            return await self.run(tool, **arguments)
        finally:
            self.bases, self.workspace = {}, kept

    async def told(self, tool: Tool, **arguments: object) -> str:
        """The text that a model is told of a call."""
        return block_text((await self.use(tool, **arguments)).content)

    def output(self, text: str) -> None:
        """Keep a piece of output."""
        self.outputs.append(text)

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Keep a word of progress."""
        self.steps.append((text, fraction))

    async def start(self, process: Process | None, child: SessionId | None = None) -> None:
        """Keep a program's or a sub-agent's start."""
        if process is not None:
            self.processes.append(process)
        if child is not None:
            self.children.append(child)

    def todos(self, todos: tuple[Todo, ...]) -> None:
        """Keep the plan."""
        self.plans.append(todos)

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Keep what was used."""
        self.bills.append((usage, cost))

    def used_up(self) -> str | None:
        """Why nothing more may be used."""
        return self.stop_reason


def _json(arguments: Mapping[str, object]) -> str:
    return msgspec.json.encode(arguments).decode()

"""A model that plays a task's script."""

import json
import re
from collections.abc import Callable
from typing import Final

from tasks.task import Call, Step, Task

from towline_agent import Piece, Request, StepAnswer, StepResult, builtin_tools
from towline_agent.testing import ScriptedProvider, say
from towline_protocol import CallId, Text, ToolCall, ToolResult, Usage

__all__ = ["TaskScript"]

_JOB: Final = re.compile(r"\bjob_\d+\b")
_CHANGES: Final = frozenset(
    {tool.name for tool in builtin_tools() if tool.effect == "write"}
    - {"format_file", "organize_imports"}  # they change how a file looks
)


class TaskScript(ScriptedProvider):
    """A `ScriptedProvider` of the steps of a task.

    Args:
        task: The task; its last words end the script.
        before_last_change: Called before the last step that changes a file.
    """

    def __init__(self, task: Task, before_last_change: Callable[[], object] = lambda: None) -> None:
        self._last_change = max(
            (place for place, step in enumerate(task.step) if _changes(step)), default=None
        )
        self._before_last_change = before_last_change
        super().__init__(*(_answer(step) for step in task.step), say(task.last_words))

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Play the next step."""
        if len(self.requests) == self._last_change:
            self._before_last_change()
        answer = await super().step(request, on_piece)
        return _named_job(answer, request) if isinstance(answer, StepAnswer) else answer


def _changes(step: Step) -> bool:
    return any(call.tool in _CHANGES and not call.fails for call in step.call)


def _answer(step: Step) -> StepAnswer:
    calls = tuple(_tool_call(place, call) for place, call in enumerate(step.call))
    return StepAnswer(content=calls, stop_reason="tool_calls", usage=Usage(input=10, output=5))


def _tool_call(place: int, call: Call) -> ToolCall:
    arguments = json.dumps(call.arguments)
    return ToolCall(id=CallId(""), name=call.tool, arguments=arguments, wire_id=f"wire_{place}")


def _named_job(answer: StepAnswer, request: Request) -> StepAnswer:
    """The answer with the id of the job that was started last, where it asks for one."""
    jobs = [
        found
        for message in request.messages
        for block in message.content
        if isinstance(block, ToolResult)
        for part in block.content
        if isinstance(part, Text)
        for found in _JOB.findall(part.text)
    ]
    if not jobs:
        return answer
    content = tuple(
        ToolCall(
            id=block.id,
            name=block.name,
            arguments=block.arguments.replace("{job}", jobs[-1]),
            wire_id=block.wire_id,
        )
        if isinstance(block, ToolCall)
        else block
        for block in answer.content
    )
    return StepAnswer(content=content, stop_reason=answer.stop_reason, usage=answer.usage)

"""The agent's plan, whole with each call (A5.36)."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext
from towline_protocol import Todo

__all__ = ["MAX_TODOS", "remind_todos", "todo_write"]

MAX_TODOS: Final = 50
"""Lines of a plan: a longer one is a list of wishes."""

_MARKS: Final = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
_Content = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a plan, as a model writes it."""

    id: _Id
    content: _Content
    status: Literal["pending", "in_progress", "completed"] = "pending"


_Lines = Annotated[list[_Line], msgspec.Meta(max_length=MAX_TODOS)]


def _verify(arguments: dict[str, Any]) -> None:
    lines: list[_Line] = arguments["todos"]
    seen: set[str] = set()
    for line in lines:
        if not line.id.strip() or not line.content.strip():
            raise ToolInputInvalid("A todo has an empty id or content; put it into words.")
        if line.id in seen:
            raise ToolInputInvalid(f"Two todos have the id {line.id!r}; give each its own.")
        seen.add(line.id)


@tool(
    effect="own",
    idempotent=True,
    title=lambda arguments: f"Plan: {len(arguments['todos'])} steps",
    verify=_verify,
)
async def todo_write(context: ToolContext, todos: _Lines) -> str:
    """Keep the plan of a task of several steps, which the person sees. Send the whole list.

    Args:
        context: The call.
        todos: All steps in order; mark one in_progress before you begin it.
    """
    context.todos(
        tuple(Todo(id=line.id, content=line.content, status=line.status) for line in todos)
    )
    done = sum(line.status == "completed" for line in todos)
    return f"Noted: {len(todos)} steps, {done} completed."


def remind_todos(todos: Iterable[Todo]) -> tuple[str, ...]:
    """What a model is reminded of its plan (A4.12): nothing once all of it is done."""
    lines = tuple(todos)
    if all(line.status == "completed" for line in lines):
        return ()
    shown = "\n".join(
        f"{_MARKS.get(line.status, '[?]')} {line.id}: {line.content}" for line in lines
    )
    return (f"Your todos (change them with todo_write):\n{shown}",)

"""The agent's plan."""

import msgspec
import pytest

from towline_agent.errors import ToolInputInvalid
from towline_agent.testing import ScriptedHost, ScriptedProvider, call, scripted_plan
from towline_agent.tools.builtin.todo import MAX_TODOS, remind_todos, todo_write
from towline_agent.tools.memory import MemoryContext
from towline_protocol import Todo, TodosUpdated, block_text

LINES = [
    {"id": "1", "content": "look", "status": "completed"},
    {"id": "2", "content": "mend", "status": "in_progress"},
    {"id": "3", "content": "test"},
]
TODOS = (
    Todo(id="1", content="look", status="completed"),
    Todo(id="2", content="mend", status="in_progress"),
    Todo(id="3", content="test", status="pending"),
)


@pytest.mark.rules("A5.T16", "A5.36")
async def test_a_plan_is_shown_whole() -> None:
    host = ScriptedHost()
    await host.run(
        scripted_plan(ScriptedProvider(call("todo_write", todos=LINES), "Done."), todo_write)
    )
    assert [event.todos for event in host.events if isinstance(event, TodosUpdated)] == [TODOS]


async def test_the_model_is_told_how_far_it_is() -> None:
    context = MemoryContext()
    checked = todo_write.check(msgspec.json.encode({"todos": LINES}).decode())
    output = await todo_write.run(context, checked)
    assert block_text(output.content) == "Noted: 3 steps, 1 completed."
    assert context.plans == [TODOS]


@pytest.mark.rules("A5.36")
@pytest.mark.parametrize(
    "lines",
    [
        [{"id": "1", "content": "a"}, {"id": "1", "content": "b"}],
        [{"id": "1", "content": "a", "status": "done"}],
        [{"id": "", "content": "a"}], [{"id": "1", "content": " "}], [{"content": "a"}],
        [{"id": str(number), "content": "a"} for number in range(MAX_TODOS + 1)],
        [{"id": "1", "content": "a", "owner": "me"}], [{"id": "1", "content": "x" * 501}],
    ],
)  # fmt: skip
def test_a_plan_that_does_not_hold_is_refused(lines: list[dict[str, str]]) -> None:
    with pytest.raises(ToolInputInvalid):
        todo_write.check(msgspec.json.encode({"todos": lines}).decode())


@pytest.mark.rules("A4.12")
def test_a_model_is_reminded_of_what_is_left() -> None:
    assert remind_todos(TODOS) == (
        "Your todos (change them with todo_write):\n[x] 1: look\n[~] 2: mend\n[ ] 3: test",
    )
    assert remind_todos(TODOS[:1]) == remind_todos(()) == ()

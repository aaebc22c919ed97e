"""What an agent keeps of its own: its plan and its notes."""

from pathlib import Path

import pytest

from towline_agent import Request
from towline_agent.testing import ScriptedProvider, call
from towline_agent.tools.builtin.todo import todo_write
from towline_protocol import CreateSession, block_text
from towline_server.testing import AppClient, open_test_app, ran, sign_in

TODOS = [{"id": "1", "content": "look", "status": "completed"}, {"id": "2", "content": "mend"}]
LEFT = "Your todos (change them with todo_write):\n[x] 1: look\n[ ] 2: mend"


def names(request: Request) -> list[str]:
    return [spec.name for spec in request.tools]


@pytest.mark.rules("A5.36", "A4.12")
async def test_a_model_is_reminded_of_its_todos_with_each_step(tmp_path: Path) -> None:
    provider = ScriptedProvider(call("todo_write", todos=TODOS), "One is left.", "Still.")
    async with open_test_app(provider, root=tmp_path, tools=[todo_write]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "Plan.")
        view = await client.until(session, ran(1))
        assert [todo.content for todo in view.todos] == ["look", "mend"]
        await client.prompt(session, "And now?")
        await client.until(session, ran(2))
    assert [LEFT in request.trailing for request in provider.requests] == [False, True, True]


@pytest.mark.rules("A5.36", "A5.T16")
async def test_notes_are_known_to_the_next_session_of_the_same_user(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    provider = ScriptedProvider(call("write_memory", text="Use pytest."), "Noted.", "Hi.", "Hello.")
    async with open_test_app(provider, root=tmp_path, remembers=True) as built:
        owner, other = AppClient(built), await sign_in(built, "ada")
        for client in (owner, owner, other):
            session = await client.create(CreateSession(cwd=str(project)))
            await client.prompt(session, "Hi.")
            view = await client.until(session, ran(1))
            assert view.last_turn is not None
            assert view.last_turn.outcome == "completed"
        first, _, second, third = provider.requests
        assert "Use pytest." not in first.system
        assert second.system.endswith("Your notes on this project, by write_memory:\n\nUse pytest.")
        assert "Use pytest." not in third.system  # nobody sees the notes of others
    (notes,) = sorted(path for path in tmp_path.with_name(f"{tmp_path.name}-data").rglob("*.md"))
    assert notes.read_text(encoding="utf-8") == "Use pytest."
    assert list(project.iterdir()) == []


async def test_an_agent_that_keeps_no_notes_has_no_tools_for_them(tmp_path: Path) -> None:
    provider = ScriptedProvider("Hi.")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "Hi.")
        await client.until(session, ran(1))
    assert names(provider.requests[0]) == ["ask_user"]
    assert block_text(provider.requests[0].messages[0].content) == "Hi."

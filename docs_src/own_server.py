from pathlib import Path

from towline_agent import tool
from towline_agent.testing import ScriptedProvider, call
from towline_client import Client
from towline_protocol import PermissionRequested
from towline_server.testing import open_test_server

notes: list[str] = []


@tool(effect="write")
def note(text: str) -> str:
    """Note something."""
    notes.append(text)
    return "noted"


def allow(request: PermissionRequested) -> str:
    return "allow_once" if request.tool == "note" else "deny"


async def test_a_note_is_asked_for_and_made(tmp_path: Path) -> None:
    model = ScriptedProvider(call("note", text="lemons"), "It is noted.", "You are welcome.")
    async with (
        open_test_server(model, root=tmp_path, tools=[note], mode="ask") as server,
        Client(server.url, server.token) as client,
    ):
        client.on_permission(allow)
        session = await client.open()
        assert await session.ask("Note: lemons.") == "It is noted."
        assert await session.ask("Thanks.") == "You are welcome."
    assert notes == ["lemons"]

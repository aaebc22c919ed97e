"""What can be no path, command or address is refused before anybody is asked."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from towline_agent.testing import ScriptedHost, ScriptedProvider, call, scripted_plan
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.tool import Tool
from towline_agent.tools.web.screenshot import make_screenshot
from towline_agent.workspaces.local import LocalWorkspace
from towline_protocol import PermissionRequested, ToolEnded

NAMING: Final = frozenset(
    {"path", "source", "target", "name", "command", "args", "url", "page", "glob", "patch"}
)
"""Arguments that name a place, a program or an address."""
WORKING: Final[dict[str, dict[str, Any]]] = {
    "read_file": {"path": "a.txt"},
    "list_dir": {"path": "."},
    "find_files": {"glob": "*", "path": "."},
    "search_text": {"pattern": "x", "path": ".", "glob": "*"},
    "view_image": {"path": "a.png"},
    "create_file": {"path": "b.txt", "content": "x"},
    "write_file": {"path": "b.txt", "content": "x"},
    "edit_file": {"path": "a.txt", "edits": [{"old_text": "words", "new_text": "x"}]},
    "apply_patch": {"patch": ""},
    "create_dir": {"path": "b"},
    "rename_path": {"path": "a.txt", "name": "b.txt"},
    "move_path": {"source": "a.txt", "target": "b.txt"},
    "delete_path": {"path": "a.txt"},
    "project_overview": {"path": "."},
    "find_symbol": {"name": "x", "path": "."},
    "get_diagnostics": {"path": "a.py"},
    "project_diagnostics": {"path": "."},
    "apply_quick_fix": {"path": "a.py", "code": "F401"},
    "format_file": {"path": "a.py"},
    "organize_imports": {"path": "a.py"},
    "search_dependency": {"name": "x"},
    "add_dependency": {"name": "x", "path": "."},
    "run_program": {"command": "ls"},
    "run_task": {"name": "x", "args": ""},
    "shell": {"command": "ls"},
    "web_fetch": {"url": "http://x.test/"},
    "http_request": {"method": "GET", "url": "http://x.test/"},
    "screenshot_page": {"page": "a.html"},
    "job": {"action": "list"},
    "todo_write": {"todos": []},
    "now": {},
}
"""Arguments of every tool that comes along."""
PATCH: Final = "--- a/{0}\n+++ b/{0}\n@@ -0,0 +1 @@\n+x\n"
BAD: Final = {"nul": "a\0b", "long": "x/" * 20_000, "half": "a\ud800b"}


def _tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in (*builtin_tools(), make_screenshot("/nowhere/browser"))}


CASES: Final = [
    (name, argument)
    for name, working in WORKING.items()
    for argument in sorted(NAMING.intersection(working))
    if (name, argument) != ("find_symbol", "name")  # a word that is looked for
]


def test_the_table_names_every_tool_and_each_of_its_arguments_that_names_something() -> None:
    tools = _tools()
    assert set(WORKING) == set(tools)
    for name, tool in tools.items():
        properties: dict[str, Any] = tool.parameters["properties"]
        assert NAMING.intersection(properties) == NAMING.intersection(WORKING[name]), name


@pytest.mark.rules("A5.3", "A5.59")
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("name", "argument"), CASES)
async def test_nobody_is_asked_about_what_names_nothing(
    tmp_path: Path, name: str, argument: str, bad: str
) -> None:
    for file in ("a.txt", "a.py", "a.png", "a.html"):
        (tmp_path / file).write_text("words\n")
    value = BAD[bad] + (".html" if argument == "page" else "")
    if argument == "patch":
        value = PATCH.format(value)
    arguments = {**WORKING[name], argument: value}
    provider = ScriptedProvider(call(name, **arguments), "Done.")
    plan = scripted_plan(
        provider, _tools()[name], workspace=LocalWorkspace(str(tmp_path)), mode="ask"
    )
    host = ScriptedHost()
    await host.run(plan)
    assert [event for event in host.events if isinstance(event, PermissionRequested)] == []
    (end,) = [event for event in host.events if isinstance(event, ToolEnded)]
    assert end.is_error or name in ("find_files", "search_text"), json.dumps(arguments)

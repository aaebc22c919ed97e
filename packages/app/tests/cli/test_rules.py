"""The user's own rules, held against the tools that there are."""

from pathlib import Path

import pytest

from towline.assistant import make_agents, make_assistant
from towline.cli.rules import SESSION_TOOLS, check_rules, warn_of_rules
from towline_agent import builtin_tools, find_tools
from towline_agent.testing import ScriptedProvider
from towline_protocol import ToolList
from towline_server import Config
from towline_server.testing import AppClient, open_test_app


def _config(tmp_path: Path, *rules: str) -> Config:
    own = tmp_path / "permissions.toml"
    if rules:
        own.write_text(f"rules = {list(rules)!r}\n")
    return Config(data_dir=tmp_path, rules_file=own)


@pytest.mark.rules("A5.47")
def test_a_rule_that_names_no_tool_is_told_with_what_may_be_meant(tmp_path: Path) -> None:
    config = _config(tmp_path, "deny reed_file(*.pem)", "deny frobnicate", "allow now", "ask *")
    first, second = warn_of_rules(config, builtin_tools())
    assert "'deny reed_file(*.pem)'" in first
    assert "did you mean 'read_file'" in first
    assert "there is no tool 'frobnicate', unless" in second
    found = list(check_rules(config, builtin_tools()))
    assert [finding.level for finding in found] == ["warning", "warning"]


def test_rules_that_hold_and_no_rules_are_well(tmp_path: Path) -> None:
    for config in (_config(tmp_path), _config(tmp_path, "deny ask_user", "allow read_file(a)")):
        (found,) = check_rules(config, builtin_tools())
        assert found.level == "ok"


def test_rules_that_cannot_be_read_are_a_fault(tmp_path: Path) -> None:
    config = _config(tmp_path)
    (tmp_path / "permissions.toml").write_text("rules = 3")
    (found,) = check_rules(config, builtin_tools())
    assert found.level == "fault"
    assert "everything asks" in found.message


async def test_all_tools_of_a_session_are_known_here(tmp_path: Path) -> None:
    tools = find_tools().tools
    agents = make_agents(make_assistant(tools))
    helpers = [agent for agent in agents.values() if agent.hidden]
    async with open_test_app(
        ScriptedProvider("well"), root=tmp_path, tools=tools, helpers=helpers, remembers=True
    ) as built:
        client = AppClient(built)
        session = await client.create()
        listed = (await client.ask("GET", f"/api/sessions/{session}/tools")).read(ToolList)
    known = {*SESSION_TOOLS, *(tool.name for tool in tools)}
    names = {tool.name for tool in listed.tools}
    assert {"ask_user", "spawn_agent"} <= names <= known

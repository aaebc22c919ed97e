"""The agent that comes with the product: its tools, and what the settings make of them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from towline.assistant import make_agents, make_assistant
from towline.cli.run import RunWish, run_once
from towline.picks import Picks
from towline_agent import builtin_tools
from towline_agent.tools.registry import find_tools

CODE = '''
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"
'''
ANSWER = b'{"choices": [{"message": {"content": "Sunny."}, "finish_reason": "stop"}]}'


def test_without_settings_it_has_the_built_in_tools() -> None:
    assert list(make_assistant().tools) == [tool.name for tool in builtin_tools()]
    assert list(make_assistant(()).tools) == []


@pytest.mark.rules("A4.61", "D5")
def test_it_may_hand_tasks_to_agents_that_people_are_not_offered() -> None:
    assistant = make_assistant()
    agents = make_agents(assistant)
    assert list(agents) == ["towline", "explore", "general"]
    assert assistant.agents == ("explore", "general")
    explore, general = agents["explore"], agents["general"]
    assert explore.hidden
    assert general.hidden
    assert {tool.effect for tool in explore.tools.values() if tool.name != "now"} == {"read"}
    assert list(general.tools) == list(assistant.tools)


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize("trusts", [False, True])
def test_a_setting_says_whether_it_counts_what_clients_say_of_their_tools(trusts: bool) -> None:
    assert make_assistant(trusts_client_effects=trusts).trusts_client_effects is trusts


@asynccontextmanager
async def model_server(bodies: list[dict[str, Any]]) -> AsyncGenerator[str]:
    """Answers each request with the same words, on a port of its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        bodies.append(json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n")
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.rules("A2.87", "A4.63", "A4.64", "A4.65")
async def test_settings_name_tools_and_a_named_model_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "towline_weather_example.py").write_text(CODE)
    settings = (
        'tools = ["towline_weather_example:weather", "-coding", "-web", "nowhere_at_all:x"]\n'
    )
    (tmp_path / "config.toml").write_text(settings)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("TOWLINE_HOME", str(tmp_path))
    console, told = (Console(file=StringIO(), width=200) for _ in range(2))
    bodies: list[dict[str, Any]] = []
    wish = RunWish(prompt="Weather?", model="custom/our-model", mode="auto")
    async with asyncio.timeout(30), model_server(bodies) as url:
        monkeypatch.setenv("TOWLINE_BASE_URL", url)
        nothing = os.open(os.devnull, os.O_RDONLY)
        code = await run_once(wish, answer=console, told=told, stdin=nothing)
        os.close(nothing)
    assert code == 0
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue() == "Sunny.\n"
    assert isinstance(told.file, StringIO)
    assert "'nowhere_at_all:x' of the settings was left out" in told.file.getvalue()
    names = [tool["function"]["name"] for tool in bodies[0]["tools"]]
    assert names == ["todo_write", "now", "weather", "read_memory", "write_memory", "spawn_agent"]
    assert bodies[0]["model"] == "our-model"
    assert Picks(tmp_path / "data").last("custom") == "custom/our-model"
    sys.modules.pop("towline_weather_example", None)


@pytest.mark.rules("A4.62")
def test_without_other_packages_there_are_our_three_sets() -> None:
    found = find_tools()
    assert [made.name for made in found.sets][:3] == ["coding", "web", "basic"]
    assert list(make_assistant(found.tools).tools)[: len(builtin_tools())] == [
        tool.name for tool in builtin_tools()
    ]

"""The loop behind `run_sync`: what tools do to it, and what a forked child has of it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from towline_agent.agent import Agent
from towline_agent.testing import ScriptedProvider, call
from towline_agent.tools.function import make_tool, tool
from towline_agent.tools.tool import Tool
from towline_protocol import ToolResult, block_text

LIMIT_S = 60


def results(agent: Agent) -> list[str]:
    messages = agent.run_sync("Go.").messages
    blocks = [block for message in messages for block in message.content]
    return [block_text(block.content) for block in blocks if isinstance(block, ToolResult)]


def agent(made: Tool | Callable[..., Any], name: str) -> Agent:
    return Agent(ScriptedProvider(call(name), "Done."), tools=[made], mode="auto")


def works() -> bool:
    return Agent(ScriptedProvider("Hi.")).run_sync("Hi").final_message == "Hi."


class Ender:
    """A handler that wants to end the process."""

    async def handle(self, name: str, arguments_json: str) -> str:
        raise SystemExit(f"{name} {arguments_json}")


@pytest.mark.rules("A4.18", "A4.44")
def test_a_handler_that_would_end_the_process_is_a_failed_call() -> None:
    (told,) = results(agent(make_tool("end", "", {"properties": {}}, Ender()), "end"))
    assert told == "end failed with RuntimeError."
    assert works()


@pytest.mark.rules("A4.18")
@pytest.mark.parametrize("kind", [SystemExit, type("Odd", (BaseException,), {})])
def test_a_check_that_would_end_the_process_is_a_failed_call(kind: type[BaseException]) -> None:
    def verify(_: dict[str, Any]) -> None:
        raise kind

    @tool(verify=verify)
    async def end() -> None:
        """End."""

    (told,) = results(agent(end, "end"))
    assert told == f"end failed with {kind.__name__}."
    assert works()


@pytest.mark.rules("A4.51")
def test_an_interrupt_that_a_tool_raises_reaches_the_caller_and_the_next_run_works() -> None:
    @tool
    async def interrupt() -> None:
        """Interrupt."""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent(interrupt, "interrupt").run_sync("Go.")
    assert works()


@pytest.mark.rules("A4.51")
def test_a_tool_that_stops_the_loop_stops_nothing() -> None:
    @tool
    async def stop() -> str:
        """Stop the loop."""
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "stopped"

    assert results(agent(stop, "stop")) == ["stopped"]
    assert works()


_SMASH = """
import asyncio
from towline_agent import Agent, tool
from towline_protocol import UsageError
from towline_agent.testing import ScriptedProvider, call

@tool
async def smash() -> None:
    "Close what the loop waits with."
    asyncio.get_running_loop()._selector.close()
    await asyncio.sleep(10)

try:
    Agent(ScriptedProvider(call("smash")), tools=[smash], mode="auto").run_sync("Go.")
except UsageError as error:
    print(error)
print(Agent(ScriptedProvider("Hi.")).run_sync("Hi").final_message, flush=True)
"""


@pytest.mark.rules("A4.51")
def test_a_loop_that_breaks_fails_who_waits_and_the_next_run_has_a_new_one(tmp_path: Path) -> None:
    run = run_program(
        tmp_path,
        _SMASH,
    )
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert first.startswith("The loop of `run_sync` ended under this run (")
    assert second == "Hi."


_FORK = """
import os
from towline_agent import Agent, find_tools
from towline_agent.testing import ScriptedProvider, call

def look(path: str) -> str:
    "Look."
    return "seen"

def go(who):
    provider = ScriptedProvider(call("look", path="a"), call("list_dir"), "Done.")
    agent = Agent(provider, tools=[look, *find_tools().tools], mode="auto")
    result = agent.run_sync("Look.")
    line = f"{who} {result.final_message} {result.tool_call_count}"
    os.write(1, line.encode() + bytes([10]))  # in one piece: both processes share the pipe

go("before")
child = os.fork()
go("parent" if child else "child")
if child:
    os.waitpid(child, 0)
else:
    os._exit(0)
"""


@pytest.mark.rules("A4.51", "A4.25")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="NO FORK on this system.")
def test_a_forked_child_runs_with_a_loop_and_threads_of_its_own(tmp_path: Path) -> None:
    run = run_program(
        tmp_path,
        _FORK,
    )
    assert sorted(run.stdout.splitlines()) == ["before Done. 2", "child Done. 2", "parent Done. 2"]
    assert run.returncode == 0, run.stderr


_FORK_CONNECTED = """
import os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from towline_agent.background import run_in_background
from towline_agent.providers.http import shared_transport
from towline_agent.providers.transport import HttpCall

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = str(self.client_address[1]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): ...

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()

def ask():
    call = HttpCall(url=f"http://127.0.0.1:{server.server_port}/", method="GET")
    return run_in_background(shared_transport().json(call)).body

before = ask()
child = os.fork()
if not child:
    shared_transport().close_all()
    print("own connection:", ask() != before, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("kept connection:", ask() == before, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NO FORK on this system.")
def test_a_forked_child_ends_without_the_connections_of_its_parent(tmp_path: Path) -> None:
    run = run_program(
        tmp_path,
        _FORK_CONNECTED,
    )
    assert run.stdout.splitlines() == ["own connection: True", "kept connection: True"], run.stderr


def run_program(folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, "-W", "ignore", program]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder
    )

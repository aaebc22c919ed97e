"""The examples that are clients, each run as its reader would run it, against a real server."""

import ast
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_agent import Piece, Request, StepResult, TextPiece, tool
from towline_agent.testing import Script, ScriptedProvider, call, say
from towline_client import Client
from towline_protocol import (
    EndedTurn,
    MessageView,
    PromptAccepted,
    PromptId,
    SessionChanged,
    SessionId,
    SessionView,
    Text,
    TurnId,
    Usage,
    block_text,
    empty_view,
)
from towline_server import BuiltApp
from towline_server.testing import open_test_server

pytestmark = pytest.mark.slow  # each starts a program

EXAMPLES = Path(__file__).parents[1] / "examples"
PATIENCE_S = 60.0


class ByTask(ScriptedProvider):
    """Plays a script of its own for each first prompt."""

    def __init__(self, scripts: dict[str, tuple[Script, ...]]) -> None:
        super().__init__()
        self._tasks = {task: ScriptedProvider(*script) for task, script in scripts.items()}

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        task = next(block_text(each.content) for each in request.messages if each.role == "user")
        return await self._tasks[task].step(request, on_piece)


class Run:
    """An example in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def end(self, typed: str = "") -> str:
        """Type this and wait for its end, which must be in order; gives what it printed."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                out, errors = await self._process.communicate(typed.encode())
        finally:
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
        assert (self._process.returncode, errors.decode()) == (0, "")
        return out.decode()

    async def fail(self) -> str:
        """Wait for its end, which must be a failure that is told in one line; gives the line."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                out, errors = await self._process.communicate()
        finally:
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
        assert (self._process.returncode, out.decode()) == (1, "")
        (line,) = errors.decode().splitlines()
        return line


async def start(name: str, built: BuiltApp, *arguments: str, token: str | None = None) -> Run:
    environ = {"PATH": os.environ["PATH"], "PYTHONUTF8": "1", "TOWLINE_URL": built.url}
    return Run(
        await asyncio.create_subprocess_exec(
            sys.executable,
            str(EXAMPLES / name),
            *arguments,
            env=environ | {"TOWLINE_TOKEN": built.token if token is None else token},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    )


@tool(effect="write")
async def write_note(text: str) -> str:
    """Write something down."""
    return f"noted: {text}"


async def test_a_code_becomes_a_token_that_lets_a_program_in(tmp_path: Path) -> None:
    async with open_test_server(ScriptedProvider(), root=tmp_path) as built:
        async with Client(built.url, built.token) as client:
            code = (await client.pair()).code
        printed = await (await start("pair_client.py", built, code)).end()
        words = dict(word.split("=") for word in printed.removeprefix("export ").split())
        assert words["TOWLINE_URL"] == built.url
        async with Client(built.url, words["TOWLINE_TOKEN"]) as client:
            assert "my client" in [row.name for row in (await client.account.list_tokens()).tokens]


async def test_the_chat_prints_answers_as_they_grow_and_comes_back_to_its_session(
    tmp_path: Path,
) -> None:
    pieces = [TextPiece(0, "Sunny, "), TextPiece(0, "24 °C.")]
    provider = ScriptedProvider(
        pieces, call("write_note", text="4747"), "Noted.", "You are welcome."
    )
    async with open_test_server(provider, root=tmp_path, tools=[write_note]) as built:
        first = await (await start("chat_client.py", built)).end("Weather?\nNote 4747.\n\n")
        head, *said = first.splitlines()
        assert said == ["Sunny, 24 °C.", "Noted."]
        again = await start("chat_client.py", built, head.removeprefix("session "))
        assert await again.end("Thanks.\n") == f"{head}\nYou are welcome.\n"
    assert "4747" in str(provider.requests[-1].messages)


async def test_the_chat_says_how_a_turn_ended_that_did_not_complete(tmp_path: Path) -> None:
    async with open_test_server(ScriptedProvider(), root=tmp_path) as built:
        printed = await (await start("chat_client.py", built)).end("Hi.\n")
    assert "[failed: " in printed


NEED_TOKEN = ["chat_client.py", "client_tool.py", "bad_network.py", "three_sessions.py"]


@pytest.mark.parametrize("name", NEED_TOKEN)
async def test_without_a_token_that_is_known_it_ends_in_one_line(name: str, tmp_path: Path) -> None:
    async with open_test_server(ScriptedProvider(), root=tmp_path) as built:
        assert "Set TOWLINE_TOKEN" in await (await start(name, built, token="")).fail()
        assert "token" in await (await start(name, built, token="unknown")).fail()


async def test_a_code_that_is_missing_or_used_up_is_told_in_one_line(tmp_path: Path) -> None:
    async with open_test_server(ScriptedProvider(), root=tmp_path) as built:
        assert "Give the code" in await (await start("pair_client.py", built)).fail()
        async with Client(built.url, built.token) as client:
            code = (await client.pair()).code
            await client.claim(code)
        assert "code" in await (await start("pair_client.py", built, code)).fail()


class Shown:
    """Stands for a session whose views came already."""

    def __init__(self, *views: SessionView) -> None:
        self._views = views

    @property
    async def views(self) -> AsyncGenerator[SessionView]:
        for view in self._views:
            yield view


def view_of(text: str, *, over: bool = False) -> SessionView:
    entry = MessageView(
        seq=1, role="assistant", turn=TURN, time=TIME, content=(Text(text=text),) if text else ()
    )
    ended = EndedTurn(id=TURN, outcome="completed", time=TIME, usage=Usage())
    return msgspec.structs.replace(
        empty_view(), messages=(entry,), last_turn=ended if over else None
    )


TURN = TurnId("turn_1")
TIME = "2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("texts", "printed"),
    [
        (["Sunny, 24", "", "Sunny, ", "Sunny, 24 °C."], "Sunny, 24 °C.\n"),
        (["Sunny, 24", "", "Sun", "Sun and wind."], "Sunny, 24\nSun and wind.\n"),
    ],
    ids=["in the same words", "in other words"],
)
async def test_the_chat_prints_an_answer_that_begins_anew_after_a_crash_once(
    texts: list[str],
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TOWLINE_TOKEN", "token")
    tree = ast.parse((EXAMPLES / "chat_client.py").read_text("utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.Try)]  # what starts it
    names: dict[str, Any] = {}
    exec(compile(tree, "chat_client.py", "exec"), names)
    views = [*map(view_of, texts), view_of(texts[-1], over=True)]
    accepted = PromptAccepted(prompt=PromptId("p_1"), turn=TURN, session=SessionId("ses_1"))
    await names["show"](Shown(*views), accepted)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(("typed", "bought"), [("y\n", "1 milk, 2 lemon"), ("n\n", "1 milk")])
async def test_a_tool_of_the_client_runs_when_its_user_allows_it(
    typed: str, bought: str, tmp_path: Path
) -> None:
    provider = ScriptedProvider(call("add_to_list", what="lemon", count=2), "Two lemons, then.")
    async with open_test_server(provider, root=tmp_path, mode="ask") as built:
        run = await start("client_tool.py", built, "Buy two lemons.")
        printed = (await run.end(typed)).splitlines()
    assert "add_to_list" in printed[0]
    assert printed[-2].endswith("Two lemons, then.")
    assert printed[-1] == f"On the list: {bought}"


async def test_what_a_tool_says_of_a_bad_call_is_told_to_the_model(tmp_path: Path) -> None:
    provider = ScriptedProvider(call("add_to_list", what="lemon", count=99), "How many?")
    async with open_test_server(provider, root=tmp_path) as built:
        printed = await (await start("client_tool.py", built, "Buy lemons.")).end()
    assert printed == "How many?\nOn the list: 1 milk\n"
    assert "99 is not between 1 and 20" in str(provider.requests[-1].messages)


async def test_on_a_bad_network_each_prompt_counts_once(tmp_path: Path) -> None:
    provider = ScriptedProvider("One.", "Two.", "Three.", "Four.", "Five.")
    async with open_test_server(provider, root=tmp_path) as built:
        printed = (await (await start("bad_network.py", built)).end()).splitlines()
    assert printed[:-1] == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert printed[-1].startswith("5 prompts, each once, over ")


async def test_the_bot_follows_three_sessions_and_says_which_one_needs_somebody(
    tmp_path: Path,
) -> None:
    provider = ByTask(
        {
            "Name a long river.": (say("The Nile."),),
            "Name a deep lake.": (call("write_note", text="Baikal"), say("Lake Baikal.")),
            "Name a small sea.": (say("The Sea of Marmara."),),
        }
    )
    async with (
        open_test_server(provider, root=tmp_path, tools=[write_note], mode="ask") as built,
        Client(built.url, built.token) as client,
    ):
        running = asyncio.create_task((await start("three_sessions.py", built)).end())
        async with asyncio.timeout(PATIENCE_S):
            async for frame in client.feed():
                if isinstance(frame, SessionChanged) and frame.session.pending:
                    session = await client.open(frame.session.id)
                    await session.answer(session.view.permissions[0], "allow_once")
                    break
        lines = (await running).splitlines()
        assert len((await client.list_sessions()).sessions) == 3
    assert f"lakes needs you: {built.url}" in lines
    assert "rivers: The Nile." in lines
    assert "seas: The Sea of Marmara." in lines
    lake = [line for line in lines if line.startswith("lakes: ") or "wants" in line]
    assert lake == ["lakes wants: write_note", "lakes: Lake Baikal."]

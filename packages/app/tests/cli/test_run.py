"""`towline run`: what goes where, what is read, and how it ends."""

import json
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from towline.cli.run import (
    CUT_SHORT,
    DENIED,
    RunWish,
    follow_run,
    open_workspace,
    run_once,
    say_loading,
)
from towline.cli.run_input import ATTACHMENT_CHARS, INPUT_MAX_BYTES, make_prompt, read_input
from towline.cli.run_notes import take_notes
from towline.cli.run_screen import JsonLines, RunScreen
from towline.local import LocalModel, LocalModelError
from towline.local_provider import LocalProvider
from towline.paths import find_paths
from towline_agent import Agent, LocalWorkspace, Tool, ToolDenied, tool
from towline_agent.testing import ScriptedProvider, call
from towline_agent.workspaces.base import ABSENT
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_protocol import (
    DENY,
    CallId,
    Limits,
    MessageId,
    Option,
    PermissionId,
    PermissionRequested,
    Preview,
    Text,
    TextDelta,
    UsageError,
)
from towline_server import OWNER, Config, notes_of

_HIDDEN = "rm [bold]\u202egpj.x\u200b\x1b[2K :bug:"
_SHOWN = "rm [bold]<U+202E>gpj.x<U+200B>␛[2K :bug:"


def _console(*, terminal: bool = False) -> tuple[Console, StringIO]:
    file = StringIO()
    return Console(file=file, width=200, force_terminal=terminal, color_system=None), file


async def test_a_request_spells_out_what_hides_in_it() -> None:
    console, told = _console()
    request = PermissionRequested(
        permission=PermissionId("prm_1"),
        call=CallId("call_1"),
        tool="run_program",
        title=_HIDDEN,
        reason="\u2066why",
        preview=Preview(kind="command", text=_HIDDEN, truncated=True),
        digest="d" * 64,
        options=(Option(id=DENY, label="Deny"),),
        expires_at="2999-01-01T00:00:00.000Z",
    )
    assert await RunScreen(_console()[0], console).ask(request) == DENY
    title, preview, _ = told.getvalue().splitlines()
    assert title == f"{_SHOWN}  (<U+2066>why)"
    assert preview == _SHOWN


@pytest.mark.parametrize(("terminal", "shown"), [(True, "a👩\u200d💻␛[2K<U+202E>"), (False, "")])
def test_a_terminal_gets_the_text_as_it_comes_without_controls(terminal: bool, shown: str) -> None:
    console, answer = _console(terminal=terminal)
    text = "a👩\u200d💻\x1b[2K\u202e"
    screen = RunScreen(console, _console()[0])
    screen.show(TextDelta(message=MessageId("msg_1"), block=0, at=0, text=text))
    assert answer.getvalue() == shown


class _Unreachable(LocalProvider):
    """The embedded model on a machine that cannot run it."""

    async def start(self) -> LocalModel:
        raise LocalModelError("It is not there.")


async def test_what_is_told_of_the_local_model_goes_not_where_the_answer_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOWLINE_HOME", str(tmp_path))
    monkeypatch.setattr("towline.models.LocalProvider", _Unreachable)
    answer = StringIO()
    with pytest.raises(LocalModelError), _input(b"") as fd:
        await run_once(
            RunWish(prompt="Hi", model="any.gguf"), answer=Console(file=answer), stdin=fd
        )
    assert answer.getvalue() == ""
    assert capsys.readouterr().err == "Loading the local model, which takes some seconds.\n"


def test_a_second_copy_of_the_model_is_told_of() -> None:
    assert "second copy" in say_loading(beside_server=True)
    assert "second copy" not in say_loading(beside_server=False)


@contextmanager
def _input(data: bytes) -> Generator[int]:
    """A pipe out of which these bytes come."""
    out, into = os.pipe()
    os.write(into, data)
    os.close(into)
    yield out
    os.close(out)


@tool(effect="exec")
async def blow() -> str:
    """Make wind."""
    return "windy"


def _agent(*script: object, mode: str = "auto", steps: int = 9) -> Agent:
    provider = ScriptedProvider(*script)  # type: ignore[arg-type]
    return Agent(provider, tools=[_tool()], mode=mode, limits=Limits(max_steps=steps))


def _tool() -> Tool:
    return blow  # type: ignore[return-value]


async def test_a_pipe_gets_the_last_message_alone_and_progress_goes_beside_it() -> None:
    answer, told = _console(), _console()
    agent = _agent(call("blow"), "It is windy.")
    assert await follow_run(agent, "Look", RunScreen(answer[0], told[0])) == 0
    assert answer[1].getvalue() == "It is windy.\n"
    assert told[1].getvalue() == "· blow — completed\n"


@pytest.mark.rules("A5.68")
async def test_what_nobody_could_allow_is_denied_and_told_by_the_exit_code() -> None:
    answer, told = _console(), _console()
    agent = _agent(call("blow"), "I could not.", mode="ask")
    assert await follow_run(agent, "Look", RunScreen(answer[0], told[0])) == DENIED
    assert answer[1].getvalue() == "I could not.\n"
    first, hint = told[1].getvalue().splitlines()
    assert re.fullmatch(r"· blow — denied: It \w+ .+\.", first)
    assert "--mode accept_edits" in hint


async def test_a_bound_that_ends_it_is_told_by_the_exit_code() -> None:
    console, answer = _console()
    agent = _agent(call("blow"), "So far.", steps=1)
    assert await follow_run(agent, "Look", RunScreen(console, _console()[0])) == CUT_SHORT
    assert answer.getvalue() == "So far.\n"


async def test_a_program_gets_each_event_as_a_line_and_the_result_last() -> None:
    console, answer = _console()
    agent = _agent(call("blow"), "It is windy.")
    assert await follow_run(agent, "Look", JsonLines(console)) == 0
    lines = [json.loads(line) for line in answer.getvalue().splitlines()]
    assert {"tool_proposed", "tool_ended", "turn_completed"} <= {line["type"] for line in lines}
    assert lines[-1]["type"] == "result"
    assert lines[-1]["answer"] == "It is windy."
    assert lines[-1]["stop_reason"] == "end_turn"


@pytest.mark.rules("A5.79", "A5.80")
async def test_what_is_piped_in_and_mentioned_goes_ahead_of_the_question() -> None:
    workspace = MemoryWorkspace({"a.py": "one\ntwo\nthree\n", "b.bin": b"\0"})
    with _input(b"log </file> line") as fd:
        given = read_input(fd)
    prompt = await make_prompt("Why @a.py:2-3 and @b.bin and @none?", given, workspace)
    assert prompt.told == (
        "Attached: standard input, a.py (lines 2-3).",
        "Not attached: @b.bin: it is no text; the agent can look at it with its tools. "
        "@none: There is no file or folder of this name.",
    )
    assert [block.text for block in prompt.blocks] == [
        '<file name="stdin">\nlog &lt;/file> line\n</file>',
        '<file path="a.py" lines="2-3">\ntwo\nthree\n</file>',
        "Why @a.py:2-3 and @b.bin and @none?",
    ]
    (long, _), told = await make_prompt("Go", b"x" * (ATTACHMENT_CHARS + 1), workspace)
    assert told == ("Attached: standard input, of which the first 40,000 characters.",)
    assert len(long.text) < ATTACHMENT_CHARS + 100
    assert "the rest is left out" in long.text


@pytest.mark.rules("A5.67", "A5.79")
async def test_a_link_to_a_secret_stays_a_word(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes.txt").symlink_to(".env")
    for words in ("See @notes.txt", "See @.env"):
        blocks, (told,) = await make_prompt(words, None, LocalWorkspace(tmp_path))
        assert blocks == (Text(text=words),)
        assert "it may hold secrets" in told


@pytest.mark.rules("A5.8", "A5.21")
async def test_a_run_sees_nothing_of_towlines_own_and_keeps_to_the_sandbox_that_is_set(
    tmp_path: Path,
) -> None:
    paths = find_paths({"TOWLINE_HOME": str(tmp_path / "own")})
    paths.data_dir.mkdir(parents=True)
    for place in (paths.config_file, paths.run_file, paths.data_dir / "keys"):
        place.write_text("KEY=1")
    workspace = open_workspace(tmp_path, paths, Config(data_dir=paths.data_dir))
    for place in (paths.config_file, paths.run_file, paths.data_dir / "keys"):
        with pytest.raises(ToolDenied):
            await workspace.read(str(place.relative_to(tmp_path)))
    with pytest.raises(UsageError, match="never"):  # what is set gets there
        open_workspace(tmp_path, paths, Config(data_dir=paths.data_dir, sandbox="never"))


async def test_standard_input_may_be_the_prompt_itself() -> None:
    assert (await make_prompt(None, b" Do it \n", MemoryWorkspace())).blocks[0].text == "Do it"
    assert (await make_prompt("-", b"Do it", MemoryWorkspace())).blocks[0].text == "Do it"


@pytest.mark.parametrize(
    ("words", "given", "why"),
    [
        (None, None, "Say what to do"),
        (None, b" \n", "Say what to do"),
        ("  ", None, "prompt is empty"),
        ("Look", b"a\0b", "is no text"),
    ],
)
async def test_a_run_with_nothing_to_do_says_what_it_wants(
    words: str | None, given: bytes | None, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        await make_prompt(words, given, MemoryWorkspace())


def test_input_is_read_where_somebody_gives_it_and_not_without_end(tmp_path: Path) -> None:
    with Path(os.devnull).open("rb") as nothing:
        assert read_input(nothing.fileno()) is None
    file = tmp_path / "big"
    file.write_bytes(b"")
    os.truncate(file, INPUT_MAX_BYTES + 1)
    with file.open("rb") as big, pytest.raises(UsageError, match="tail -n 500"):
        read_input(big.fileno())
    with _input(b"") as fd:
        assert read_input(fd) is None


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (RunWish(prompt="Go", mode="yolo"), "There is no mode 'yolo'"),
        (RunWish(prompt="Go", max_cost=0), "--max-cost 0 is no bound"),
        (RunWish(prompt="Go", max_cost=float("nan")), "--max-cost nan"),
        (RunWish(prompt="Go", max_steps=0), "--max-steps 0"),
    ],
)
async def test_a_wish_that_cannot_hold_is_refused_at_once(wish: RunWish, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        await run_once(wish, answer=_console()[0])


@pytest.mark.rules("A5.36")
async def test_a_run_knows_the_notes_of_the_servers_sessions_and_writes_the_same(
    tmp_path: Path,
) -> None:
    config = Config(data_dir=tmp_path / "data")
    root = tmp_path / "project"
    root.mkdir()
    assert (await take_notes(config, str(root)))[0] == ""
    provider = ScriptedProvider("well")
    words = "Tests run by make."
    notes = notes_of(config.data_dir / "notes", OWNER)
    await notes.write(str(root), words, ABSENT)
    told, tools = await take_notes(config, str(root))
    agent = Agent(provider, instructions=told, tools=tools, root=str(root))
    await agent.run("Look")
    assert words in provider.requests[0].system
    assert {"read_memory", "write_memory"} <= {tool.name for tool in tools}

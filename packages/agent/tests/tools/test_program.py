"""The tool `run_program`."""

import asyncio
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.command import COMMAND_MAX_CHARS, split_command
from towline_agent.tools.builtin.ending import tell_end
from towline_agent.tools.builtin.program import (
    ARTIFACT_CHARS,
    MAX_TIMEOUT_S,
    run_program,
    run_task,
    shell,
)
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import Look, Tool, ToolOutput
from towline_agent.workspaces.base import ProgramResult
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_agent.workspaces.output import OUTPUT_MAX_CHARS, STREAM_MAX_CHARS
from towline_protocol import CommandArtifact, Preview, Text

LIMIT_S = 30


async def _call(context: MemoryContext, **arguments: object) -> tuple[str, ToolOutput]:
    async with asyncio.timeout(LIMIT_S):
        output = await run_program.run(context, run_program.check(json.dumps(arguments)))
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text, output


@pytest.mark.rules("A5.T11")
async def test_a_real_program_runs_and_its_end_is_told(tmp_path: Path) -> None:
    context = MemoryContext(LocalWorkspace(tmp_path))
    command = "sh -c 'echo out; echo err >&2; exit 3'"
    text, output = await _call(context, command=command)
    assert text == "exit code 3\nout\nerr\n"
    assert not output.is_error
    assert output.artifacts == (CommandArtifact(command=command, exit_code=3, output="out\nerr\n"),)
    assert "".join(context.outputs) == "out\nerr\n"
    assert len(context.processes) == 1


@pytest.mark.rules("A5.T11", "A5.18")
@pytest.mark.parametrize(
    ("result", "told"),
    [
        (ProgramResult(exit_code=0, output=""), "exit code 0"),
        (ProgramResult(exit_code=3, output=""), "exit code 3"),
        (
            ProgramResult(exit_code=-9, output=""),
            "ended by SIGKILL (killed, perhaps because memory ran out)",
        ),
        (ProgramResult(exit_code=-31, output=""), "ended by SIGSYS"),
        (ProgramResult(exit_code=-99, output=""), "ended by signal 99"),
        (
            ProgramResult(exit_code=139, output=""),
            "exit code 139, which mostly means SIGSEGV (it crashed with a bad memory access)",
        ),
        (ProgramResult(exit_code=255, output=""), "exit code 255"),
        (
            ProgramResult(exit_code=127, output=""),
            "exit code 127, which mostly means that there is no such program",
        ),
        (ProgramResult(exit_code=None, output=""), "ended by us after 7 s, its time limit"),
        (
            ProgramResult(exit_code=None, output="", why="it had too many processes"),
            "ended by us: it had too many processes",
        ),
    ],
)
async def test_each_way_to_end_is_told(result: ProgramResult, told: str) -> None:
    assert tell_end(result, 7) == told
    context = MemoryContext(MemoryWorkspace(programs={"make": result}))
    text, output = await _call(context, command="make all", timeout_s=7)
    assert text == f"{told}\n(no output)"
    assert output.is_error is (result.exit_code is None)


async def test_a_screen_gets_the_end_of_a_long_output() -> None:
    result = ProgramResult(exit_code=1, output="x" * ARTIFACT_CHARS + "error: build failed")
    _, output = await _call(
        MemoryContext(MemoryWorkspace(programs={"make": result})), command="make"
    )
    (artifact,) = output.artifacts
    assert isinstance(artifact, CommandArtifact)
    assert len(artifact.output) == ARTIFACT_CHARS
    assert artifact.output.endswith("error: build failed")


async def test_an_unknown_program_is_told() -> None:
    with pytest.raises(ToolError, match="no program 'nope'"):
        await _call(MemoryContext(), command="nope")


@pytest.mark.rules("A5.59")
def test_a_person_and_a_rule_see_the_whole_command_line() -> None:
    command = "git commit -m '" + "long " * 50 + "'"
    arguments = run_program.check(json.dumps({"command": command}))
    assert run_program.preview is not None
    assert run_program.subject is not None
    assert run_program.title is not None
    assert run_program.preview(arguments) == Preview(kind="command", text=command)
    assert run_program.subject(arguments) == command
    assert run_program.title({"command": "a\nb"}) == "Run a b"
    assert len(run_program.title(arguments)) < 100
    assert (run_program.effect, run_program.journals, run_program.idempotent) == (
        "exec",
        True,
        False,
    )


async def _look(context: MemoryContext, tool: Tool, **arguments: object) -> Look:
    assert tool.look is not None
    return await tool.look(context, tool.check(json.dumps(arguments)))


def _shown(look: Look) -> str:
    assert look.preview is not None
    assert look.preview.kind == "command"
    return look.preview.text


@pytest.mark.rules("A5.22", "A5.59")
@pytest.mark.parametrize("tool", [run_program, shell])
async def test_the_preview_says_when_there_is_no_sandbox(tmp_path: Path, tool: Tool) -> None:
    fenced = MemoryContext(LocalWorkspace(tmp_path))
    off = MemoryContext(LocalWorkspace(tmp_path, sandbox="off"))
    told = _shown(await _look(off, tool, command="make all"))
    assert told == (
        "# No sandbox (it is switched off): it can change and read all that you can, and use the "
        "network.\nmake all"
    )
    assert _shown(await _look(fenced, tool, command="make all")).endswith("make all")


@pytest.mark.rules("A5.59", "A5.65")
async def test_the_network_and_the_background_are_shown_and_asked_for(tmp_path: Path) -> None:
    context = MemoryContext(MemoryWorkspace())
    plain = await _look(context, run_program, command="make all")
    assert [(part.subject, part.kind, part.effect) for part in plain.parts] == [
        ("make all", "command", "exec")
    ]
    assert plain.whole == "make all"
    both = await _look(context, run_program, command="npm ci", network=True, background=True)
    assert [(part.subject, part.effect) for part in both.parts] == [
        ("npm ci", "exec"),
        ("network", "network"),
    ]
    assert both.whole != "npm ci", "a rule for the one is none for the other"
    assert _shown(both) == "# In the background, for 4 hours at most.\nnpm ci"


@pytest.mark.rules("A5.59", "A5.17")
async def test_its_input_is_shown_and_is_part_of_what_is_allowed() -> None:
    context = MemoryContext(MemoryWorkspace())
    look = await _look(context, run_program, command="python", stdin="print('a')")
    assert look.parts[-1].subject == """python <<< 'print('"'"'a'"'"')'"""
    assert _shown(look) == "python\n# Its input:\nprint('a')"
    long = await _look(context, run_program, command="python", stdin="x" * 5000)
    assert long.parts[-1].subject.startswith("python <<< 'sha256 ")
    assert _shown(long).endswith("x" * 5000)


@pytest.mark.rules("A5.17")
async def test_a_program_gets_its_input(tmp_path: Path) -> None:
    context = MemoryContext(LocalWorkspace(tmp_path))
    text, _ = await _call(context, command="cat -", stdin="ä\nb")
    assert text == "exit code 0\nä\nb"


@pytest.mark.rules("A5.64", "A5.65")
@pytest.mark.parametrize("tool", [run_program, shell])
async def test_what_a_shell_would_do_is_judged_part_by_part(tool: Tool, tmp_path: Path) -> None:
    context = MemoryContext(LocalWorkspace(tmp_path))
    look = await _look(context, tool, command="sh -c 'make all && git push'")
    assert {"make all", "git push"} <= {part.subject for part in look.parts}


@pytest.mark.rules("A5.T11")
async def test_a_shell_runs_what_only_a_shell_understands(tmp_path: Path) -> None:
    context = MemoryContext(LocalWorkspace(tmp_path))
    command = "printf 'b\\na\\n' | sort > sorted && cat sorted; [[ -f sorted ]]; exit $((1+1))"
    async with asyncio.timeout(LIMIT_S):
        output = await shell.run(context, shell.check(json.dumps({"command": command})))
    (block,) = output.content
    assert block == Text(text="exit code 2\na\nb\n")
    for bad in ("", "  ", "echo \0"):
        with pytest.raises(ToolInputInvalid):
            shell.check(json.dumps({"command": bad}))


MAKEFILE = "test: ## Run them\n\t@echo tests $(ONLY)\nlint:\n\t@echo lint\n"


@pytest.mark.rules("A5.T11", "A5.59")
async def test_a_task_of_the_project_is_shown_and_run(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    context = MemoryContext(LocalWorkspace(tmp_path))
    arguments = {"name": "test", "args": "ONLY='a b'"}
    look = await _look(context, run_task, **arguments)
    assert look.parts[0].subject == "make test 'ONLY=a b'"
    assert _shown(look).endswith("# make:test: Run them\nmake test 'ONLY=a b'")
    assert list(look.bases) == ["Makefile"]
    context.bases = look.bases
    async with asyncio.timeout(LIMIT_S):
        output = await run_task.run(context, run_task.check(json.dumps(arguments)))
    assert output.content == (Text(text="exit code 0\ntests a b\n"),)


@pytest.mark.rules("A5.63")
async def test_a_task_that_was_changed_since_it_was_shown_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    context = MemoryContext(LocalWorkspace(tmp_path))
    context.bases = (await _look(context, run_task, name="test")).bases
    (tmp_path / "Makefile").write_text(MAKEFILE + "\ttouch effect\n")
    with pytest.raises(ToolError, match="changed since you looked"):
        await run_task.run(context, run_task.check('{"name": "test"}'))
    assert context.processes == []


async def test_arguments_of_an_npm_script_stand_behind_dashes() -> None:
    workspace = MemoryWorkspace({"package.json": '{"scripts": {"test": "jest"}}'})
    look = await _look(MemoryContext(workspace), run_task, name="test", args="--watch=false")
    assert look.parts[0].subject == "npm run test -- --watch=false"
    with pytest.raises(ToolInputInvalid, match="no task 'tests'; there are: test"):
        await _look(MemoryContext(workspace), run_task, name="tests")
    with pytest.raises(ToolInputInvalid, match="means nothing"):
        run_task.check('{"name": "test", "args": "a; b"}')


@pytest.mark.rules("A5.18")
async def test_who_watches_is_shown_the_beginning_of_a_flood(tmp_path: Path) -> None:
    context = MemoryContext(LocalWorkspace(tmp_path))
    text, _ = await _call(context, command="sh -c 'yes abcdefghi | head -c 1000000; echo end'")
    assert text.endswith("end\n")
    assert STREAM_MAX_CHARS <= len("".join(context.outputs)) < STREAM_MAX_CHARS + 200
    assert len(text) < OUTPUT_MAX_CHARS + 100


@pytest.mark.rules("A5.18")
@pytest.mark.parametrize("timeout_s", [0, MAX_TIMEOUT_S + 1, "60"])
def test_a_time_beyond_the_bounds_is_refused(timeout_s: object) -> None:
    assert run_program.timeout_s is not None
    assert run_program.timeout_s > MAX_TIMEOUT_S
    assert run_program.check('{"command": "ls"}')["timeout_s"] == 120
    with pytest.raises(ToolInputInvalid, match="timeout_s"):
        run_program.check(json.dumps({"command": "ls", "timeout_s": timeout_s}))


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("ls -la", ("ls", "-la")),
        ("  ls\n", ("ls",)),
        ("python -c 'print(1 > 0 and \"a|b\")'", ("python", "-c", 'print(1 > 0 and "a|b")')),
        ('grep "a|b" "it\'s.txt"', ("grep", "a|b", "it's.txt")),
        (r"find . -name x -exec rm {} \;", ("find", ".", "-name", "x", "-exec", "rm", "{}", ";")),
        (r"grep \$HOME '$HOME'", ("grep", "$HOME", "$HOME")),
        (r'grep "a\"b$" a', ("grep", 'a"b$', "a")),
        ("grep 'end$' a", ("grep", "end$", "a")),
        ("git log HEAD~1 --format=%h?", ("git", "log", "HEAD~1", "--format=%h?")),
        ("pytest a.py::test_b[x]", ("pytest", "a.py::test_b[x]")),
        ("sh -c 'ls *.py | wc -l'", ("sh", "-c", "ls *.py | wc -l")),
        ('echo ""', ("echo", "")),
    ],
)
def test_a_command_is_taken_apart_as_a_shell_would(command: str, argv: tuple[str, ...]) -> None:
    assert split_command(command) == argv


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("ls | wc", "|"),
        ("ls|wc", "|"),
        ("make && make install", "&"),
        ("make 2>&1", ">"),
        ("cat < a", "<"),
        ("a; b", ";"),
        ("ls *.py", "*"),
        ("echo `date`", "`"),
        ("echo $HOME", "$H"),
        ('echo "$(date)"', "$("),
        ('echo "${HOME}"', "${"),
        ('awk "{print $1}" a', "$1"),
        (r'echo "\$HOME"', "\\$"),
        ('echo "`date`"', "`"),
        ("echo 'a' \"b\" ; c", ";"),
        ("ls\nrm -r x", "\n"),
    ],
)
def test_what_needs_a_shell_is_refused_before_anybody_is_asked(command: str, sign: str) -> None:
    with pytest.raises(ToolInputInvalid) as refused:
        run_program.check(json.dumps({"command": command}))
    assert f"{sign!r} means nothing" in refused.value.message
    assert "`shell`" in refused.value.message


@pytest.mark.parametrize("command", ["", "   ", "''", "echo 'open", "echo \\", "echo \0"])
def test_a_command_that_is_none_is_refused(command: str) -> None:
    with pytest.raises(ToolInputInvalid):
        run_program.check(json.dumps({"command": command}))


@pytest.mark.rules("A4.16", "A5.T11")
def test_a_command_that_nobody_could_read_is_refused_before_it_is_taken_apart() -> None:
    longest = "echo " + "x" * (COMMAND_MAX_CHARS - 5)
    assert split_command(longest) == ("echo", longest[5:])
    with pytest.raises(ToolInputInvalid) as refused:
        run_program.check(json.dumps({"command": f"{longest} 'open"}))
    assert refused.value.message == (
        f"The command has {COMMAND_MAX_CHARS + 6} characters, and {COMMAND_MAX_CHARS} is the most; "
        "write what is long into a file and name that file."
    )


@settings(max_examples=60)
@given(st.text(alphabet="ab \"'\\$1`|?[]{}=!^-@", min_size=1, max_size=12))
def test_what_is_accepted_means_the_same_as_in_a_shell(words: str) -> None:
    try:
        _, *arguments = split_command(f"printf {words}")
    except ToolInputInvalid:
        return
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            ["sh", "-c", f"printf '%s\\0' {words}"],
            cwd=folder,  # an empty one: nothing there for `?` and `[` to match
            capture_output=True,
            check=True,
            timeout=LIMIT_S,
        )
    assert done.stdout.decode().split("\0")[:-1] == (arguments or [""])

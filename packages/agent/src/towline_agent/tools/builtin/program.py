"""Running programs, the project's tasks, and shell commands (A5.T11, A5.17 to A5.22)."""

import hashlib
import shlex
import shutil
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.permissions.part import Part
from towline_agent.tools.builtin.command import check_command, split_command
from towline_agent.tools.builtin.ending import tell_end
from towline_agent.tools.builtin.jobs import JOB_MAX_S, Jobs, show_job
from towline_agent.tools.builtin.tasks import TASK_FILES, ProjectTask, choose_task, find_tasks
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, ToolContext, ToolOutput
from towline_agent.workspaces.base import ABSENT, Workspace
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.output import StreamCut
from towline_agent.workspaces.threads import FILES
from towline_protocol import CommandArtifact, Preview, Text

__all__ = [
    "ARTIFACT_CHARS",
    "MAX_TIMEOUT_S",
    "TIMEOUT_S",
    "run_program",
    "run_task",
    "shell",
]

TIMEOUT_S: Final = 120
"""Seconds that a program may take unless the model asks for more (A5.18)."""
MAX_TIMEOUT_S: Final = 300
"""Seconds that it may ask for (A5.18)."""
ARTIFACT_CHARS: Final = 4000
"""Characters of the output's end that a screen is given with the result."""

_CLEAN_UP_S: Final = 20.0
"""On top of the program's own time, for ending it and all its children."""
_TITLE_CHARS: Final = 80
_INPUT_CHARS: Final = 2000
"""Of the input, as a rule names it; of a longer one its hash."""
_CLOSED_PORTS: Final = (
    "(Nothing outside its sandbox reaches its ports: a server, and the programs that ask it, need "
    "`network`.)"
)
_NETWORK: Final = "network"
"""What a rule names to let programs use the network."""

_Timeout = Annotated[int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_S)]


def _title_of(words: str) -> str:
    words = " ".join(words.split())
    return f"Run {words}" if len(words) <= _TITLE_CHARS else f"Run {words[:_TITLE_CHARS]}…"


def _command_of(arguments: Mapping[str, Any]) -> str:
    return arguments["command"]


def _subject_of(command: str, stdin: str) -> str:
    """The command with its input: an interpreter that reads another program is another command."""
    if not stdin:
        return command
    if len(stdin) > _INPUT_CHARS:
        stdin = f"sha256 {hashlib.sha256(stdin.encode('utf-8', 'replace')).hexdigest()}"
    return f"{command} <<< {shlex.quote(stdin)}"


async def _look_at(
    workspace: Workspace,
    command: str,
    arguments: Mapping[str, Any],
    *,
    about: str = "",
    bases: Mapping[str, str] | None = None,
) -> Look:
    """What running a command would do, and what a person should see of it (A5.22, A5.59)."""
    network, stdin = bool(arguments.get("network")), str(arguments.get("stdin") or "")
    parts = await FILES.run(lambda: _split(workspace, command))
    subject = _subject_of(command, stdin)
    if stdin:  # what a program reads may be a program too
        parts = tuple([_with_input(part, stdin) for part in parts])
    notes = [about, await _tell_confinement(workspace, network=network)]
    if arguments.get("background"):
        notes.append(f"In the background, for {JOB_MAX_S / 3600:g} hours at most.")
    whole = subject
    if network:
        parts = (*parts, Part(subject=_NETWORK, effect="network"))
        whole = f"{subject}  # {_NETWORK}"
    text = "".join(f"# {note}\n" for note in notes if note) + command
    if stdin:
        text += f"\n# Its input:\n{stdin}"
    return Look(
        parts=parts,
        whole=whole,
        preview=Preview(kind="command", text=text),
        bases={} if bases is None else bases,
    )


def _split(workspace: Workspace, command: str) -> tuple[Part, ...]:
    """The parts of a command, those of an inner `sh -c` too (A5.64). Blocks."""
    # A grammar is loaded with it.
    from towline_agent.permissions.shell.split import split_shell
    from towline_agent.tools.builtin.ground import DiskGround

    if isinstance(workspace, LocalWorkspace):
        return split_shell(command, root=workspace.root, ground=DiskGround(workspace.root))
    return split_shell(command, root=workspace.root)


def _with_input(part: Part, stdin: str) -> Part:
    if part.kind != "command" or part.effect == "read":
        return part
    return msgspec.structs.replace(part, subject=_subject_of(part.subject, stdin))


async def _tell_confinement(workspace: Workspace, *, network: bool) -> str:
    if not isinstance(workspace, LocalWorkspace):
        return ""
    return await FILES.run(lambda: workspace.confinement.tell(network=network))


async def _tell_closed_ports(workspace: Workspace) -> str:
    """What a model must know of a server that it has started without the network."""
    if not isinstance(workspace, LocalWorkspace):
        return ""
    found = await FILES.run(workspace.confinement.find)
    return "" if found.kind == "none" else _CLOSED_PORTS


async def _carry_out(
    context: ToolContext,
    argv: tuple[str, ...],
    command: str,
    *,
    timeout_s: int,
    stdin: str,
    network: bool,
    background: bool,
) -> ToolOutput:
    """Run a command, and tell how it ended; or let it run on as a job."""
    workspace, data = context.workspace, stdin.encode("utf-8", "surrogateescape")
    if background:
        started = await context.state.get(Jobs).start(
            context,
            command,
            lambda on_start, on_output: workspace.run(
                argv,
                timeout_s=JOB_MAX_S,
                on_start=on_start,
                on_output=on_output,
                stdin=data,
                network=network,
            ),
        )
        return show_job(started, "" if network else await _tell_closed_ports(workspace))
    result = await workspace.run(
        argv,
        timeout_s=timeout_s,
        on_start=context.start,
        on_output=StreamCut(context.output).add,
        stdin=data,
        network=network,
    )
    text = f"{tell_end(result, timeout_s)}\n{result.output or '(no output)'}"
    artifact = CommandArtifact(
        command=command, exit_code=result.exit_code, output=result.output[-ARTIFACT_CHARS:]
    )
    return ToolOutput(
        content=(Text(text=text),), is_error=result.exit_code is None, artifacts=(artifact,)
    )


async def _look_at_command(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return await _look_at(context.workspace, _command_of(arguments), arguments)


@tool(
    effect="exec",
    journals=True,
    timeout_s=MAX_TIMEOUT_S + _CLEAN_UP_S,
    title=lambda arguments: _title_of(_command_of(arguments)),
    subject=_command_of,
    preview=lambda arguments: Preview(kind="command", text=_command_of(arguments)),
    verify=lambda arguments: split_command(_command_of(arguments)),
    look=_look_at_command,
)
async def run_program(
    context: ToolContext,
    command: str,
    timeout_s: _Timeout = TIMEOUT_S,
    stdin: str = "",
    network: bool = False,
    background: bool = False,
) -> ToolOutput:
    """Run one program in the working folder and get its exit code and output. There is no shell.

    Args:
        context: The call.
        command: Program and arguments, such as: python -m pytest -q
        timeout_s: Until it is ended.
        stdin: Its input.
        network: It needs the network.
        background: Run on as a `job`: servers, long work.
    """
    return await _carry_out(
        context,
        split_command(command),
        command,
        timeout_s=timeout_s,
        stdin=stdin,
        network=network,
        background=background,
    )


@tool(
    effect="exec",
    journals=True,
    timeout_s=MAX_TIMEOUT_S + _CLEAN_UP_S,
    title=lambda arguments: _title_of(_command_of(arguments)),
    subject=_command_of,
    preview=lambda arguments: Preview(kind="command", text=_command_of(arguments)),
    verify=lambda arguments: check_command(_command_of(arguments)),
    look=_look_at_command,
)
async def shell(
    context: ToolContext,
    command: str,
    timeout_s: _Timeout = TIMEOUT_S,
    network: bool = False,
    background: bool = False,
) -> ToolOutput:
    """Run a shell command (bash) in the working folder: pipes, redirections, several steps.

    Args:
        context: The call.
        command: What bash reads.
        timeout_s: Until it is ended.
        network: It needs the network.
        background: Run on as a `job`.
    """
    return await _carry_out(
        context,
        (shutil.which("bash") or "sh", "-c", command),
        command,
        timeout_s=timeout_s,
        stdin="",
        network=network,
        background=background,
    )


async def _read_tasks(workspace: Workspace) -> tuple[tuple[ProjectTask, ...], dict[str, str]]:
    """The project's tasks, and the hashes of the files that name them."""
    walk = await workspace.walk(".", deep=False, ignored=True)
    names = {entry.name for entry in walk.entries if entry.kind != "dir"}
    texts: dict[str, str] = {}
    hashes = dict.fromkeys(TASK_FILES, ABSENT)
    for name in TASK_FILES:
        if name in names:
            file = await workspace.read(name)
            hashes[name] = file.hash
            texts[name] = file.data.decode("utf-8", "replace")
    return find_tasks(texts, names), {n: h for n, h in hashes.items() if n in names}


async def _look_at_task(context: ToolContext, arguments: dict[str, Any]) -> Look:
    tasks, bases = await _read_tasks(context.workspace)
    task = choose_task(tasks, arguments["name"])
    command = shlex.join(_argv_of(task, arguments["args"]))
    about = f"{task.full_name}: {task.about}" if task.about else ""
    return await _look_at(context.workspace, command, arguments, about=about, bases=bases)


def _argv_of(task: ProjectTask, args: str) -> tuple[str, ...]:
    more = split_command(args) if args else ()
    return (*task.argv, "--", *more) if task.dashes and more else (*task.argv, *more)


@tool(
    effect="exec",
    journals=True,
    timeout_s=MAX_TIMEOUT_S + _CLEAN_UP_S,
    title=lambda arguments: _title_of(f"{arguments['name']} {arguments['args']}"),
    verify=lambda arguments: arguments["args"] and split_command(arguments["args"]),
    look=_look_at_task,
)
async def run_task(
    context: ToolContext,
    name: str,
    args: str = "",
    timeout_s: _Timeout = TIMEOUT_S,
    network: bool = False,
    background: bool = False,
) -> ToolOutput:
    """Run a task that the project names in its Makefile, justfile, package.json or pyproject.toml.

    Args:
        context: The call.
        name: Such as test or npm:build
        args: More arguments.
        timeout_s: Until it is ended.
        network: It needs the network.
        background: Run on as a `job`.
    """
    tasks, bases = await _read_tasks(context.workspace)
    if context.bases and dict(context.bases) != bases:
        raise ToolError("The files that name the tasks have changed since you looked; try again.")
    argv = _argv_of(choose_task(tasks, name), args)
    return await _carry_out(
        context,
        argv,
        shlex.join(argv),
        timeout_s=timeout_s,
        stdin="",
        network=network,
        background=background,
    )

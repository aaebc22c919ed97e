"""Running a program (A5.T11, A5.17 to A5.19)."""

import re
import shlex
import signal
from typing import Annotated, Any, Final

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext, ToolOutput
from towline_agent.workspaces.base import ProgramResult
from towline_protocol import CommandArtifact, Preview, Text

__all__ = [
    "ARTIFACT_CHARS",
    "COMMAND_MAX_CHARS",
    "MAX_TIMEOUT_S",
    "TIMEOUT_S",
    "run_program",
    "split_command",
]

TIMEOUT_S: Final = 120
"""Seconds that a program may take unless the model asks for more (A5.18)."""
MAX_TIMEOUT_S: Final = 300
"""Seconds that it may ask for (A5.18)."""
ARTIFACT_CHARS: Final = 4000
"""Characters of the output's end that a screen is given with the result."""

COMMAND_MAX_CHARS: Final = 32_768
"""Characters of one command: the kernel takes 128 KiB an argument, no person reads more before they
allow it, and a preview still shows all of it."""

_CLEAN_UP_S: Final = 20.0
"""On top of the program's own time, for ending it and all its children."""
_TITLE_CHARS: Final = 80

_PART: Final = re.compile(
    r"""(?P<plain>\\.|'[^']*')|(?P<quoted>"(?:\\.|[^"\\])*")|(?P<bare>[^\\'"]+)""", re.DOTALL
)
"""What a shell takes as it stands, what it expands in double quotes, and all else."""
_SHELL: Final = re.compile(r"[|&;<>`\n*]|\$[\w({?$!#@*-]")
"""What only a shell understands. `?`, `[`, `~` and `#` are left: programs get them too often."""
_SHELL_IN_QUOTES: Final = re.compile(r"`|\\\$|\$[\w({?$!#@*-]")
"""Also a dollar with a backslash, since `shlex` keeps the backslash there and a shell does not."""


def split_command(command: str) -> tuple[str, ...]:
    """A command line as a program and its arguments, by a shell's rules for quotes.

    No shell runs it. What only a shell understands is refused rather than passed on as plain
    text: the command would not do what it says, and a person is asked about what it says.

    Raises:
        ToolInputInvalid: It is too long or empty, a quote is open, or it needs a shell.
    """
    if len(command) > COMMAND_MAX_CHARS:
        raise ToolInputInvalid(
            f"The command has {len(command)} characters, and {COMMAND_MAX_CHARS} is the most; "
            "write what is long into a file and name that file."
        )
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise ToolInputInvalid(
            f"The command can't be taken apart ({error}); close each quote, and write \\\\ for a "
            "backslash."
        ) from error
    if not argv or not argv[0]:
        raise ToolInputInvalid("The command is empty; name a program and its arguments.")
    if "\0" in command:
        raise ToolInputInvalid("The command holds a NUL character; leave it out.")
    sign = _find_shell_sign(command)
    if sign is not None:
        raise ToolInputInvalid(
            f"There is no shell here, so {sign!r} means nothing. Run one program at a time, put "
            "single quotes round what is meant as it stands, or write: sh -c 'your command'"
        )
    return argv


def _find_shell_sign(command: str) -> str | None:
    for part in _PART.finditer(command.strip()):
        found = _SHELL.search(part["bare"] or "")
        found = found or _SHELL_IN_QUOTES.search(part["quoted"] or "")
        if found is not None:
            return found[0]
    return None


def _command_of(arguments: dict[str, Any]) -> str:
    return arguments["command"]


def _title_of(arguments: dict[str, Any]) -> str:
    words = " ".join(_command_of(arguments).split())
    return f"Run {words}" if len(words) <= _TITLE_CHARS else f"Run {words[:_TITLE_CHARS]}…"


@tool(
    effect="exec",
    journals=True,
    timeout_s=MAX_TIMEOUT_S + _CLEAN_UP_S,
    title=_title_of,
    subject=_command_of,
    preview=lambda arguments: Preview(kind="command", text=_command_of(arguments)),
    verify=lambda arguments: split_command(_command_of(arguments)),
)
async def run_program(
    context: ToolContext,
    command: str,
    timeout_s: Annotated[int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_S)] = TIMEOUT_S,
) -> ToolOutput:
    """Run one program in the working folder and get its exit code and output. There is no shell.

    Args:
        context: The call.
        command: Program and arguments, such as: python -m pytest -q
        timeout_s: Seconds after which it is ended.
    """
    result = await context.workspace.run(
        split_command(command),
        timeout_s=timeout_s,
        on_start=context.start,
        on_output=context.output,
    )
    text = f"{_tell_end(result, timeout_s)}\n{result.output or '(no output)'}"
    artifact = CommandArtifact(
        command=command, exit_code=result.exit_code, output=result.output[-ARTIFACT_CHARS:]
    )
    return ToolOutput(
        content=(Text(text=text),), is_error=result.exit_code is None, artifacts=(artifact,)
    )


def _tell_end(result: ProgramResult, timeout_s: int) -> str:
    code = result.exit_code
    if code is None:
        return f"Ended after {timeout_s} s, its time limit; what it printed until then:"
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"ended by {name}"

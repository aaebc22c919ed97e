"""A command line as a program and its arguments, where no shell reads it (A5.T11)."""

import re
import shlex
from typing import Final

from towline_agent.errors import ToolInputInvalid

__all__ = ["COMMAND_MAX_CHARS", "check_command", "split_command"]

COMMAND_MAX_CHARS: Final = 32_768
"""Characters of one command: the kernel takes 128 KiB an argument, no person reads more before they
allow it, and a preview still shows all of it."""

_PART: Final = re.compile(
    r"""(?P<plain>\\.|'[^']*')|(?P<quoted>"(?:\\.|[^"\\])*")|(?P<bare>[^\\'"]+)""", re.DOTALL
)
"""What a shell takes as it stands, what it expands in double quotes, and all else."""
_SHELL: Final = re.compile(r"[|&;<>`\n*]|\$[\w({?$!#@*-]")
"""What only a shell understands. `?`, `[`, `~` and `#` are left: programs get them too often."""
_SHELL_IN_QUOTES: Final = re.compile(r"`|\\\$|\$[\w({?$!#@*-]")
"""Also a dollar with a backslash, since `shlex` keeps the backslash there and a shell does not."""


def check_command(command: str) -> None:
    """Refuse what is no command at all.

    Raises:
        ToolInputInvalid: It is too long or empty, or holds a NUL character.
    """
    if len(command) > COMMAND_MAX_CHARS:
        raise ToolInputInvalid(
            f"The command has {len(command)} characters, and {COMMAND_MAX_CHARS} is the most; "
            "write what is long into a file and name that file."
        )
    if "\0" in command:
        raise ToolInputInvalid("The command holds a NUL character; leave it out.")
    if not command.strip():
        raise ToolInputInvalid("The command is empty; name a program and its arguments.")


def split_command(command: str) -> tuple[str, ...]:
    """A command line as a program and its arguments, by a shell's rules for quotes.

    No shell runs it. What only a shell understands is refused rather than passed on as plain
    text: the command would not do what it says, and a person is asked about what it says.

    Raises:
        ToolInputInvalid: It is too long or empty, a quote is open, or it needs a shell.
    """
    check_command(command)
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise ToolInputInvalid(
            f"The command can't be taken apart ({error}); close each quote, and write \\\\ for a "
            "backslash."
        ) from error
    if not argv or not argv[0]:
        raise ToolInputInvalid("The command is empty; name a program and its arguments.")
    sign = _find_shell_sign(command)
    if sign is not None:
        raise ToolInputInvalid(
            f"There is no shell here, so {sign!r} means nothing. Run one program at a time, put "
            "single quotes round what is meant as it stands, or use the tool `shell`."
        )
    return argv


def _find_shell_sign(command: str) -> str | None:
    for part in _PART.finditer(command.strip()):
        found = _SHELL.search(part["bare"] or "")
        found = found or _SHELL_IN_QUOTES.search(part["quoted"] or "")
        if found is not None:
            return found[0]
    return None

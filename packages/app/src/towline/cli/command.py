"""How a person calls this program: the hints we print must work when they are typed."""

import shutil
import sys
from pathlib import Path

__all__ = ["command_name", "name_command"]


def command_name() -> str:
    """`towline` where the shell finds it, else the path of the program that runs."""
    if shutil.which("towline"):
        return "towline"
    program = Path(sys.executable).with_name("towline")
    if not program.exists():
        return f"{sys.executable} -m towline"
    here = Path.cwd()
    return str(program.relative_to(here)) if program.is_relative_to(here) else str(program)


def name_command(text: str) -> str:
    """A message with the hints in it, such as `towline stop`, as this person would type them.

    Whoever writes a message need not know how the program is called; only commands in back quotes
    are touched.
    """
    return text.replace("`towline ", f"`{command_name()} ") if "`towline " in text else text

"""Reading what must not be seen: hidden from the terminal, or from standard input."""

import getpass
import sys
from typing import Final

from towline_protocol import UsageError

__all__ = ["read_secret"]

_MAX_CHARS: Final = 16 * 1024
"""The longest tokens have a few thousand; more is another file."""


def read_secret(prompt: str) -> str:
    """A secret from the person at the terminal, hidden, or from a pipe.

    Raises:
        UsageError: There is none, or it is far too long.
    """
    if sys.stdin.isatty():
        try:
            text = getpass.getpass(f"{prompt} (it is not shown): ")
        except EOFError:
            text = ""
    else:
        text = sys.stdin.read(_MAX_CHARS + 1)
    if len(text) > _MAX_CHARS:
        raise UsageError("What came is far too long for a key; give the key alone.")
    text = text.strip()
    if not text:
        raise UsageError(
            "No key came; type or paste it at the prompt, or send it to standard input."
        )
    return text

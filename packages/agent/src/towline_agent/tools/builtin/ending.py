"""How a program ended, in words."""

import signal
from typing import Final

from towline_agent.workspaces.base import ProgramResult

__all__ = ["tell_end"]

_SHELL_CODES: Final = {126: "it can't be executed", 127: "there is no such program"}
_BY_SIGNAL: Final = 128
"""A shell, and a sandbox, tells a signal as its number on top of this."""
_MEANS: Final = {
    "SIGKILL": "killed, perhaps because memory ran out",
    "SIGSEGV": "it crashed with a bad memory access",
    "SIGABRT": "it gave up",
    "SIGBUS": "it crashed with a bad memory access",
    "SIGFPE": "it crashed with a bad calculation",
    "SIGILL": "it crashed with a bad instruction",
    "SIGTERM": "it was asked to end",
    "SIGINT": "it was interrupted",
    "SIGPIPE": "nobody read its output any more",
    "SIGXFSZ": "its file became too large",
    "SIGXCPU": "its computing time ran out",
}


def tell_end(result: ProgramResult, timeout_s: float) -> str:
    """Exit code, signal or limit as half a sentence.

    Args:
        result: How it ended.
        timeout_s: The seconds that it had.
    """
    code = result.exit_code
    if code is None:
        return f"ended by us: {result.why}" if result.why else _tell_limit(timeout_s)
    if code < 0:
        return f"ended by {_tell_signal(-code)}"
    if code > _BY_SIGNAL and _name(code - _BY_SIGNAL) is not None:
        return f"exit code {code}, which mostly means {_tell_signal(code - _BY_SIGNAL)}"
    if code in _SHELL_CODES:
        return f"exit code {code}, which mostly means that {_SHELL_CODES[code]}"
    return f"exit code {code}"


def _tell_limit(timeout_s: float) -> str:
    return f"ended by us after {timeout_s:g} s, its time limit"


def _tell_signal(number: int) -> str:
    name = _name(number)
    if name is None:
        return f"signal {number}"
    return f"{name} ({_MEANS[name]})" if name in _MEANS else name


def _name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None

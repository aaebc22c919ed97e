"""Sentences about paths that can't be used, the same for every workspace."""

import errno
from typing import Final

from towline_agent.errors import ToolDenied, ToolError

__all__ = ["denied_outside", "failed_path", "failed_program", "too_big"]

_PATH_REASONS: Final = {
    errno.ENOENT: "There is no file or folder {path!r}; list its folder to see what is there.",
    errno.EISDIR: "{path!r} is a folder, not a file; list it instead.",
    errno.ENOTDIR: "{path!r} is no folder, or a part of it is none; list the folder above it.",
    errno.EACCES: "{path!r} may not be read: its permissions forbid it.",
    errno.EPERM: "{path!r} may not be read: the system forbids it.",
    errno.ELOOP: "{path!r} is a symbolic link that leads round in a circle; use another path.",
    errno.ENAMETOOLONG: "The path is longer than the system allows; use a shorter one.",
    errno.ENXIO: "{path!r} is no ordinary file; only files and folders can be read.",
}
"""What the system says, as a sentence with a next step."""

_PROGRAM_REASONS: Final = {
    errno.ENOENT: "There is no program {name!r} here; check its name, or use its path.",
    errno.EACCES: "{name!r} can't be run: it is no executable file.",
    errno.ENOEXEC: "{name!r} can't be run: it is in no format the system can execute. If it is a "
    "script, name its interpreter first.",
    errno.E2BIG: "The command line is longer than the system allows; pass less.",
}


def failed_path(path: str, error: OSError) -> ToolError:
    """The error for a path that the system refuses."""
    reason = _PATH_REASONS.get(error.errno or 0)
    if reason is None:
        return ToolError(f"{path!r} can't be used: {error.strerror or 'unknown error'}.")
    return ToolError(reason.format(path=path))


def failed_program(name: str, number: int, strerror: str) -> ToolError:
    """The error for a program that can't be started."""
    reason = _PROGRAM_REASONS.get(number)
    if reason is None:
        return ToolError(f"{name!r} can't be run: {strerror}.")
    return ToolError(reason.format(name=name))


def denied_outside(path: str, root: str) -> ToolDenied:
    """The error for a path that leads outside (A5.3)."""
    return ToolDenied(f"{path!r} leads outside the folder {root!r}; use a path inside it.")


def too_big(path: str, limit: int) -> ToolError:
    """The error for a file over the bound of one read."""
    return ToolError(
        f"{path!r} is larger than {limit // 2**20} MiB, too large to read at once; look at parts "
        "of it with a program, such as `head`, `tail` or `grep`."
    )

"""Sentences about paths that can't be used, the same for every workspace."""

import errno
from typing import Final

from towline_agent.errors import ToolDenied, ToolError

__all__ = [
    "changed_since",
    "denied_outside",
    "failed_edit",
    "failed_path",
    "failed_program",
    "failed_undo",
    "holds_too_much",
    "moved_into_itself",
    "name_in_line",
    "stands_already",
    "too_big",
    "too_big_to_write",
    "too_many",
    "whole_root",
]

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

_EDIT_REASONS: Final = {
    errno.EACCES: "{path!r} may not be changed: its permissions forbid it. If it has to be, change "
    "them first with a program, such as `chmod`.",
    errno.EPERM: "{path!r} may not be changed: the system forbids it.",
    errno.EROFS: "{path!r} may not be changed: it lies on a disk that can only be read.",
    errno.ENOSPC: "The disk is full, so nothing was changed; free some space and try again.",
    errno.EDQUOT: "The disk quota is used up, so nothing was changed; free some space and try "
    "again.",
    errno.EXDEV: "{path!r} lies on another disk than its target; copy it with a program, such as "
    "`cp -a`, then remove it.",
    errno.EBUSY: "{path!r} is in use by the system, so it stays where it is.",
    errno.ENXIO: "{path!r} is no ordinary file, so it is not changed; use a program for it.",
}
"""The same for what is to be changed, where it differs."""

_PROGRAM_REASONS: Final = {
    errno.ENOENT: "There is no program {name!r} here; check its name, or use its path.",
    errno.EACCES: "{name!r} can't be run: it is no executable file.",
    errno.ENOEXEC: "{name!r} can't be run: it is in no format the system can execute. If it is a "
    "script, name its interpreter first.",
    errno.E2BIG: "The command line is longer than the system allows; pass less.",
}


def name_in_line(path: str) -> str:
    """A path as a part of one line: what a name holds must not look like lines of its own."""
    return path.replace("\n", "\\n").replace("\r", "\\r")


def failed_path(path: str, error: OSError) -> ToolError:
    """The error for a path that the system refuses."""
    reason = _PATH_REASONS.get(error.errno or 0)
    if reason is None:
        return ToolError(f"{path!r} can't be used: {error.strerror or 'unknown error'}.")
    return ToolError(reason.format(path=path))


def failed_edit(path: str, error: OSError) -> ToolError:
    """The error for a path that the system does not let us change."""
    reason = _EDIT_REASONS.get(error.errno or 0)
    return failed_path(path, error) if reason is None else ToolError(reason.format(path=path))


def failed_undo(paths: list[str]) -> ToolError:
    """The error for edits that failed and could not all be taken back."""
    named = ", ".join(map(repr, paths))
    return ToolError(
        f"The edits failed, and these could not be made as they were: {named}. Look at them before "
        "you go on; what stood there may be beside them under a name that begins with `.towline-`."
    )


def changed_since(path: str) -> ToolError:
    """The error for a file that is not what an edit expects (A5.63)."""
    return ToolError(f"{path!r} changed since you looked; read it again before you change it.")


def stands_already(path: str) -> ToolError:
    """The error for a target where something stands."""
    return ToolError(
        f"There is something at {path!r} already; choose another path, or remove it first."
    )


def holds_too_much(path: str, names: int, size: int) -> ToolError:
    """The error for a folder that holds more than could be undone."""
    return ToolError(
        f"{path!r} holds more than {names} names or {size // 2**20} MiB, too much to be undone "
        "later; use a program for it, such as `mv` or `rm`, or take parts of it."
    )


def moved_into_itself(source: str, target: str) -> ToolError:
    """The error for a folder that would be moved below itself."""
    return ToolError(
        f"{source!r} can't be moved into itself; choose another target than {target!r}."
    )


def whole_root(path: str) -> ToolError:
    """The error for an edit that would take the root itself away."""
    return ToolError(f"{path!r} is the whole folder that you work in; name a part of it.")


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


def too_big_to_write(path: str, limit: int) -> ToolError:
    """The error for content over the bound of one write."""
    return ToolError(
        f"The content for {path!r} is larger than {limit // 2**20} MiB, too large to be written at "
        "once; have a program write it."
    )


def too_many(count: int, limit: int) -> ToolError:
    """The error for a batch with too many edits."""
    return ToolError(f"{count} edits at once are too many; make {limit} of them at most.")

"""What a turn did to a path, as clients are shown it."""

from typing import Final

from towline_agent.errors import ToolError
from towline_agent.workspaces.diff import diff_bytes
from towline_agent.workspaces.tree import ABSENT_STATE, State
from towline_agent.workspaces.vault import Vault
from towline_protocol import FileChange

__all__ = ["describe_change", "told_path"]

_MOST_BYTES: Final = 2**20  # a file that is larger is told without its diff


def told_path(path: str) -> str:
    """A path as it can be told: file systems have names that no text can hold."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def describe_change(vault: Vault, path: str, before: State, after: State | None) -> FileChange:
    """The change from one state to another, with the diff of kept bytes.

    Args:
        vault: Where the bytes are.
        path: The path.
        before: What stood there.
        after: What stands there since; `None` when a crash came before that was known.
    """
    name = told_path(path)
    if after is None:
        return FileChange(path=name, kind="changed", before=before.hash or None)
    kind = "changed"
    if ABSENT_STATE in (before, after):
        kind = "created" if before == ABSENT_STATE else "deleted"
    diff, truncated = _diff(vault, name, before, after)
    return FileChange(
        path=f"{name}/" if "dir" in (before.kind, after.kind) else name,
        kind=kind,
        before=before.hash or None,
        after=after.hash or None,
        diff=_modes(before, after) + diff or None,
        truncated=truncated,
    )


def _diff(vault: Vault, name: str, before: State, after: State) -> tuple[str, bool]:
    if before.hash == after.hash and before.target == after.target:
        return "", False  # the mode alone
    try:
        made = diff_bytes(_bytes(vault, before), _bytes(vault, after), name)
    except ToolError:  # one side is too large, or not kept any more
        made = None
    return ("", False) if made is None else (made.text, made.truncated)


def _modes(before: State, after: State) -> str:
    if before.kind == after.kind == "file" and before.mode != after.mode:
        return f"old mode {before.mode:o}\nnew mode {after.mode:o}\n"
    return ""


def _bytes(vault: Vault, state: State) -> bytes | None:
    """What a side holds: a file its bytes, a link its target; `None` for all else."""
    if state.kind == "link":
        return state.target
    if state.kind != "file":
        return None
    if (vault.size(state.hash) or 0) > _MOST_BYTES:
        raise ToolError(f"The file {state.hash[:12]!r} is too large to be compared.")
    return b"".join(vault.pieces(state.hash))

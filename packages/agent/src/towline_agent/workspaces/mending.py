"""Makes a batch of edits whole that the end of a process cut: all of it or none (A5.12)."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial

from towline_agent.errors import ToolError
from towline_agent.workspaces.going_back import Step, order_steps
from towline_agent.workspaces.journal import Batch, Outlook, foresee
from towline_agent.workspaces.tree import ABSENT_STATE, State, Tree
from towline_agent.workspaces.vault import Vault

__all__ = ["mend_batch"]


def mend_batch(vault: Vault, tree: Tree, batch: Batch) -> bool:
    """Make the paths that a batch touches as they were, or leave them as they are when all is done.

    It may end at any moment and be begun again: each time it goes by what stands there. What
    neither the batch made so nor found so is somebody's own, and stays as it is; then a revert of
    the turn tells it as a conflict. Then what the batch put aside goes.

    Returns:
        Whether all of the batch is done; else none of it is, but for what somebody else changed.
    """
    folders = {above for path in batch.before for above in (path, _above(path))}
    done = batch.done
    if not done:
        outlook = foresee(batch.before, batch.deeds)
        now = _look(tree, batch.before)
        done = outlook.is_final(now)
        if not done and not _go_back(vault, tree, batch, folders, (outlook, now)):
            return False
    _sweep(tree, folders, batch.prefix)
    return done


def _go_back(
    vault: Vault,
    tree: Tree,
    batch: Batch,
    folders: Iterable[str],
    found: tuple[Outlook, Mapping[str, State]],
) -> bool:
    """Make it as it was; whether what was put aside is of no use any more."""
    outlook, now = found
    steps = order_steps(
        Step(path, now[path], before)
        for path, before in batch.before.items()
        if path in now
        and now[path] != before
        and before.kind != "other"  # a pipe, a socket or a device cannot be made again
        and outlook.is_ours(path, now[path])
        and not _is_own_mode(outlook, path, now[path], before)
    )
    files = {step.target.hash for step in steps if step.target.kind == "file"}
    lost = {hashed for hashed in files if not vault.intact(hashed)}
    if not lost:  # else what stands aside may be all that there is
        _sweep(tree, folders, batch.prefix)
    for step in steps:
        if step.target.hash in lost:
            continue
        data = partial(vault.pieces, step.target.hash)
        with suppress(OSError, ToolError):  # the revert of the turn tells of it
            if tree.look(step.path) == step.now:
                tree.set(step.path, step.target, data, f"{batch.prefix}back")
    return not lost


def _is_own_mode(outlook: Outlook, path: str, now: State, before: State) -> bool:
    """Whether a folder only has another mode, and no edit has made it anew."""
    return now.kind == before.kind == "dir" and ABSENT_STATE not in outlook.possible[path]


def _look(tree: Tree, paths: Iterable[str]) -> dict[str, State]:
    """What stands at each path; one that cannot be read is left out."""
    found: dict[str, State] = {}
    for path in paths:
        try:
            found[path] = tree.look(path)
        except OSError:
            continue
    return found


def _sweep(tree: Tree, folders: Iterable[str], prefix: str) -> None:
    for folder in sorted(folders):
        tree.sweep(folder, prefix)


def _above(path: str) -> str:
    above, slash, _ = path.rpartition("/")
    return above or slash

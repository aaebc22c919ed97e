"""Carries a revert out: all of it or none, whatever moment the process ends at."""

import os
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces.going_back import Step
from towline_agent.workspaces.keeper import read_state, write_state
from towline_agent.workspaces.tree import ABSENT_STATE, Tree
from towline_agent.workspaces.turn_diff import told_path
from towline_agent.workspaces.vault import Vault
from towline_protocol import FileConflict

__all__ = [
    "HalfDone",
    "Journal",
    "Raced",
    "RevertOutcome",
    "begin",
    "carry_out",
    "finish",
    "go_on",
    "read_outcome",
    "unfinished",
]

_RACED: Final = "it was changed while it was being put back"


class RevertOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a revert."""

    turn: str
    """The first turn that is undone."""
    files: tuple[str, ...] = ()
    """The paths that were put back, or went."""
    conflicts: tuple[FileConflict, ...] = ()
    """The paths that somebody else has changed since; they are as they were."""
    unkept: tuple[str, ...] = ()
    """What could not be undone, a sentence each."""
    rewinds: bool = False
    """Whether the conversation goes back as well."""
    number: int = 0
    """How `Checkpoints.told` knows it; 0 when nothing was put back."""


class Raced(Exception):
    """A path is not as it was a moment ago."""


class HalfDone(ToolError):
    """It could neither be done nor taken back; the next start goes on with it."""


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down of a revert before it begins."""

    session: str
    """The conversation."""
    root: str
    """The folder."""
    turns: tuple[int, ...]
    """The rows of the turns that are undone."""
    skipped: tuple[bytes, ...]
    """The paths that stay as they are."""
    outcome: RevertOutcome
    """What will have come of it."""


def begin(
    vault: Vault,
    kept: sqlite3.Connection,
    tree: Tree,
    steps: Sequence[Step],
    journal: Journal,
) -> int:
    """Write down what will be done, and keep what stands in its way, within a transaction.

    Returns:
        Its number.

    Raises:
        Raced: A file has changed meanwhile.
    """
    row = (
        journal.session,
        os.fsencode(journal.root),
        msgspec.msgpack.encode(journal.turns),
        msgspec.msgpack.encode(journal.skipped),
        _write(journal.outcome),
    )
    query = "INSERT INTO revert (session, root, turns, skipped, outcome) VALUES (?, ?, ?, ?, ?)"
    number = kept.execute(query, row).lastrowid or 0
    for step in steps:
        if step.now.kind == "file" and tree.look(step.path, partial(vault.keep, kept)) != step.now:
            raise Raced
        kept.execute(
            "INSERT INTO step (revert, path, now, now_hash, target, target_hash) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                number,
                os.fsencode(step.path),
                write_state(step.now),
                step.now.hash or None,
                write_state(step.target),
                step.target.hash or None,
            ),
        )
    return number


def carry_out(vault: Vault, tree: Tree, number: int, steps: Sequence[Step]) -> None:
    """Do the steps; when one cannot be done, those before it are taken back.

    Raises:
        Raced: A path has changed meanwhile.
        ToolError: The disk refuses.
    """
    done: list[tuple[int, Step]] = []
    try:
        for place, step in enumerate(steps):
            if not tree.look(step.path).same(step.now):
                raise Raced
            done.append((place, step))
            _set(vault, tree, step, _temp(number, place))
    except (OSError, ToolError, Raced) as error:
        _take_back(vault, tree, number, done)
        if isinstance(error, OSError):
            raise ToolError(
                f"Nothing was put back, for {told_path(done[-1][1].path)!r} cannot be: "
                f"{error.strerror}. Mend that, then try again."
            ) from error
        raise


def _take_back(vault: Vault, tree: Tree, number: int, done: Sequence[tuple[int, Step]]) -> None:
    for place, step in reversed(done):
        back = Step(step.path, step.target, step.now)
        try:
            if tree.look(step.path) != step.now:
                _set(vault, tree, back, _temp(number, place))
        except (OSError, ToolError) as error:
            raise HalfDone(
                f"Only some files were put back, for {told_path(step.path)!r} can be set neither "
                f"way ({error}); mend that, then restart towline: it goes on with it."
            ) from error


def finish(vault: Vault, kept: sqlite3.Connection, number: int, outcome: RevertOutcome) -> None:
    """Note that a revert is done, and let go of what it kept for itself, within a transaction."""
    query = "SELECT now_hash, target_hash FROM step WHERE revert = ?"
    hashes = [hashed for row in kept.execute(query, (number,)) for hashed in row]
    kept.execute("DELETE FROM step WHERE revert = ?", (number,))
    kept.execute("UPDATE revert SET done = 1, outcome = ? WHERE id = ?", (_write(outcome), number))
    vault.drop(kept, hashes)


def unfinished(vault: Vault) -> list[tuple[int, Journal]]:
    """The reverts that the end of a process cut, oldest first, by number."""
    query = "SELECT id, session, root, turns, skipped, outcome FROM revert WHERE done = 0"
    with vault.read() as kept:
        rows = kept.execute(f"{query} ORDER BY id").fetchall()
    return [
        (
            number,
            Journal(
                session=session,
                root=os.fsdecode(root),
                turns=msgspec.msgpack.decode(turns, type=tuple[int, ...]),
                skipped=msgspec.msgpack.decode(skipped, type=tuple[bytes, ...]),
                outcome=read_outcome(outcome),
            ),
        )
        for number, session, root, turns, skipped, outcome in rows
    ]


def go_on(vault: Vault, tree: Tree, number: int, journal: Journal) -> Journal:
    """Go on with a revert that the end of a process cut; nobody is asked again.

    What somebody has changed meanwhile stays as it is, and is a conflict.

    Returns:
        What came of it.
    """
    with vault.read() as kept:
        query = "SELECT path, now, target FROM step WHERE revert = ? ORDER BY id"
        rows = kept.execute(query, (number,)).fetchall()
    skipped, conflicts = list(journal.skipped), list(journal.outcome.conflicts)
    files = dict.fromkeys(journal.outcome.files)
    for place, (raw, now, target) in enumerate(rows):
        step = Step(os.fsdecode(raw), read_state(now), read_state(target))
        what = _go_on(vault, tree, step, _temp(number, place))
        if what is not None:
            skipped.append(raw)
            conflicts.append(FileConflict(path=told_path(step.path), what=what))
            files.pop(told_path(step.path), None)
    outcome = msgspec.structs.replace(
        journal.outcome, files=tuple(files), conflicts=tuple(conflicts)
    )
    return msgspec.structs.replace(journal, skipped=tuple(skipped), outcome=outcome)


def _go_on(vault: Vault, tree: Tree, step: Step, temp: str) -> str | None:
    """Do a step that may be done already; what keeps it from that."""
    tree.clear(step.path, temp)
    try:
        there = tree.look(step.path)
        if there == step.target:
            return None
        half = there.kind == "dir" and step.target.kind == "dir"
        if not there.same(step.now) and there != ABSENT_STATE and not half:
            return _RACED
        _set(vault, tree, step, temp)
    except (OSError, ToolError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def _set(vault: Vault, tree: Tree, step: Step, temp: str) -> None:
    tree.set(step.path, step.target, partial(vault.pieces, step.target.hash), temp)


def _temp(number: int, place: int) -> str:
    return f".towline-undo-{number}-{place}"


def read_outcome(data: bytes) -> RevertOutcome:
    """A stored outcome."""
    return msgspec.msgpack.decode(data, type=RevertOutcome)


def _write(outcome: RevertOutcome) -> bytes:
    return msgspec.msgpack.encode(outcome)

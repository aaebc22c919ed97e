"""What turns did to files, kept on disk, and the way back to before them (A5.71 to A5.76)."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces.going_back import RevertPlan, Step, Touch, plan_revert
from towline_agent.workspaces.journal import cut_batches
from towline_agent.workspaces.keeper import TurnKeeper, read_state
from towline_agent.workspaces.reverting import (
    HalfDone,
    Journal,
    Raced,
    RevertOutcome,
    begin,
    carry_out,
    finish,
    go_on,
    read_outcome,
    unfinished,
)
from towline_agent.workspaces.tree import State, Tree
from towline_agent.workspaces.turn_diff import describe_change, told_path
from towline_agent.workspaces.vault import Vault
from towline_protocol import FileChange, FileConflict

__all__ = ["Checkpoints", "KeptTurn", "RevertOutcome"]

CAP_BYTES: Final = 2 * 2**30
"""Bytes that are kept at most; what is oldest makes room."""

_TRIES: Final = 3  # how often a revert is planned while files change under it
_LISTED: Final = 50  # commands of a turn that are listed
_FORGOTTEN: Final = "what an earlier turn did was removed to make room"
_COPY_TOUCHES: Final = """
INSERT INTO touch (turn, path, before, before_hash, after, after_hash, stamp, undone)
SELECT ?, path, before, before_hash, after, after_hash, stamp, undone
FROM touch WHERE turn = ? ORDER BY id
"""
_COPY_COMMANDS: Final = """
INSERT INTO command (turn, line, paths) SELECT ?, line, paths FROM command
WHERE turn = ? ORDER BY id
"""


class KeptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that one can go back to before."""

    turn: str
    """The turn."""
    time_ms: int
    """When it first touched a file or ran a command, in milliseconds since 1970."""
    files: int
    """Paths that it changed and that were not put back since."""
    unkept: tuple[str, ...] = ()
    """What it did that cannot be undone, a sentence each."""


class Checkpoints:
    """What the turns of all conversations did to files.

    Everything here blocks; it belongs in a thread. Kept are the bytes and modes of files, links and
    folders; not their owners, times and further attributes.

    ```python
    checkpoints = Checkpoints(data / "checkpoints", now_ms=clock.now_ms)
    workspace = LocalWorkspace(root, keeper=checkpoints.keeper("ses_1", "trn_1", root))
    ...
    outcome = checkpoints.revert("ses_1", ["trn_1"])
    ```

    Args:
        folder: Where it is kept, outside of every root; made at the first touch.
        now_ms: Milliseconds since 1970.
        on_write: Called with the path before each change that a revert or a mending makes, with
            none before a revert's end; a seam for crash tests.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        now_ms: Callable[[], int],
        on_write: Callable[[str], None] = lambda path: None,
    ) -> None:
        self.vault = Vault(folder)
        """Where it is kept."""
        self._now_ms = now_ms
        self._on_write = on_write
        self._allows: Callable[[str], bool] = os.path.isdir

    @property
    def there(self) -> bool:
        """Whether anything was ever kept here."""
        return self.vault.there

    def keeper(self, session: str, turn: str, root: str) -> TurnKeeper:
        """What keeps the files that a turn touches; nothing is written before it does."""
        return TurnKeeper(self.vault, self._tree(root), session, turn, self._now_ms)

    def turns(self, session: str) -> list[KeptTurn]:
        """The turns of a conversation that did something, oldest first.

        Raises:
            ToolError: It cannot be read.
        """
        if not self.vault.there:
            return []
        query = (
            "SELECT id, turn, time_ms, (SELECT count(DISTINCT path) FROM touch WHERE touch.turn = "
            "turn.id AND undone = 0 AND (after IS NULL OR after != before)) FROM turn "
            "WHERE session = ? AND state = 'kept' ORDER BY id"
        )
        with self.vault.read() as kept:
            rows = kept.execute(query, (session,)).fetchall()
            found = [
                KeptTurn(turn=turn, time_ms=time, files=files, unkept=tuple(_commands(kept, id_)))
                for id_, turn, time, files in rows
            ]
        return [turn for turn in found if turn.files or turn.unkept]

    def diff(self, session: str, turn: str, start: int, limit: int) -> tuple[list[FileChange], int]:
        """What a turn did to files, one page by path.

        Args:
            session: The conversation.
            turn: The turn.
            start: How many paths to leave out.
            limit: Paths at most.

        Returns:
            The changes, and how many paths there are in all.

        Raises:
            ToolError: It cannot be read.
        """
        if not self.vault.there:
            return [], 0
        query = (
            "SELECT path, before, after FROM touch JOIN turn ON turn.id = touch.turn "
            "WHERE session = ? AND turn.turn = ? ORDER BY path, touch.id"
        )
        ends: dict[str, tuple[State, State | None]] = {}
        with self.vault.read() as kept:
            for path, before, after in kept.execute(query, (session, turn)):
                first = ends.get(os.fsdecode(path), (read_state(before), None))[0]
                ends[os.fsdecode(path)] = (first, None if after is None else read_state(after))
        changed = [(path, *both) for path, both in ends.items() if both[0] != both[1]]
        page = changed[start : start + limit]
        return [
            describe_change(self.vault, path, before, after) for path, before, after in page
        ], len(changed)

    def revert(
        self,
        session: str,
        turns: Sequence[str],
        *,
        skip_conflicts: bool = False,
        rewinds: bool = False,
    ) -> RevertOutcome:
        """Put files back to what they were before the first of some turns: all of them or none.

        A path that is not as the last of these turns left it is a conflict, and stays as it is.
        With one conflict nothing is put back, unless they are to be skipped.

        Args:
            session: The conversation.
            turns: The first turn to undo, and all later ones of the conversation, in order.
            skip_conflicts: Whether to put back the others when there are conflicts.
            rewinds: Kept with the outcome, for who tells of it.

        Raises:
            ToolError: It cannot be done; the files are as they were.
        """
        empty = RevertOutcome(turn=turns[0])
        if not self.vault.there:
            return empty
        # One that the disk let neither be done nor undone.
        if waits := self._mend(session):
            raise ToolError(
                f"Nothing was put back: edits that a crash cut in {waits[0]!r} wait, since that is "
                "no folder that may be worked in now. Put the folder back where it was, and start "
                "the server again."
            )
        for _ in range(_TRIES):
            try:
                return self._try(session, empty, turns, skip_conflicts, rewinds)
            except Raced:
                continue
        raise ToolError(
            "Nothing was put back, for the files are being changed right now; try again when what "
            "changes them is done."
        )

    def untold(self, session: str) -> list[RevertOutcome]:
        """Reverts whose caller has not said `told`, oldest first: its process may have ended."""
        if not self.vault.there:
            return []
        query = "SELECT id, outcome FROM revert WHERE session = ? AND done = 1 ORDER BY id"
        with self.vault.read() as kept:
            rows = kept.execute(query, (session,)).fetchall()
        return [msgspec.structs.replace(read_outcome(data), number=id_) for id_, data in rows]

    def told(self, outcome: RevertOutcome) -> None:
        """Forget an outcome: whoever had to know does."""
        if outcome.number:
            with self.vault.write(lasting=False) as kept:
                kept.execute("DELETE FROM revert WHERE id = ? AND done = 1", (outcome.number,))

    def recover(self, allows: Callable[[str], bool] | None = None) -> None:
        """Go on with what the end of a process cut; once, before anything else.

        A batch of edits is as if it had not begun, or wholly done, and nothing of it stands aside;
        a revert is done.

        Args:
            allows: Whether a folder may be written in; asked by a later `revert` too, before it
                ends what was cut. What was cut in another one stays as it is, and all that is kept
                for it too: it waits for a start that allows it. `None` allows each that is there.
        """
        self._allows = allows or self._allows
        if not self.vault.there:
            return
        self._mend()
        for number, journal in unfinished(self.vault):
            if self._allows(journal.root):
                done = go_on(self.vault, self._tree(journal.root), number, journal)
                self._finish(number, done)

    def copy(self, source: str, target: str, turns: Iterable[str]) -> None:
        """Let a conversation that goes on from another one go back to before its turns as well.

        Args:
            source: The other one.
            target: The one that goes on.
            turns: The turns that it has of it.
        """
        if not self.vault.there:
            return
        with self.vault.write() as kept:
            wanted = set(turns)
            query = "SELECT id, turn, root, time_ms, state FROM turn WHERE session = ? ORDER BY id"
            for id_, turn, root, time_ms, state in kept.execute(query, (source,)).fetchall():
                if turn not in wanted:
                    continue
                row = (target, turn, root, time_ms, state)
                made = kept.execute(
                    "INSERT INTO turn (session, turn, root, time_ms, state) VALUES (?, ?, ?, ?, ?)",
                    row,
                ).lastrowid
                kept.execute(_COPY_TOUCHES, (made, id_))
                kept.execute(_COPY_COMMANDS, (made, id_))

    def forget(self, session: str) -> None:
        """Remove all that is kept for a conversation."""
        if not self.vault.there:
            return
        with self.vault.write() as kept:
            kept.execute("DELETE FROM turn WHERE session = ?", (session,))
            kept.execute("DELETE FROM revert WHERE session = ?", (session,))
            self.vault.drop(kept)
        self.vault.shrink()

    def trim(self, most: int = CAP_BYTES) -> int:
        """Make room: forget the oldest turns of the conversations that rest longest.

        A turn that is forgotten cannot be undone; a revert that would have to says so.

        Args:
            most: Bytes to stay below; the newest turn stays, however large.

        Returns:
            How many turns were forgotten.
        """
        forgotten = 0
        query = (
            "SELECT id FROM turn WHERE state != 'forgotten' AND id != (SELECT max(id) FROM turn) "
            "AND NOT EXISTS (SELECT 1 FROM batch WHERE batch.session = turn.session AND "
            "batch.turn = turn.turn) "
            "ORDER BY (SELECT max(id) FROM turn AS other WHERE other.session = turn.session), id "
            "LIMIT 1"
        )
        while self.vault.there and self.vault.bytes_used() > most:
            with self.vault.write() as kept:
                row = kept.execute(query).fetchone()
                if row is None:
                    break
                kept.execute("DELETE FROM touch WHERE turn = ?", row)
                kept.execute("DELETE FROM command WHERE turn = ?", row)
                kept.execute("UPDATE turn SET state = 'forgotten' WHERE id = ?", row)
                self.vault.drop(kept)
            forgotten += 1
        if forgotten:
            self.vault.shrink()
        return forgotten

    def damages(self) -> list[str]:
        """What is wrong with what is kept, a sentence each; reads all of it."""
        return self.vault.damages() if self.vault.there else []

    def close(self) -> None:
        """Let go of the file."""
        self.vault.close()

    def _mend(self, session: str | None = None) -> list[str]:
        """Make the batches of edits whole that were cut; the folders where it is not allowed."""
        with self.vault.read() as kept:
            cut = cut_batches(kept, session)
        cut = [batch for batch in cut if batch.number not in self.vault.live]
        turns = dict.fromkeys((batch.session, batch.turn, batch.root) for batch in cut)
        waits: list[str] = []
        for named, turn, root in turns:
            if self._allows(root):
                self.keeper(named, turn, root).mend()
            else:
                waits.append(root)
        return waits

    def _tree(self, root: str) -> Tree:
        return Tree(root, on_write=self._on_write)

    def _try(
        self,
        session: str,
        empty: RevertOutcome,
        turns: Sequence[str],
        skip_conflicts: bool,
        rewinds: bool,
    ) -> RevertOutcome:
        with self.vault.write() as kept:
            rows = _turn_rows(kept, session, turns)
            if not rows:
                return empty
            tree = self._tree(os.fsdecode(rows[0][1]))
            plan = self._plan(kept, tree, [row[0] for row in rows])
            outcome = msgspec.structs.replace(
                empty,
                conflicts=_explain(kept, plan, rows),
                unkept=(*plan.left, *_unkept(kept, rows)),
                rewinds=rewinds,
            )
            if plan.conflicts and not skip_conflicts:
                return outcome
            journal = Journal(
                session=session,
                root=tree.root,
                turns=tuple(row[0] for row in rows),
                skipped=tuple(os.fsencode(conflict.path) for conflict in plan.conflicts),
                outcome=msgspec.structs.replace(outcome, files=_paths(plan)),
            )
            if not plan.steps:
                _mark_undone(kept, journal)
                return outcome
            number = begin(self.vault, kept, tree, plan.steps, journal)
        self._carry_out(tree, number, plan.steps)
        self._finish(number, journal)
        return msgspec.structs.replace(journal.outcome, number=number)

    def _carry_out(self, tree: Tree, number: int, steps: Sequence[Step]) -> None:
        try:
            carry_out(self.vault, tree, number, steps)
        except HalfDone:
            raise
        except (Raced, ToolError):
            with self.vault.write() as kept:
                kept.execute("DELETE FROM revert WHERE id = ?", (number,))
                self.vault.drop(kept, [step.now.hash for step in steps])
            raise

    def _finish(self, number: int, journal: Journal) -> None:
        self._on_write("")
        with self.vault.write() as kept:
            _mark_undone(kept, journal)
            finish(self.vault, kept, number, journal.outcome)

    def _plan(self, kept: sqlite3.Connection, tree: Tree, turns: Sequence[int]) -> RevertPlan:
        touches: dict[str, list[Touch]] = {}
        for turn in turns:
            query = (
                "SELECT path, before, after FROM touch WHERE turn = ? AND undone = 0 ORDER BY id"
            )
            for raw, before, after in kept.execute(query, (turn,)):
                path = os.fsdecode(raw)
                stood = None if after is None else read_state(after)
                touches.setdefault(path, []).append(Touch(path, read_state(before), stood))
        return plan_revert(touches, tree.look, tree.names, self.vault.intact)


def _turn_rows(
    kept: sqlite3.Connection, session: str, turns: Sequence[str]
) -> list[tuple[int, bytes, str]]:
    """Number, folder and state of the turns that did something, oldest first."""
    wanted = set(turns)
    query = "SELECT id, turn, root, state FROM turn WHERE session = ? ORDER BY id"
    rows = kept.execute(query, (session,))
    return [(id_, root, state) for id_, turn, root, state in rows if turn in wanted]


def _mark_undone(kept: sqlite3.Connection, journal: Journal) -> None:
    for turn in journal.turns:
        query = "SELECT id, path FROM touch WHERE turn = ? AND undone = 0"
        rows = kept.execute(query, (turn,)).fetchall()
        done = [(id_,) for id_, path in rows if path not in journal.skipped]
        kept.executemany("UPDATE touch SET undone = 1 WHERE id = ?", done)
        if len(done) == len(rows):
            query = "UPDATE turn SET state = 'undone' WHERE id = ? AND state = 'kept'"
            kept.execute(query, (turn,))


def _commands(kept: sqlite3.Connection, turn: int) -> list[str]:
    """The commands of a turn in words, with the files of the conversation that they changed."""
    query = "SELECT line, paths FROM command WHERE turn = ? ORDER BY id LIMIT ?"
    found: dict[str, None] = {}
    for line, data in kept.execute(query, (turn, _LISTED)):
        paths = _paths_of(data)
        changed = f" (it changed {', '.join(paths)})" if paths else ""
        found[f"what the command did: {line}{changed}"] = None
    return list(found)


def _unkept(kept: sqlite3.Connection, rows: Sequence[tuple[int, bytes, str]]) -> list[str]:
    found = [line for id_, _, state in rows if state == "kept" for line in _commands(kept, id_)]
    if any(state == "forgotten" for _, _, state in rows):
        found.append(_FORGOTTEN)
    return list(dict.fromkeys(found))


def _explain(
    kept: sqlite3.Connection, plan: RevertPlan, turns: Sequence[tuple[int, bytes, str]]
) -> tuple[FileConflict, ...]:
    """The conflicts; those that a command made name it."""
    if not plan.conflicts:
        return ()
    by: dict[str, str] = {}
    for id_, _, _ in turns:
        query = "SELECT line, paths FROM command WHERE turn = ? ORDER BY id"
        rows: list[tuple[str, bytes]] = kept.execute(query, (id_,)).fetchall()
        for line, data in rows:
            by.update(dict.fromkeys(_paths_of(data), line))
    return tuple(_named(conflict, by.get(told_path(conflict.path))) for conflict in plan.conflicts)


def _named(conflict: FileConflict, line: str | None) -> FileConflict:
    what = conflict.what if line is None else f"{conflict.what}, by the command: {line}"
    return FileConflict(path=told_path(conflict.path), what=what)


def _paths(plan: RevertPlan) -> tuple[str, ...]:
    return tuple(sorted(told_path(step.path) for step in plan.steps))


def _paths_of(data: bytes) -> list[str]:
    return msgspec.json.decode(data, type=list[str])

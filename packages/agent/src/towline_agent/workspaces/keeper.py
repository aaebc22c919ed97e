"""Keeps what stands at each path before a turn first touches it, and notes what stands after."""

import os
import shlex
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import Intent, Keeper
from towline_agent.workspaces.journal import (
    Batch,
    add_part,
    close_batch,
    cut_batches,
    mark_done,
    open_batch,
)
from towline_agent.workspaces.mending import mend_batch
from towline_agent.workspaces.threads import FILES, run_to_the_end
from towline_agent.workspaces.tree import State, Tree
from towline_agent.workspaces.turn_diff import told_path
from towline_agent.workspaces.vault import Vault

__all__ = ["EDIT_MAX_BYTES", "TurnKeeper", "read_state", "run_noted", "write_state"]

EDIT_MAX_BYTES: Final = 512 * 2**20
"""Bytes that one edit may touch: more than source trees hold, less than disks do."""

_T = TypeVar("_T")

_WATCHED: Final = 2000  # paths that are looked at after a program, the newest first
_SHELLS: Final = ("bash", "sh")
_LINE_CHARS: Final = 500  # of a command

_states: Final = msgspec.msgpack.Decoder(State)


def write_state(state: State) -> bytes:
    """A state as it is stored."""
    return msgspec.msgpack.encode(state)


def read_state(data: bytes) -> State:
    """A stored state."""
    return _states.decode(data)


def _line_of(argv: tuple[str, ...]) -> str:
    """A command as a person knows it: of one for a shell only what it was given to do."""
    if len(argv) == 3 and argv[1] == "-c" and Path(argv[0]).name in _SHELLS:
        return argv[2]
    return shlex.join(argv)


async def run_noted(
    keeper: Keeper | None, argv: tuple[str, ...], work: Coroutine[Any, Any, _T]
) -> _T:
    """Run a program with a note of it for the keeper; a cancel waits for the note's end.

    Args:
        keeper: Told of it; `None` for nobody.
        argv: The program and its arguments.
        work: Runs it.

    Raises:
        ToolError: It cannot be noted, and was not begun.
    """
    if keeper is None:
        return await work
    try:
        number = await FILES.run(partial(keeper.ran, _line_of(argv)))
    except BaseException:
        work.close()
        raise
    try:
        return await work
    finally:
        with suppress(ToolError):  # it is noted; only what it changed is not known
            await run_to_the_end(FILES.run(partial(keeper.ended, number)))


class _Row(NamedTuple):
    id: int
    before: State
    after: State | None
    stamp: str


class TurnKeeper:
    """The `Keeper` of one turn of one conversation; also told of the programs it runs.

    What a person or a program did to a path in between, even within the turn, begins a new touch:
    a revert sees that it was somebody else and leaves the path alone.

    Args:
        vault: Where it is kept.
        tree: The folder that the turn works in.
        session: The conversation.
        turn: The turn.
        now_ms: Milliseconds since 1970.
    """

    def __init__(
        self, vault: Vault, tree: Tree, session: str, turn: str, now_ms: Callable[[], int]
    ) -> None:
        self._vault = vault
        self._tree = tree
        self._session = session
        self._turn = turn
        self._now_ms = now_ms
        self._batch: tuple[str, int] | None = None
        """The batch that goes on: how it names what it puts aside, and its number."""

    def before(self, paths: tuple[str, ...], intent: Intent) -> None:
        """Keep what stands at these, and what is meant to be; durable when it returns.

        Raises:
            ToolError: It cannot be kept, or is too much.
        """
        if self._batch is not None and self._batch[0] != intent.prefix:
            self.mend()  # the last one could not be undone
            self._batch = None
        with self._vault.write(lasting=self._must_last(paths, intent)) as kept:
            turn = self._row(kept)
            keep = partial(self._keep, kept, _Room(EDIT_MAX_BYTES))
            states = [(path, self._keep_path(kept, turn, path, keep)) for path in paths]
            batch = self._batch or (intent.prefix, self._open(kept, intent.prefix))
            add_part(kept, batch[1], states, intent.deeds)
        self._batch = batch
        self._vault.live.add(batch[1])

    def after(self, paths: tuple[str, ...]) -> None:
        """Take note of what stands there now.

        Raises:
            ToolError: It cannot be kept.
        """
        with self._vault.write(lasting=False) as kept:
            self._note(kept, paths)
            if self._batch is not None:
                mark_done(kept, self._batch[1])

    def settled(self, *, whole: bool) -> None:
        """Forget what was written down of the batch; one that is not whole waits to be mended.

        Raises:
            ToolError: It cannot be; the next start does it.
        """
        if self._batch is None:
            return
        self._vault.live.discard(self._batch[1])
        if whole:
            with self._vault.write(lasting=False) as kept:
                close_batch(kept, self._batch[1])
            self._batch = None

    def mend(self) -> None:
        """Make whole what the end of a process, or a disk that refused, left of batches of a turn.

        Raises:
            ToolError: It cannot be read or noted; it is tried again at the next start.
        """
        with self._vault.read() as kept:
            cut = cut_batches(kept, self._session)
        for batch in cut:
            if batch.turn == self._turn and batch.number not in self._vault.live:
                self._mend(batch)

    def _mend(self, batch: Batch) -> None:
        done = mend_batch(self._vault, self._tree, batch)
        with self._vault.write() as kept:
            if not done:
                self._forget_undone(kept, batch)
            elif not batch.done:
                self._note(kept, batch.before)
            close_batch(kept, batch.number)

    def _forget_undone(self, kept: sqlite3.Connection, batch: Batch) -> None:
        """What is as it was was not touched."""
        turn = self._find(kept)
        for path, before in batch.before.items():
            with suppress(OSError):
                if turn is not None and self._tree.look(path) == before:
                    query = "DELETE FROM touch WHERE turn = ? AND path = ? AND after IS NULL"
                    kept.execute(query, (turn, os.fsencode(path)))
        self._vault.drop(kept, [before.hash for before in batch.before.values()])

    def _must_last(self, paths: tuple[str, ...], intent: Intent) -> bool:
        """Whether what is written down must outlive a loss of power too.

        One file that is kept already is whole by itself, the old one or the new one.
        """
        if self._batch is not None or len(paths) != 1 or len(intent.deeds) != 1:
            return True
        with self._vault.read() as kept:
            turn = self._find(kept)
            last = None if turn is None else self._last(kept, turn, paths[0])
        return last is None or not last.stamp or last.stamp != self._tree.stamp(paths[0])

    def _open(self, kept: sqlite3.Connection, prefix: str) -> int:
        return open_batch(kept, self._session, self._turn, self._tree.root, prefix)

    def _keep_path(
        self, kept: sqlite3.Connection, turn: int, path: str, keep: Callable[[int], str]
    ) -> State:
        """Keep what stands at a path, unless the turn knows it so; gives it."""
        last = self._last(kept, turn, path)
        known = None if last is None else last.after or last.before
        if last is None or not last.stamp or last.stamp != self._tree.stamp(path):
            now = self._tree.look(path, keep)
            if now != known:
                self._insert(kept, turn, path, now)
            return now
        return last.after or last.before

    def _note(self, kept: sqlite3.Connection, paths: Iterable[str]) -> None:
        """Take note of what stands at paths now."""
        turn = self._find(kept)
        keep = partial(self._vault.keep, kept)
        for path in paths:
            last = None if turn is None else self._last(kept, turn, path)
            if last is None:
                continue
            stamp = self._tree.stamp(path)
            now = self._tree.look(path, keep)
            if now == last.after and (stamp == last.stamp or now.kind == "dir"):
                continue
            row = (write_state(now), now.hash or None, stamp, last.id)
            kept.execute("UPDATE touch SET after = ?, after_hash = ?, stamp = ? WHERE id = ?", row)
            if last.after is not None:
                self._vault.drop(kept, [last.after.hash])

    def ran(self, line: str) -> int:
        """Take note of a command before it begins: what it does cannot be undone (A5.74).

        Returns:
            Its number, for `ended`.
        """
        with self._vault.write(lasting=False) as kept:
            row = (self._row(kept), line[:_LINE_CHARS].encode("utf-8", "replace").decode())
            done = kept.execute("INSERT INTO command (turn, line) VALUES (?, ?)", row)
            return done.lastrowid or 0

    def ended(self, number: int) -> tuple[str, ...]:
        """Find out which of the files that this conversation has edited a command changed.

        Args:
            number: The command.

        Returns:
            Their paths.
        """
        with self._vault.write(lasting=False) as kept:
            paths = tuple(self._changed(kept))
            if paths:
                row = (msgspec.json.encode([told_path(path) for path in paths]), number)
                kept.execute("UPDATE command SET paths = ? WHERE id = ?", row)
        return paths

    def _changed(self, kept: sqlite3.Connection) -> Iterator[str]:
        """The paths that are not as the newest touch left them; cheap where nothing changed."""
        query = (
            "SELECT max(touch.id), path, before, after, stamp FROM touch "
            "JOIN turn ON turn.id = touch.turn WHERE session = ? AND undone = 0 "
            "GROUP BY path ORDER BY max(touch.id) DESC LIMIT ?"
        )
        for row in kept.execute(query, (self._session, _WATCHED)).fetchall():
            path, last = os.fsdecode(row[1]), _read_row((row[0], *row[2:]))
            if last.after is None or last.after.kind == "dir":
                continue
            stamp = self._tree.stamp(path)
            if stamp == last.stamp:
                continue
            try:
                now = self._tree.look(path)
            except OSError:
                now = None
            if now == last.after:
                kept.execute("UPDATE touch SET stamp = ? WHERE id = ?", (stamp, last.id))
            else:
                yield path

    def _keep(self, kept: sqlite3.Connection, room: "_Room", fd: int) -> str:
        room.take(os.fstat(fd).st_size)
        return self._vault.keep(kept, fd)

    def _find(self, kept: sqlite3.Connection) -> int | None:
        """The turn's row, if it did something yet and nobody has forgotten it."""
        query = "SELECT id FROM turn WHERE session = ? AND turn = ?"
        found = kept.execute(query, (self._session, self._turn)).fetchone()
        return None if found is None else found[0]

    def _row(self, kept: sqlite3.Connection) -> int:
        found = self._find(kept)
        if found is not None:
            return found
        row = (self._session, self._turn, os.fsencode(self._tree.root), self._now_ms())
        done = kept.execute(
            "INSERT INTO turn (session, turn, root, time_ms) VALUES (?, ?, ?, ?)", row
        )
        return done.lastrowid or 0

    def _last(self, kept: sqlite3.Connection, turn: int, path: str) -> _Row | None:
        query = (
            "SELECT id, before, after, stamp FROM touch WHERE turn = ? AND path = ? "
            "ORDER BY id DESC LIMIT 1"
        )
        row = kept.execute(query, (turn, os.fsencode(path))).fetchone()
        return None if row is None else _read_row(row)

    def _insert(self, kept: sqlite3.Connection, turn: int, path: str, now: State) -> None:
        row = (turn, os.fsencode(path), write_state(now), now.hash or None)
        kept.execute("INSERT INTO touch (turn, path, before, before_hash) VALUES (?, ?, ?, ?)", row)


class _Room:
    """Bytes that one edit may still touch."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ToolError(
                f"This touches more than {EDIT_MAX_BYTES // 2**20} MiB, too much to keep for an "
                "undo; do it piece by piece, or by a program if it need not be undone."
            )


def _read_row(row: tuple[Any, ...]) -> _Row:
    id_, before, after, stamp = row
    return _Row(id_, read_state(before), None if after is None else read_state(after), stamp)

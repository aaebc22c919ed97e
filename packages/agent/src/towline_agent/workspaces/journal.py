"""What a batch of edits is about to do, written down before it begins (A5.12).

It stands beside the checkpoints and is written in their transactions, so that it costs no wait for
the disk of its own.
"""

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from towline_agent.workspaces.base import Deed
from towline_agent.workspaces.tree import ABSENT_STATE, State

__all__ = [
    "ANY_MODE",
    "Batch",
    "Outlook",
    "add_part",
    "close_batch",
    "cut_batches",
    "foresee",
    "mark_done",
    "open_batch",
]

ANY_MODE: Final = -1
"""The mode of a file that the system will give the usual one."""


class _Deed(msgspec.Struct, frozen=True, array_like=True):
    number: int
    kind: str
    path: bytes
    target: bytes
    hash: str
    mode: int | None
    expect: str | None


class _Part(msgspec.Struct, frozen=True, array_like=True):
    paths: tuple[tuple[bytes, State], ...]
    deeds: tuple[_Deed, ...]


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of edits as it was written down."""

    number: int
    """Its number."""
    session: str
    """The conversation."""
    turn: str
    """The turn."""
    root: str
    """The folder."""
    prefix: str
    """How the names begin under which it puts things aside."""
    done: bool
    """Whether all of it was done, so that only what stands aside may have to go."""
    before: Mapping[str, State]
    """What stood at each path that it touches."""
    deeds: tuple[Deed, ...]
    """Its edits, in order."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What edits make of paths."""

    works: bool
    """Whether all of them can be done, one after the other; else they are undone, as a whole."""
    final: Mapping[str, State]
    """What stands there when all are done."""
    possible: Mapping[str, frozenset[State]]
    """What may stand there on the way, before the first and after the last included."""

    def is_final(self, now: Mapping[str, State]) -> bool:
        """Whether these states are those of the end."""
        return self.works and all(
            path in now and _fits(now[path], state) for path, state in self.final.items()
        )

    def is_ours(self, path: str, now: State) -> bool:
        """Whether it is the batch that made a path so, or left it so."""
        return any(_fits(now, state) for state in self.possible[path])


def open_batch(kept: sqlite3.Connection, session: str, turn: str, root: str, prefix: str) -> int:
    """Begin to write down a batch, within a transaction; gives its number."""
    query = "INSERT INTO batch (session, turn, root, prefix) VALUES (?, ?, ?, ?)"
    return kept.execute(query, (session, turn, os.fsencode(root), prefix)).lastrowid or 0


def add_part(
    kept: sqlite3.Connection,
    number: int,
    before: Iterable[tuple[str, State]],
    deeds: Iterable[Deed],
) -> None:
    """Write down more of a batch, within a transaction."""
    part = _Part(
        tuple((os.fsencode(path), state) for path, state in before),
        tuple(
            _Deed(
                deed.number,
                deed.kind,
                os.fsencode(deed.path),
                os.fsencode(deed.target),
                deed.hash,
                deed.mode,
                deed.expect,
            )
            for deed in deeds
        ),
    )
    query = "INSERT INTO batch_part (batch, data) VALUES (?, ?)"
    kept.execute(query, (number, msgspec.msgpack.encode(part)))


def mark_done(kept: sqlite3.Connection, number: int) -> None:
    """Note that all of a batch was done, within a transaction."""
    kept.execute("UPDATE batch SET done = 1 WHERE id = ?", (number,))


def close_batch(kept: sqlite3.Connection, number: int) -> None:
    """Forget a batch, within a transaction."""
    kept.execute("DELETE FROM batch WHERE id = ?", (number,))


def cut_batches(kept: sqlite3.Connection, session: str | None = None) -> list[Batch]:
    """The batches that did not come to their end, oldest first.

    Args:
        kept: Where they were written down.
        session: The conversation whose batches are meant; `None` for all.
    """
    query = (
        "SELECT id, session, turn, root, prefix, done FROM batch "
        "WHERE ? IS NULL OR session = ? ORDER BY id"
    )
    rows = kept.execute(query, (session, session)).fetchall()
    return [_read_batch(kept, row) for row in rows]


def _read_batch(kept: sqlite3.Connection, row: tuple[int, str, str, bytes, str, int]) -> Batch:
    number, session, turn, root, prefix, done = row
    before: dict[str, State] = {}
    deeds: dict[int, Deed] = {}
    query = "SELECT data FROM batch_part WHERE batch = ? ORDER BY id"
    for (data,) in kept.execute(query, (number,)).fetchall():
        part = msgspec.msgpack.decode(data, type=_Part)
        for path, state in part.paths:
            before.setdefault(os.fsdecode(path), state)
        for deed in part.deeds:
            deeds[deed.number] = Deed(
                number=deed.number,
                kind=deed.kind,
                path=os.fsdecode(deed.path),
                target=os.fsdecode(deed.target),
                hash=deed.hash,
                mode=deed.mode,
                expect=deed.expect,
            )
    return Batch(
        number=number,
        session=session,
        turn=turn,
        root=os.fsdecode(root),
        prefix=prefix,
        done=bool(done),
        before=before,
        deeds=tuple(deeds[place] for place in sorted(deeds)),
    )


def foresee(before: Mapping[str, State], deeds: Sequence[Deed]) -> Outlook:
    """What edits make of the paths that they touch. Pure.

    Args:
        before: What stands at each path that any of them touches.
        deeds: The edits, in order.
    """
    outlook = _Foreseeing(before)
    for deed in deeds:
        outlook.do(deed)
    possible = {path: frozenset(states) for path, states in outlook.possible.items()}
    return Outlook(works=outlook.works, final=outlook.now, possible=possible)


class _Foreseeing:
    """Edits, done to states alone."""

    def __init__(self, before: Mapping[str, State]) -> None:
        self.works = True
        self.now = dict(before)
        self.possible = {path: {state} for path, state in before.items()}

    def do(self, deed: Deed) -> None:
        match deed.kind:
            case "put":
                self._put(deed)
            case "dir":
                self._make_above(f"{deed.path}/")
                self._need(deed.path in self.now)  # else it is made later, if it is not there
            case "there":  # a folder that stood when it was told
                there = self.now.get(deed.path)
                self._need(there is None or there.kind == "dir")
            case "remove":
                self._take(deed)
            case _:
                self._move(deed)

    def _put(self, deed: Deed) -> None:
        self._make_above(deed.path)
        there = self.now.get(deed.path)
        self._need(there is not None and there.kind in ("file", "absent"))
        self._need(there is None or there.kind != "file" or there.mode & 0o222 != 0)
        self._expect(deed, there)
        self._set(deed.path, State("file", self._mode(deed), deed.hash))

    def _take(self, deed: Deed) -> list[tuple[str, State]]:
        """Something goes from its place; all that stood in it."""
        there = self.now.get(deed.path, ABSENT_STATE)
        self._need(there != ABSENT_STATE)
        self._expect(deed, there)
        taken = [
            (path, state)
            for path, state in self.now.items()
            if path == deed.path or path.startswith(f"{deed.path}/")
        ]
        for path, _ in taken:
            self._set(path, ABSENT_STATE)
        return taken

    def _move(self, deed: Deed) -> None:
        self._make_above(deed.target)
        self._need(self.now.get(deed.target) == ABSENT_STATE)
        for path, state in self._take(deed):
            self._set(deed.target + path[len(deed.path) :], state)

    def _need(self, met: bool) -> None:
        self.works = self.works and met

    def _expect(self, deed: Deed, there: State | None) -> None:
        if deed.expect is not None and there is not None and there.kind in ("file", "absent"):
            self._need(there.hash == deed.expect)

    def _set(self, path: str, state: State) -> None:
        if path in self.now:  # else it was not told, and is not ours
            self.now[path] = state
            self.possible[path].add(state)

    def _mode(self, deed: Deed) -> int:
        if deed.mode is not None:
            return deed.mode & 0o777
        there = self.now.get(deed.path, ABSENT_STATE)
        return there.mode & 0o777 if there.kind == "file" and there.mode >= 0 else ANY_MODE

    def _make_above(self, path: str) -> None:
        """The folders above a path are there, or are made."""
        at = path.find("/", 1)
        while at > 0:
            above = path[:at]
            there = self.now.get(above)
            self._need(there is None or there.kind in ("dir", "absent"))
            if there == ABSENT_STATE:
                self._set(above, State("dir", ANY_MODE))
            at = path.find("/", at + 1)


def _fits(now: State, state: State) -> bool:
    """Whether what stands somewhere is this; the modes of folders do not count."""
    if state.kind == "file" and state.mode == ANY_MODE:
        return (now.kind, now.hash) == ("file", state.hash)
    return now.same(state)

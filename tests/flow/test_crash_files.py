"""A server that dies with SIGKILL within a change of many files, and within its undo."""

import asyncio
import signal
import stat
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from flow.crash_client import end_of_turn
from flow.lane import (
    PATIENCE_S,
    Lane,
    claim_token,
    decode,
    make_folder,
    make_order,
    open_lane,
    read_log,
)

from towline_client import Client, ConnectionLost, LinkPolicy, Session
from towline_protocol import TurnId

FILES: Final = 5
"""Of each kind that the patch updates, deletes, moves and makes."""
QUICK: Final = LinkPolicy(first_ms=20, most_ms=100, patience=1_000_000, long_ms=100)

_T = TypeVar("_T")
Tree = dict[str, tuple[int, bytes]]

pytestmark = pytest.mark.slow


def _plant(work: Path) -> None:
    work.mkdir()
    for number in range(FILES):
        for word in ("update", "delete", "move"):
            (work / f"{word}{number}").write_text(f"{word} {number}\nrest\n")
    (work / "update1").chmod(0o750)


def _patch() -> str:
    lines = ["*** Begin Patch"]
    for number in range(FILES):
        lines += [
            f"*** Update File: work/update{number}",
            "@@",
            f"-update {number}",
            f"+updated {number}",
            f"*** Delete File: work/delete{number}",
            f"*** Update File: work/move{number}",
            f"*** Move to: work/far/{number}",
            "@@",
            f"-move {number}",
            f"+moved {number}",
            f"*** Add File: work/new/{number}",
            f"+new {number}",
        ]
    return "\n".join([*lines, "*** End Patch"])


def _tree(work: Path) -> Tree:
    """All that stands there, without what a batch put aside."""
    return {
        path.relative_to(work).as_posix(): (
            stat.S_IMODE(path.stat().st_mode),
            path.read_bytes() if path.is_file() else b"",
        )
        for path in work.rglob("*")
    }


def _is_whole(tree: Tree) -> bool:
    return not any(".towline-" in name for name in tree)


class _Project:
    """A folder with a project, and the servers that work on it."""

    def __init__(self, lane: Lane, folder: Path, kill: str = "") -> None:
        self.work = folder / "work"
        _plant(self.work)
        self.before = _tree(self.work)
        self.places = folder / "places"
        self._lane = lane
        self._kill = kill
        self._order = make_order(folder, watch="files", trace=True)

    async def open(self) -> tuple[Client, Session]:
        """A client at the first server."""
        ready = await self._lane.start({**self._order, "kill": self._kill})
        token = await claim_token(ready["url"], ready["code"])
        client = Client(ready["url"], token, policy=QUICK)
        return client, await client.open()

    async def die(self) -> Tree:
        """See the server die, then start the next one; gives what the first one left."""
        assert await self._lane.ended() == -signal.SIGKILL
        left = _tree(self.work)
        await self._lane.start(self._order)
        return left

    async def stop(self) -> None:
        """End the server."""
        self._lane.kill()
        await self._lane.ended()

    def turn(self, session: Session) -> TurnId:
        """The one turn."""
        log = [decode(data) for data in read_log(self.work.parent, session.id)]
        (turn,) = {envelope.turn for envelope in log if envelope.turn is not None}
        return turn

    def passed(self) -> int:
        """How many names were changed until now."""
        lines = self.places.read_text(encoding="utf-8").splitlines()
        return sum(line.startswith("name ") for line in lines)


async def _count(lane: Lane, folder: Path) -> tuple[int, int, Tree]:
    """The changes of names of the patch and of its undo, and the tree between."""
    project = _Project(lane, folder)
    client, session = await project.open()
    async with client:
        await session.prompt(f"patch {_patch()}")
        await end_of_turn(session)
        patched, after = project.passed(), _tree(project.work)
        assert (await session.files.revert(project.turn(session))).conflicts == ()
        undone = project.passed() - patched
    await project.stop()
    assert _tree(project.work) == project.before
    assert _is_whole(after)
    assert len(after) == 2 + 3 * FILES  # what is updated, moved and new, in two folders
    return patched, undone, after


async def _cut_patch(lane: Lane, folder: Path, place: int, after: Tree) -> tuple[Tree, Tree]:
    """Die within the patch; what was left, and what the next server made of it."""
    project = _Project(lane, folder, f"name {place}")
    client, session = await project.open()
    async with client:
        await session.prompt(f"patch {_patch()}")
        left = await project.die()
        await end_of_turn(session)
        mended = _tree(project.work)
        assert mended in (project.before, after)
        undone = await session.files.revert(project.turn(session))
        assert undone.conflicts == ()
        assert _tree(project.work) == project.before
    await project.stop()
    return left, mended


async def _cut_undo(lane: Lane, folder: Path, place: int, after: Mapping[str, object]) -> None:
    """Die within the undo: the next server goes on with it, and the patch can be done again."""
    project = _Project(lane, folder, f"name {place}")
    client, session = await project.open()
    async with client:
        await session.prompt(f"patch {_patch()}")
        await end_of_turn(session)
        assert _tree(project.work) == after
        undoing = asyncio.create_task(session.files.revert(project.turn(session)))
        left = await project.die()
        assert left not in (project.before, after)
        with suppress(ConnectionLost):  # it is done all the same
            assert (await undoing).conflicts == ()
        assert _tree(project.work) == project.before
    await project.stop()


@pytest.mark.rules("A5.6", "A5.12", "A5.71", "A5.72", "A5.73", "S12")
async def test_a_server_killed_within_a_patch_or_its_undo_leaves_the_tree_whole(
    tmp_path: Path,
) -> None:
    async with open_lane() as lane:
        patched, undone, after = await _bounded(_count(lane, make_folder(tmp_path, 0)))
        halves = 0
        kinds: set[bool] = set()
        for number, place in enumerate((patched // 4, patched // 2, patched - 2), 1):
            folder = make_folder(tmp_path, number)
            left, mended = await _bounded(_cut_patch(lane, folder, place, after))
            halves += not _is_whole(left)
            kinds.add(mended == after)
        assert halves == 3
        assert kinds == {False, True}
        place = patched + undone // 2
        await _bounded(_cut_undo(lane, make_folder(tmp_path, 10), place, after))


async def _bounded(work: Coroutine[Any, Any, _T]) -> _T:
    async with asyncio.timeout(PATIENCE_S):
        return await work

"""Whatever turns did to files, going back gives the very same tree (A5.71 to A5.73)."""

import asyncio
import contextlib
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import Edit, MakeDir, Move, Put, Remove
from towline_agent.workspaces.checkpoints import Checkpoints
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.testing import Tree, snapshot

SESSION = "ses_1"

pytestmark = pytest.mark.wide

NAMES = ("a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a", "l", "l2", "x/y/z")
DATA = (b"", b"text\n", b"other\r\ntext", bytes(range(256)), b"\xff\xfe\x00" * 700)
MODES = (None, 0o600, 0o644, 0o755)

names = st.sampled_from(NAMES)
edit = st.one_of(
    st.builds(Put, path=names, data=st.sampled_from(DATA), mode=st.sampled_from(MODES)),
    st.builds(MakeDir, path=names),
    st.builds(Remove, path=names),
    st.builds(Move, source=names, target=names),
)
batch = st.lists(edit, min_size=1, max_size=3)
history = st.lists(st.lists(batch, max_size=4), min_size=1, max_size=4)


class Crash(BaseException):
    """The process ends here."""


class Lived(NamedTuple):
    """A folder in which turns have worked."""

    root: Path
    data: Path
    trees: list[Tree]
    """The tree before each turn, and after the last one."""

    def open(self, crash_at: int = -1) -> Checkpoints:
        left = [crash_at]

        def count(path: str) -> None:
            del path
            if left[0] == 0:
                raise Crash
            left[0] -= 1

        return Checkpoints(self.data, now_ms=lambda: 0, on_write=count)

    @property
    def turns(self) -> list[str]:
        return [f"trn_{number}" for number in range(len(self.trees) - 1)]


@contextlib.contextmanager
def live(turns: list[list[list[Edit]]]) -> Generator[Lived]:
    """Let turns do their edits; what cannot be done is refused and changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        lived = Lived(Path(folder, "root"), Path(folder, "data"), [])
        plant(lived.root)
        checkpoints = lived.open()
        for number, batches in enumerate(turns):
            lived.trees.append(snapshot(lived.root))
            keeper = checkpoints.keeper(SESSION, f"trn_{number}", str(lived.root))
            workspace = LocalWorkspace(lived.root, keeper=keeper)
            for edits in batches:
                with contextlib.suppress(ToolError):
                    asyncio.run(workspace.apply(tuple(edits)))
        lived.trees.append(snapshot(lived.root))
        checkpoints.close()
        yield lived


def plant(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "a").write_bytes(b"a\n")
    (root / "d" / "b").write_bytes(bytes(range(256)) * 9)
    (root / "d" / "b").chmod(0o750)
    (root / "f").mkdir(mode=0o700)
    (root / "l").symlink_to("a")
    (root / "l2").symlink_to("nowhere")


@pytest.mark.rules("A5.71", "A5.72", "A5.73")
@settings(max_examples=60, deadline=None)
@given(turns=history, back=st.integers(0, 3), again=st.integers(0, 3))
def test_going_back_gives_the_very_tree_before_the_turn(
    turns: list[list[list[Edit]]], back: int, again: int
) -> None:
    with live(turns) as lived:
        first = min(back, len(turns) - 1)
        outcome = lived.open().revert(SESSION, lived.turns[first:])
        assert (outcome.conflicts, outcome.unkept) == ((), ())
        assert snapshot(lived.root) == lived.trees[first]
        earlier = min(again, first)
        lived.open().revert(SESSION, lived.turns[earlier:])
        assert snapshot(lived.root) == lived.trees[earlier]


@pytest.mark.rules("A5.71", "A5.73")
@settings(max_examples=60, deadline=None)
@given(turns=history, back=st.integers(0, 3), crash_at=st.integers(0, 12))
def test_a_revert_that_a_crash_cut_is_ended_by_the_next_start(
    turns: list[list[list[Edit]]], back: int, crash_at: int
) -> None:
    with live(turns) as lived:
        first = min(back, len(turns) - 1)
        crashing = lived.open(crash_at)
        with contextlib.suppress(Crash):
            crashing.revert(SESSION, lived.turns[first:])
        crashing.close()
        crashing = lived.open(crash_at // 2)  # the next start may be cut as well
        with contextlib.suppress(Crash):
            crashing.recover()
        crashing.close()
        checkpoints = lived.open()
        checkpoints.recover()
        assert snapshot(lived.root) == lived.trees[first]
        told = checkpoints.untold(SESSION)
        assert len(told) == (lived.trees[first] != lived.trees[-1])
        assert checkpoints.revert(SESSION, lived.turns[first:]).files == ()


@pytest.mark.rules("A5.75")
@settings(max_examples=60, deadline=None)
@given(turns=history, back=st.integers(0, 3), person=st.lists(edit, min_size=1, max_size=4))
def test_what_a_person_did_since_is_never_lost(
    turns: list[list[list[Edit]]], back: int, person: list[Edit]
) -> None:
    with live(turns) as lived:
        workspace = LocalWorkspace(lived.root)
        for one in person:
            with contextlib.suppress(ToolError):
                asyncio.run(workspace.apply((one,)))
        first = min(back, len(turns) - 1)
        before, agents, now = lived.trees[first], lived.trees[-1], snapshot(lived.root)
        theirs = {
            path
            for path in {*now, *agents}
            if now.get(path) != agents.get(path) and now.get(path) != before.get(path)
        }
        checkpoints = lived.open()
        if checkpoints.revert(SESSION, lived.turns[first:]).conflicts:
            assert snapshot(lived.root) == now
        outcome = checkpoints.revert(SESSION, lived.turns[first:], skip_conflicts=True)
        after = snapshot(lived.root)
        lost = {path for path in theirs if after.get(path) != now.get(path)}
        needed = {path for path in lost if path not in now and after[path][0] == "dir"}
        assert lost == needed  # a folder they removed comes back for what the turn took out of it
        touched = {path for path in {*before, *agents} if before.get(path) != agents.get(path)}
        reported = {conflict.path for conflict in outcome.conflicts}
        left = {words.split(":")[0] for words in outcome.unkept}
        wrong = {path for path in touched if after.get(path) != before.get(path)}
        assert wrong <= reported | left | theirs

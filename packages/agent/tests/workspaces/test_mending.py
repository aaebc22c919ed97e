"""A batch of edits that the end of the process cuts is wholly done or not at all (A5.12)."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import Edit, MakeDir, Move, Put, Remove
from towline_agent.workspaces.checkpoints import Checkpoints
from towline_agent.workspaces.edit import apply_edits
from towline_agent.workspaces.fence import Fence
from towline_agent.workspaces.keeper import TurnKeeper
from towline_agent.workspaces.testing import Tree, snapshot
from towline_agent.workspaces.vault import Vault

SESSION: Final = "ses_1"
TURN: Final = "trn_1"
STEPS_MAX: Final = 400
"""More than any batch here takes; whoever never dies is done."""


EVERYTHING: Final[tuple[Edit, ...]] = (
    Put(path="a", data=b"new a\n"),
    Put(path="new/deep/file", data=b"new"),
    Put(path="run", data=b"#!/bin/sh\n", mode=0o700),
    Move(source="d", target="far/d"),
    Put(path="far/d/b", data=b"changed where it went"),
    Remove(path="far/d/e"),
    Put(path="far/d/e/now", data=b"a folder again"),
    Remove(path="l"),
    Put(path="l/in", data=b"a folder where a link was"),
    MakeDir(path="hollow/in"),
    Move(source="a", target="z"),
    Put(path="a", data=b"another a"),
)
SWAPS: Final[tuple[Edit, ...]] = (
    Put(path="a", data=b"one"),
    Put(path="a", data=b"two"),
    Put(path="a", data=b"a\n"),
    Remove(path="f"),
    Put(path="f", data=b"a file where a folder was"),
    Move(source="run", target="t"),
    Move(source="l2", target="run"),
    Move(source="t", target="l2"),
    Remove(path="d"),
    MakeDir(path="d"),
    Move(source="a", target="d/a"),
)


SO_ALREADY: Final[tuple[Edit, ...]] = (MakeDir(path="d"), Move(source="d/e", target="b"))
"""Edits of which the first changes nothing."""


class Crash(BaseException):
    """The process ends here."""


class Life:
    """A process that dies at one of the steps it takes on the disk, and does nothing after it.

    It waits for no disk: what a process has written outlives it all the same.
    """

    def __init__(self, dies_at: int) -> None:
        self.dead = False
        self._left = dies_at

    def step(self, half: Callable[[], object] = lambda: None) -> None:
        """Take a step; what may be done by half is."""
        if self.dead:
            raise Crash
        if self._left == 0:
            self.dead = True
            half()
            raise Crash
        self._left -= 1

    @contextmanager
    def lived(self) -> Generator[None]:
        """Let what is done meanwhile go step by step."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("rename", "link", "unlink", "mkdir", "rmdir", "symlink", "fchmod"):
                patch.setattr(os, name, self._stepping(getattr(os, name)))
            patch.setattr(os, "fsync", self._stepping(os.fstat))
            patch.setattr(os, "open", self._opening(os.open))
            patch.setattr(os, "write", self._writing(os.write))
            patch.setattr(Vault, "write", self._keeping(Vault.write))
            yield

    def _stepping(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            self.step()
            return real(*args, **more)

        return call

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, flags: int, *args: Any, **more: Any) -> Any:
            if flags & os.O_CREAT:
                self.step()
            return real(path, flags, *args, **more)

        return call

    def _writing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(fd: int, data: Any) -> Any:
            self.step(lambda: real(fd, data[: len(data) // 2]))
            return real(fd, data)

        return call

    def _keeping(self, real: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def write(vault: Vault, *, lasting: bool = True) -> Generator[Any]:
            del lasting
            self.step()
            with real(vault, lasting=False) as kept:
                yield kept
            self.step()

        return write


class Stage:
    """A folder, and what is kept of it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.data = folder / "data"
        _plant(self.root)
        self.before = snapshot(self.root)

    def open(self) -> Checkpoints:
        """As after a restart."""
        return Checkpoints(self.data, now_ms=lambda: 0)

    def apply(self, edits: tuple[Edit, ...], dies_at: int = STEPS_MAX) -> bool:
        """Have a process do edits; whether it died."""
        checkpoints, life = self.open(), Life(dies_at)
        keeper = checkpoints.keeper(SESSION, TURN, str(self.root))
        with life.lived(), suppress(Crash, ToolError):
            apply_edits(Fence(str(self.root)), keeper, edits)
        checkpoints.close()
        return life.dead

    def recover(self, dies_at: int = STEPS_MAX) -> bool:
        """Have the next one start; whether it died."""
        checkpoints, life = self.open(), Life(dies_at)
        with life.lived(), suppress(Crash):
            checkpoints.recover()
        checkpoints.close()
        return life.dead

    def check(self, after: Tree) -> None:
        """It is whole, nothing stands beside, and an undo gives the tree from before the turn."""
        now = snapshot(self.root)
        assert now in (self.before, after)
        checkpoints = self.open()
        if checkpoints.there:
            with checkpoints.vault.read() as kept:
                assert kept.execute("SELECT count(*) FROM batch").fetchone() == (0,)
        outcome = checkpoints.revert(SESSION, [TURN])
        assert (outcome.conflicts, outcome.unkept) == ((), ())
        assert snapshot(self.root) == self.before
        checkpoints.close()


def _plant(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "a").write_bytes(b"a\n")
    (root / "d" / "b").write_bytes(bytes(range(256)) * 9)
    (root / "d" / "b").chmod(0o750)
    (root / "d" / "e" / "deep").write_bytes(b"deep")
    (root / "f").mkdir(mode=0o700)
    (root / "run").write_bytes(b"#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "l").symlink_to("a")
    (root / "l2").symlink_to("nowhere")


def _done(folder: Path, *batches: tuple[Edit, ...]) -> Tree:
    """The tree after batches that nothing cuts."""
    folder.mkdir()
    stage = Stage(folder)
    for edits in batches:
        assert not stage.apply(edits)
    return snapshot(stage.root)


@pytest.mark.rules("A5.6", "A5.12", "A5.71", "A5.72", "A5.73")
@pytest.mark.parametrize(
    ("edits", "least"),
    [
        pytest.param(EVERYTHING, 40, id="everything", marks=pytest.mark.wide),
        pytest.param(SWAPS, 40, id="swaps", marks=pytest.mark.slow),
        pytest.param((*SO_ALREADY, Remove(path="d/b")), 5, id="so already, remove"),
        pytest.param((*SO_ALREADY, MakeDir(path="d/z")), 5, id="so already, make"),
    ],
)
def test_a_batch_that_is_cut_at_any_step_is_wholly_done_or_not_at_all(
    edits: tuple[Edit, ...], least: int, tmp_path: Path
) -> None:
    after = _done(tmp_path / "done", edits)
    kinds: set[bool] = set()
    for place in range(STEPS_MAX):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        stage = Stage(folder)
        assert snapshot(stage.root) != after
        if not stage.apply(edits, place):
            break
        stage.recover(place % 13)  # which may be cut as well
        stage.recover(place % 7)
        stage.recover()
        kinds.add(snapshot(stage.root) == after)
        stage.check(after)
    else:
        raise AssertionError("it never came to its end")
    assert kinds == {False, True}
    assert place > least


@pytest.mark.wide
@pytest.mark.rules("A5.12", "A5.73")
def test_a_mending_that_is_cut_at_any_step_is_ended_by_the_next_start(tmp_path: Path) -> None:
    after = _done(tmp_path / "done", EVERYTHING)
    for place in range(STEPS_MAX):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        stage = Stage(folder)
        assert stage.apply(EVERYTHING, 60)
        died = stage.recover(place)
        stage.recover()
        assert snapshot(stage.root) == stage.before
        stage.check(after)
        if not died:
            return
    raise AssertionError("it never came to its end")


@pytest.mark.rules("A5.12", "A5.71", "A5.73")
def test_the_first_batch_of_a_turn_stays_when_its_second_one_is_cut(tmp_path: Path) -> None:
    first: tuple[Edit, ...] = (Put(path="a", data=b"first"), Put(path="n/x", data=b"x"))
    second: tuple[Edit, ...] = (
        Put(path="a", data=b"second"),
        Remove(path="n"),
        Move(source="run", target="b"),
    )
    after = _done(tmp_path / "done", first, second)
    between = _done(tmp_path / "between", first)
    for place in range(STEPS_MAX):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        stage = Stage(folder)
        stage.apply(first)
        died = stage.apply(second, place)
        stage.recover()
        assert snapshot(stage.root) in (between, after)
        outcome = stage.open().revert(SESSION, [TURN])
        assert outcome.conflicts == ()
        assert snapshot(stage.root) == stage.before
        if not died:
            return
    raise AssertionError("it never came to its end")


NAMES: Final = ("a", "b", "d", "d/b", "d/e", "f", "f/a", "l", "l2", "run", "x/y")
DATA: Final = (b"", b"text\n", b"a\n", bytes(range(256)))
names = st.sampled_from(NAMES)
edit = st.one_of(
    st.builds(
        Put,
        path=names,
        data=st.sampled_from(DATA),
        mode=st.sampled_from((None, 0o600, 0o755)),
    ),
    st.builds(MakeDir, path=names),
    st.builds(Remove, path=names),
    st.builds(Move, source=names, target=names),
)


@pytest.mark.rules("A5.6", "A5.12", "A5.71", "A5.72", "A5.73")
@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    edits=st.lists(edit, min_size=1, max_size=5).map(tuple),
    place=st.integers(0, 70),
    again=st.integers(0, 40),
)
def test_whatever_a_batch_holds_it_is_whole_after_the_next_start(
    tmp_path_factory: pytest.TempPathFactory, edits: tuple[Edit, ...], place: int, again: int
) -> None:
    folder = tmp_path_factory.mktemp("mending")
    after = _done(folder / "done", edits)  # one that is refused changes nothing
    stage = Stage(folder)
    stage.apply(edits, place)
    stage.recover(again)
    stage.recover()
    stage.check(after)


@pytest.mark.rules("A5.12", "A5.71")
def test_what_was_cut_in_a_folder_that_is_not_allowed_waits_with_all_that_is_kept(
    tmp_path: Path,
) -> None:
    edits: tuple[Edit, ...] = (Put(path="a", data=b"agent"), Remove(path="d"))
    after = _done(tmp_path / "done", edits)
    waited = 0
    for place in range(STEPS_MAX):
        (folder := tmp_path / f"{place}").mkdir()
        stage = Stage(folder)
        if not stage.apply(edits, place):
            break
        cut, asked = snapshot(stage.root), list[str]()
        fenced = stage.open()
        fenced.recover(lambda root, asked=asked: bool(asked.append(root)))
        if asked:
            with pytest.raises(ToolError, match="edits that a crash cut in"):
                fenced.revert(SESSION, [TURN])
        assert snapshot(stage.root) == cut
        fenced.close()
        assert set(asked) <= {str(stage.root)}
        waited += bool(asked)
        stage.recover()
        stage.check(after)
    assert waited > 2


@pytest.mark.rules("A5.12", "A5.75")
def test_what_a_person_changed_after_the_cut_is_left_alone_and_told(tmp_path: Path) -> None:
    edits: tuple[Edit, ...] = (
        Put(path="a", data=b"agent"),
        Put(path="n/x", data=b"x"),
        Remove(path="d"),
        Put(path="run", data=b"agent"),
    )
    seen: set[tuple[str, ...]] = set()
    for place in range(STEPS_MAX):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        stage = Stage(folder)
        if not stage.apply(edits, place):
            break
        (stage.root / "a").write_bytes(b"a person's")
        (stage.root / "n").mkdir(exist_ok=True)
        (stage.root / "n/mine").write_bytes(b"mine")
        stage.recover()
        now = snapshot(stage.root)
        assert now["a"][2] == b"a person's"
        assert now["n/mine"][2] == b"mine"
        assert not any(".towline-" in name for name in now)
        outcome = stage.open().revert(SESSION, [TURN])
        seen.add(tuple(conflict.path for conflict in outcome.conflicts))
        assert snapshot(stage.root) == now
        stage.open().revert(SESSION, [TURN], skip_conflicts=True)
        rest = {name: value for name, value in snapshot(stage.root).items() if name[0] not in "an"}
        assert rest == {name: value for name, value in stage.before.items() if name != "a"}
    else:
        raise AssertionError("it never came to its end")
    assert seen == {(), ("a",), ("a", "n")}  # who made `n` cannot be known at some steps


@pytest.mark.rules("A5.12", "A5.71")
def test_kept_bytes_that_are_damaged_leave_what_stands_aside(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    edits: tuple[Edit, ...] = (Put(path="a", data=b"agent"), Put(path="run", data=b"agent"))
    assert stage.apply(edits, next(_cut_between(tmp_path / "looked", edits)))
    assert (stage.root / "a").read_bytes() == b"agent"
    with stage.open().vault.write() as kept:
        kept.execute("UPDATE piece SET data = x'00', packed = 0")
    stage.recover()
    assert (stage.root / "a").read_bytes() == b"agent"
    aside = [path.read_bytes() for path in stage.root.glob(".towline-*")]
    assert b"a\n" in aside  # all that there is of it


def _cut_between(folder: Path, edits: tuple[Edit, ...]) -> Generator[int]:
    """The steps at which the first edit is done and the last one is not."""
    for place in range(STEPS_MAX):
        (folder / f"{place}").mkdir(parents=True)
        stage = Stage(folder / f"{place}")
        stage.apply(edits, place)
        now = snapshot(stage.root)
        if now["a"] != stage.before["a"] and now["run"] == stage.before["run"]:
            yield place


@pytest.mark.rules("A5.12", "A5.75")
def test_what_the_disk_let_be_neither_done_nor_undone_is_mended_by_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    checkpoints = stage.open()
    fence, keeper = Fence(str(stage.root)), checkpoints.keeper(SESSION, TURN, str(stage.root))
    real = os.rename
    left = [1]

    def refuse(*args: Any, **more: Any) -> None:
        if left[0] == 0:
            raise OSError(5, "Input/output error")
        left[0] -= 1
        real(*args, **more)

    monkeypatch.setattr(os, "rename", refuse)
    edits: tuple[Edit, ...] = (Put(path="a", data=b"one"), Put(path="run", data=b"two"))
    with pytest.raises(ToolError, match="could not be made as they were"):
        apply_edits(fence, keeper, edits)
    assert (stage.root / "a").read_bytes() == b"one"
    monkeypatch.undo()
    apply_edits(fence, keeper, (MakeDir(path="d"),))  # touches nothing, so it ends no batch
    other = checkpoints.keeper(SESSION, TURN, str(stage.root))
    apply_edits(fence, other, (Put(path="other", data=b"o"),))
    apply_edits(fence, keeper, (Put(path="next", data=b"n"),))
    now = snapshot(stage.root)
    assert {name: value for name, value in now.items() if name in stage.before} == stage.before
    assert now.keys() - stage.before.keys() == {"next", "other"}


@pytest.mark.rules("A5.12")
@pytest.mark.parametrize(
    "edits",
    [
        (MakeDir(path="d"), Put(path="d/new", data=b"n")),
        (MakeDir(path="d"), Put(path="a", data=b"n"), MakeDir(path="n/m"), MakeDir(path="n")),
    ],
)
def test_a_whole_batch_stays_though_a_loss_of_power_took_the_note_of_its_end(
    edits: tuple[Edit, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)

    def lose(*_args: object, **_more: object) -> None:
        """Not a word of it reaches the disk."""

    with monkeypatch.context() as lost:
        lost.setattr(TurnKeeper, "after", lose)
        lost.setattr(TurnKeeper, "settled", lose)
        assert not stage.apply(edits)
    after = snapshot(stage.root)
    stage.recover()
    assert snapshot(stage.root) == after != stage.before
    stage.check(after)


@pytest.mark.rules("A5.6", "A5.12")
def test_a_folder_that_cannot_be_looked_at_is_told_in_words(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    keeper = stage.open().keeper(SESSION, TURN, str(stage.root))
    edits = (MakeDir(path="d"), Put(path="a", data=b"new"), MakeDir(path=f"d/{'x' * 300}"))
    with pytest.raises(ToolError, match="longer than the system allows"):
        apply_edits(Fence(str(stage.root)), keeper, edits)
    stage.check(stage.before)


@pytest.mark.rules("A5.12")
def test_a_batch_that_goes_on_is_nobody_elses_to_mend(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    checkpoints = stage.open()
    keeper = checkpoints.keeper(SESSION, TURN, str(stage.root))
    left: list[str] = []

    def meddle(paths: tuple[str, ...]) -> None:
        left.extend(paths)
        checkpoints.recover()
        checkpoints.keeper(SESSION, TURN, str(stage.root)).mend()
        real(paths)

    real, keeper.after = keeper.after, meddle
    apply_edits(
        Fence(str(stage.root)), keeper, (Put(path="a", data=b"one"), Put(path="b", data=b"b"))
    )
    assert left == ["a", "b"]
    assert (stage.root / "a").read_bytes() == b"one"
    assert (stage.root / "b").read_bytes() == b"b"


@pytest.mark.rules("A5.12")
def test_checkpoints_of_an_older_release_learn_to_be_mended(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.apply((Put(path="a", data=b"one"),))
    checkpoints = stage.open()
    with checkpoints.vault.write() as kept:
        kept.execute("DROP TABLE batch_part")
        kept.execute("DROP TABLE batch")
    with checkpoints.vault.read() as kept:
        kept.execute("PRAGMA user_version = 1")
    checkpoints.close()
    assert stage.apply((Put(path="a", data=b"two"), Put(path="b", data=b"b")), 12)
    stage.recover()
    assert stage.open().revert(SESSION, [TURN]).files == ("a",)
    assert snapshot(stage.root) == stage.before

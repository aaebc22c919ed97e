"""Edits on disk: undone when one fails, whole files only, nothing lost that was not meant."""

import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from towline_agent.errors import ToolDenied, ToolError
from towline_agent.workspaces import disk, edit, stand
from towline_agent.workspaces.base import (
    ABSENT,
    Deed,
    Edit,
    Intent,
    MakeDir,
    Move,
    Put,
    Remove,
    hash_bytes,
)
from towline_agent.workspaces.disk import Names, respells
from towline_agent.workspaces.local import LocalWorkspace

_Tree = dict[str, tuple[str, int, bytes]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("outside")
    root = tmp_path / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "file").write_text("inside")
    (root / "sub" / "x").write_text("x")
    (root / "sub" / "deep" / "y").write_text("y")
    (root / "sub" / "link").symlink_to("../file")
    return root


def _tree(root: Path) -> _Tree:
    found: _Tree = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        data = b""
        if path.is_symlink():
            data = os.fsencode(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            data = path.read_bytes()
        kind = stat.filemode(status.st_mode)
        found[str(path.relative_to(root))] = (kind, status.st_ino, data)
    return found


class _Kept:
    """A keeper that takes note of what it is told."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.before_calls: list[dict[str, bool]] = []
        self.after_calls: list[dict[str, bool]] = []
        self.deeds: dict[int, Deed] = {}
        self.prefixes: set[str] = set()
        self.ends: list[bool] = []
        self.fail = ""

    def settled(self, *, whole: bool) -> None:
        self.ends.append(whole)

    def ran(self, line: str) -> int:
        raise AssertionError(line)

    def ended(self, number: int) -> tuple[str, ...]:
        raise AssertionError(number)

    def before(self, paths: tuple[str, ...], intent: Intent) -> None:
        self.deeds.update({deed.number: deed for deed in intent.deeds})
        self.prefixes.add(intent.prefix)
        self.before_calls.append({path: self._is_there(path) for path in paths})
        if self.fail == "before":
            raise ToolError("The keeper has no room.")

    def after(self, paths: tuple[str, ...]) -> None:
        self.after_calls.append({path: self._is_there(path) for path in paths})
        if self.fail == "after":
            raise ToolError("The keeper has no room.")

    def _is_there(self, path: str) -> bool:
        return os.path.lexists(self.root / path)


EDITS: tuple[Edit, ...] = (
    Put(path="file", data=b"changed"),
    Put(path="new/file", data=b"new", expect=ABSENT),
    Move(source="sub", target="far/sub"),
    Put(path="far/sub/x", data=b"changed too"),
    Remove(path="far/sub/deep"),
    MakeDir(path="empty/folder"),
)


@pytest.mark.rules("A5.6", "A5.12")
@pytest.mark.parametrize("call", ["link", "rename", "fsync", "mkdir", "write", "unlink", "stat"])
@pytest.mark.parametrize("place", range(6))
async def test_a_disk_that_refuses_at_any_step_leaves_everything_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str, place: int
) -> None:
    before = _tree(root)
    real: Callable[..., Any] = getattr(os, call)
    left = [place]
    failed: list[str] = []

    def fail(*args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            failed.append(call)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **more)

    monkeypatch.setattr(os, call, fail)
    try:
        await LocalWorkspace(root).apply(EDITS)
    except ToolError as error:
        assert "disk is full" in error.message  # noqa: PT017 - whether it fails is not the question
        monkeypatch.undo()
        assert _tree(root) == before
    else:
        monkeypatch.undo()
        # the call was not made so often, or only made names durable or cleaned up
        assert not failed or call in ("fsync", "unlink", "stat")
        names = {name for name in _tree(root) if ".towline-" not in name}
        assert names == {
            "file", "new", "new/file", "far", "far/sub", "far/sub/x", "far/sub/link", "empty",
            "empty/folder",
        }  # fmt: skip


@pytest.mark.rules("A5.6")
async def test_a_reader_sees_the_old_file_or_the_new_one_and_never_a_part(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    for call in ("open", "write", "fsync", "link", "rename", "unlink"):
        real = getattr(os, call)

        def look(*args: Any, real: Callable[..., Any] = real, **more: Any) -> Any:
            seen.add((root / "file").read_text())
            done = real(*args, **more)
            seen.add((root / "file").read_text())
            return done

        monkeypatch.setattr(os, call, look)
    await LocalWorkspace(root).apply((Put(path="file", data=b"changed"),))
    assert seen == {"inside", "changed"}


@pytest.mark.rules("A5.6")
async def test_nothing_is_left_beside_and_modes_are_kept(root: Path) -> None:
    (root / "file").chmod(0o750)
    before = set(_tree(root))
    workspace = LocalWorkspace(root)
    (change,) = await workspace.apply((Put(path="file", data=b"#!/bin/sh\n"),))
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o750
    assert (change.before_mode, change.after_mode) == (None, None)
    (change,) = await workspace.apply((Put(path="file", data=b"#!/bin/sh\n", mode=0o700),))
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o700
    assert (change.kind, change.before_mode, change.after_mode) == ("changed", 0o750, 0o700)
    assert (await workspace.read("file")).mode == 0o700
    assert set(_tree(root)) == before


async def test_a_new_file_gets_the_usual_mode(root: Path) -> None:
    (root / "usual").touch()
    await LocalWorkspace(root).apply(
        (Put(path="new", data=b""), Put(path="run", data=b"", mode=0o755))
    )
    assert (root / "new").stat().st_mode == (root / "usual").stat().st_mode
    assert stat.S_IMODE((root / "run").stat().st_mode) == 0o755


async def test_what_is_as_it_should_be_is_not_touched(root: Path) -> None:
    before = (root / "file").stat()
    workspace = LocalWorkspace(root)
    assert await workspace.apply((Put(path="file", data=b"inside"), MakeDir(path="sub"))) == ()
    assert (root / "file").stat().st_mtime_ns == before.st_mtime_ns
    assert (root / "file").stat().st_ino == before.st_ino


async def test_a_keeper_is_told_of_each_path_before_it_changes_and_once_it_has(root: Path) -> None:
    keeper = _Kept(root)
    await LocalWorkspace(root, keeper=keeper).apply(EDITS)
    told: dict[str, bool] = {}
    for call in keeper.before_calls:
        assert not call.keys() & told.keys()
        told |= call
    there = ("file", "sub", "sub/x", "sub/link", "sub/deep", "sub/deep/y")
    made = (
        "new", "new/file", "far", "far/sub", "far/sub/x", "far/sub/link", "far/sub/deep",
        "far/sub/deep/y", "empty", "empty/folder",
    )  # fmt: skip
    assert told == {**dict.fromkeys(there, True), **dict.fromkeys(made, False)}
    (after,) = keeper.after_calls
    assert after.keys() == told.keys()
    gone = ("sub", "sub/x", "sub/link", "sub/deep", "sub/deep/y", "far/sub/deep", "far/sub/deep/y")
    assert {path for path, is_there in after.items() if not is_there} == set(gone)


@pytest.mark.parametrize("fail", ["before", "after"])
async def test_a_keeper_that_refuses_ends_the_edit_with_nothing_changed(
    root: Path, fail: str
) -> None:
    before = _tree(root)
    keeper = _Kept(root)
    keeper.fail = fail
    with pytest.raises(ToolError, match="no room"):
        await LocalWorkspace(root, keeper=keeper).apply(EDITS)
    assert _tree(root) == before


@pytest.mark.rules("A5.2")
async def test_writing_through_a_link_changes_the_file_it_leads_to(root: Path) -> None:
    keeper = _Kept(root)
    (change,) = await LocalWorkspace(root, keeper=keeper).apply((Put(path="sub/link", data=b"n"),))
    assert (root / "sub" / "link").is_symlink()
    assert (root / "file").read_bytes() == b"n"
    assert change.path == "file"
    assert keeper.before_calls == [{"file": True}]


@pytest.mark.rules("A5.2")
async def test_removing_or_moving_a_link_leaves_the_file_it_leads_to(root: Path) -> None:
    (root / "leads_out").symlink_to("../out/secret")
    workspace = LocalWorkspace(root)
    expect = (await workspace.read("sub/link")).hash
    with pytest.raises(ToolError, match="changed since you looked"):
        await workspace.apply((Remove(path="sub/link", expect=hash_bytes(b"other")),))
    moved, removed = await workspace.apply(
        (Move(source="sub/link", target="sub/again", expect=expect), Remove(path="leads_out"))
    )
    assert (root / "sub" / "again").readlink() == Path("../file")
    assert (moved.source, moved.before, removed.kind) == ("sub/link", None, "deleted")
    assert "leads_out" not in _tree(root)
    assert (root.parent / "out" / "secret").read_text() == "outside"


async def test_another_name_of_a_file_keeps_the_old_content(root: Path) -> None:
    outside = root.parent / "out" / "secret"
    (root / "hard").hardlink_to(outside)
    await LocalWorkspace(root).apply((Put(path="hard", data=b"mine"),))
    assert outside.read_text() == "outside"
    assert (root / "hard").read_text() == "mine"


async def test_a_file_nobody_may_write_is_refused_with_a_next_step(root: Path) -> None:
    (root / "file").chmod(0o444)
    with pytest.raises(ToolError, match=r"permissions forbid it.*`chmod`"):
        await LocalWorkspace(root).apply((Put(path="file", data=b""),))


async def test_what_is_no_ordinary_file_is_neither_opened_nor_changed(root: Path) -> None:
    os.mkfifo(root / "sub" / "pipe")
    workspace = LocalWorkspace(root)
    edits: tuple[Edit, ...] = (
        Put(path="sub/pipe", data=b""),
        Remove(path="sub/pipe"),
        Remove(path="sub"),
        Move(source="sub/pipe", target="x"),
    )
    before = _tree(root)
    for each in edits:
        with pytest.raises(ToolError, match="'sub/pipe' is no ordinary file"):
            await workspace.apply((each,))
    assert _tree(root) == before
    await workspace.apply((Move(source="sub", target="there"),))
    assert stat.S_ISFIFO((root / "there" / "pipe").stat().st_mode)


async def test_more_than_could_be_undone_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = LocalWorkspace(root)
    before = _tree(root)
    for name, bound in (("TREE_MAX_NAMES", 4), ("TREE_MAX_BYTES", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(stand, name, bound)
            for each in (Remove(path="sub"), Move(source="sub", target="x")):
                with pytest.raises(ToolError, match=r"holds more than .* use a program"):
                    await workspace.apply((each,))
    monkeypatch.setattr(edit, "EDIT_MAX_BYTES", 5)
    with pytest.raises(ToolError, match="is larger than"):
        await workspace.apply((Put(path="file", data=b"small"),))
    with pytest.raises(ToolError, match="content for 'new' is larger"):
        await workspace.apply((Put(path="new", data=b"larger"),))
    monkeypatch.setattr(edit, "EDITS_MAX", 1)
    with pytest.raises(ToolError, match="2 edits at once are too many"):
        await workspace.apply((MakeDir(path="a"), MakeDir(path="b")))
    assert _tree(root) == before


async def test_without_hard_links_the_same_is_done_with_copies(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **more: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    workspace = LocalWorkspace(root)
    before = {name: (kind, data) for name, (kind, _, data) in _tree(root).items()}
    with pytest.raises(ToolError, match="something at 'sub' already"):
        await workspace.apply((*EDITS[:2], Move(source="new/file", target="sub")))
    assert {name: (kind, data) for name, (kind, _, data) in _tree(root).items()} == before
    await workspace.apply(EDITS)
    assert (root / "file").read_bytes() == b"changed"
    assert (root / "far" / "sub" / "x").read_bytes() == b"changed too"


@pytest.mark.parametrize(
    "each", [Move(source="file", target="free"), Put(path="free", data=b"mine")]
)
async def test_what_appears_at_the_target_meanwhile_is_not_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch, each: Edit
) -> None:
    real = disk.move_to_free

    def appear(*args: Any) -> None:
        (root / "free").write_text("a person's")
        real(*args)

    monkeypatch.setattr(edit, "move_to_free", appear)
    with pytest.raises(ToolError):
        await LocalWorkspace(root).apply((each,))
    assert (root / "free").read_text() == "a person's"
    assert (root / "file").read_text() == "inside"


@pytest.mark.rules("A5.63")
@pytest.mark.parametrize("how", ["in place", "by another file"])
@pytest.mark.parametrize(
    "each",
    [
        Put(path="file", data=b"mine", expect=hash_bytes(b"inside")),
        Remove(path="file", expect=hash_bytes(b"inside")),
        Move(source="file", target="x", expect=hash_bytes(b"inside")),
    ],
)
async def test_a_file_that_is_saved_between_check_and_change_is_not_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch, how: str, each: Edit
) -> None:
    saved: list[str] = []

    def save_first(*args: Any, real: Callable[..., Any]) -> Any:
        if not saved:
            saved.append(how)
            (root / "other").write_text("a person's")
            if how == "in place":
                (root / "file").write_text("a person's")
                os.utime(root / "file", ns=(1, 1))  # as a coarse clock could not tell it
                (root / "other").unlink()
            else:
                (root / "other").rename(root / "file")
        return real(*args)

    for module, name in ((edit, "write_beside"), (edit, "move_to_free")):
        monkeypatch.setattr(module, name, partial(save_first, real=getattr(module, name)))
    new = Names.new

    def name_first(names: Names) -> str:
        return save_first(names, real=new)

    monkeypatch.setattr(Names, "new", name_first)
    with pytest.raises(ToolError, match="changed since you looked"):
        await LocalWorkspace(root).apply((each,))
    assert (root / "file").read_text() == "a person's"
    assert [name for name in _tree(root) if "/" not in name] == ["file", "sub"]


def test_a_name_is_another_spelling_when_it_is_found_but_not_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "FILE").hardlink_to(root / "file")
    above = os.open(root, os.O_RDONLY)
    try:
        found = (root / "file").stat()
        assert not respells(above, "FILE", found)  # two names of one file
        assert not respells(above, "sub", found)
        monkeypatch.setattr(os, "listdir", lambda _: ["file", "sub"])  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
        assert respells(above, "FILE", found)
    finally:
        os.close(above)


@pytest.mark.rules("A5.8")
async def test_a_hidden_folder_is_out_of_reach_of_every_edit(root: Path) -> None:
    hidden = root / "sub" / "deep"
    workspace = LocalWorkspace(root, hidden=(hidden, root / "later"))
    before = _tree(root)
    edits: tuple[Edit, ...] = (
        Put(path="sub/deep/y", data=b""),
        Put(path="later/x", data=b""),
        MakeDir(path="sub/deep/z"),
        MakeDir(path="later"),
        Remove(path="sub/deep"),
        Remove(path="sub"),
        Move(source="sub", target="x"),
        Move(source="sub/deep", target="x"),
        Move(source="file", target="sub/deep/file"),
        Move(source="file", target="later"),
    )
    for each in edits:
        with pytest.raises(ToolDenied, match="leads outside"):
            await workspace.apply((each,))
    assert _tree(root) == before


async def test_what_can_not_be_undone_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = _Kept(root)
    real = os.rename

    def after(paths: tuple[str, ...]) -> None:
        monkeypatch.setattr(os, "rename", refuse)
        raise ToolError("The keeper has no room.")

    def refuse(*args: Any, **more: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(keeper, "after", after)
    edits = (Put(path="file", data=b"mine"), Remove(path="sub/x"))
    with pytest.raises(ToolError, match=r"could not be made as they were: 'sub/x', 'file'") as told:
        await LocalWorkspace(root, keeper=keeper).apply(edits)
    assert ".towline-" in told.value.message
    monkeypatch.setattr(os, "rename", real)
    kept = {data for name, (_, _, data) in _tree(root).items() if ".towline-" in name}
    assert kept == {b"inside", b"x"}


@pytest.mark.rules("A5.12")
async def test_a_keeper_is_told_what_a_batch_means_to_do_and_of_its_end(root: Path) -> None:
    keeper = _Kept(root)
    workspace = LocalWorkspace(root, keeper=keeper)
    await workspace.apply(EDITS)
    told = [(deed.kind, deed.path, deed.target) for _, deed in sorted(keeper.deeds.items())]
    assert told == [
        ("put", "file", ""),
        ("put", "new/file", ""),
        ("move", "sub", "far/sub"),
        ("put", "far/sub/x", ""),
        ("remove", "far/sub/deep", ""),
        ("dir", "empty/folder", ""),
    ]
    assert keeper.deeds[0].hash == hash_bytes(b"changed")
    assert keeper.deeds[1].expect == ABSENT
    (prefix,) = keeper.prefixes
    assert prefix.startswith(".towline-")
    with pytest.raises(ToolError):
        await workspace.apply((Put(path="file", data=b"x"), Put(path="file/in", data=b"x")))
    assert keeper.ends == [True, True]

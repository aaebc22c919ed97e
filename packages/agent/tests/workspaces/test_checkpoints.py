"""What turns do to files, kept on disk, and the way back to before them."""

import os
import stat
import sys
from pathlib import Path

import pytest

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import MakeDir, Move, Put, Remove
from towline_agent.workspaces.checkpoints import Checkpoints
from towline_agent.workspaces.keeper import TurnKeeper
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.testing import snapshot
from towline_protocol import FileConflict, Process

SESSION = "ses_1"


class Stage:
    """A folder, and what is kept of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "root"
        self.root.mkdir()
        self.data = tmp_path / "data" / "checkpoints"
        self.checkpoints = self.reopen()

    def reopen(self) -> Checkpoints:
        """As after a restart."""
        self.checkpoints = Checkpoints(self.data, now_ms=lambda: 1_700_000_000_000)
        return self.checkpoints

    def turn(self, turn: str, session: str = SESSION) -> LocalWorkspace:
        """The workspace of a turn."""
        return LocalWorkspace(self.root, keeper=self.keeper(turn, session))

    def keeper(self, turn: str, session: str = SESSION) -> TurnKeeper:
        return self.checkpoints.keeper(session, turn, str(self.root))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def plant(root: Path) -> None:
    """A small project: text, bytes, a program, a link, a folder that is empty."""
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("a = 1\n")
    (root / "src" / "data.bin").write_bytes(bytes(range(256)) * 5000)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o750)
    (root / "link").symlink_to("src/a.py")
    (root / "empty").mkdir(mode=0o700)


@pytest.mark.rules("A5.71", "A5.72", "A5.73")
async def test_a_revert_undoes_a_turn_and_all_later_ones(stage: Stage) -> None:
    plant(stage.root)
    before = snapshot(stage.root)
    first, second = stage.turn("trn_1"), stage.turn("trn_2")
    await first.apply((Put(path="src/a.py", data=b"a = 2\n"), Remove(path="src/data.bin")))
    after_first = snapshot(stage.root)
    await second.apply((
        Put(path="src/a.py", data=b"\xff\x00 no text"),
        Put(path="new/deep/file", data=b"new"),
        Move(source="run.sh", target="new/run"),
        Remove(path="link"),
        Remove(path="empty"),
    ))  # fmt: skip
    assert stage.checkpoints.revert(SESSION, ["trn_2"]).conflicts == ()
    assert snapshot(stage.root) == after_first
    await stage.turn("trn_3").apply((Put(path="third", data=b"3"), MakeDir(path="hollow/in")))
    outcome = stage.checkpoints.revert(SESSION, ["trn_1", "trn_2", "trn_3"])
    assert snapshot(stage.root) == before
    assert outcome.files == ("hollow", "hollow/in", "src/a.py", "src/data.bin", "third")
    assert stage.checkpoints.turns(SESSION) == []


@pytest.mark.rules("A5.71")
async def test_what_is_kept_outlives_a_restart_and_is_for_this_user_alone(stage: Stage) -> None:
    plant(stage.root)
    before = snapshot(stage.root)
    await stage.turn("trn_1").apply((Remove(path="src"), Put(path="run.sh", data=b"x", mode=0o600)))
    stage.reopen().revert(SESSION, ["trn_1"])
    assert snapshot(stage.root) == before
    assert stat.S_IMODE(stage.data.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in stage.data.iterdir()} == {0o600}


@pytest.mark.rules("A5.71")
async def test_an_edit_whose_file_cannot_be_kept_changes_nothing(stage: Stage) -> None:
    plant(stage.root)
    before = snapshot(stage.root)
    stage.data.parent.write_bytes(b"a file where the folder should be")
    with pytest.raises(ToolError, match="cannot be kept"):
        await stage.turn("trn_1").apply((Put(path="src/a.py", data=b"x"),))
    assert snapshot(stage.root) == before


@pytest.mark.rules("A5.75")
async def test_one_later_edit_of_a_person_keeps_everything_as_it_is(stage: Stage) -> None:
    plant(stage.root)
    await stage.turn("trn_1").apply((
        Put(path="src/a.py", data=b"a = 2\n"),
        Put(path="b.py", data=b"b"),
        Remove(path="run.sh"),
        Put(path="c.py", data=b"c"),
    ))  # fmt: skip
    (stage.root / "src/a.py").write_text("a = 3\n")
    (stage.root / "run.sh").write_text("mine")
    (stage.root / "c.py").unlink()
    now = snapshot(stage.root)
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"])
    assert snapshot(stage.root) == now
    assert outcome.files == ()
    assert outcome.conflicts == (
        FileConflict(path="run.sh", what="something was put there since"),
        FileConflict(path="src/a.py", what="it was changed since"),
    )  # `c.py` is absent, as it was before the turn


@pytest.mark.rules("A5.75")
async def test_with_conflicts_skipped_the_others_are_put_back(stage: Stage) -> None:
    plant(stage.root)
    before = snapshot(stage.root)
    await stage.turn("trn_1").apply((Put(path="src/a.py", data=b"a = 2\n"), Remove(path="run.sh")))
    (stage.root / "src/a.py").write_text("a = 3\n")
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"], skip_conflicts=True)
    assert outcome.files == ("run.sh",)
    assert [conflict.path for conflict in outcome.conflicts] == ["src/a.py"]
    assert (stage.root / "src/a.py").read_text() == "a = 3\n"
    (stage.root / "src/a.py").write_text("a = 2\n")  # the person takes their edit back
    assert stage.checkpoints.revert(SESSION, ["trn_1"]).files == ("src/a.py",)
    assert snapshot(stage.root) == before


@pytest.mark.rules("A5.75")
async def test_an_edit_of_a_person_between_two_of_a_turn_is_not_lost(stage: Stage) -> None:
    plant(stage.root)
    turn = stage.turn("trn_1")
    await turn.apply((Put(path="src/a.py", data=b"a = 2\n"),))
    (stage.root / "src/a.py").write_text("a = 3  # a person's\n")
    await turn.apply((Put(path="src/a.py", data=b"a = 4\n"),))
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"])
    assert [conflict.path for conflict in outcome.conflicts] == ["src/a.py"]
    assert (stage.root / "src/a.py").read_text() == "a = 4\n"


@pytest.mark.rules("A5.75")
async def test_another_mode_is_a_later_edit_too(stage: Stage) -> None:
    plant(stage.root)
    await stage.turn("trn_1").apply((Put(path="run.sh", data=b"x"),))
    (stage.root / "run.sh").chmod(0o700)
    assert stage.checkpoints.revert(SESSION, ["trn_1"]).conflicts


@pytest.mark.rules("A5.74", "A5.75")
async def test_a_folder_that_holds_what_no_turn_made_stays_and_is_listed(stage: Stage) -> None:
    await stage.turn("trn_1").apply((Put(path="pkg/a.py", data=b"a"), Put(path="b", data=b"b")))
    (stage.root / "pkg/cache").mkdir()
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"])
    assert outcome.files == ("b", "pkg/a.py")
    assert outcome.unkept == ("pkg: the folder still holds 'cache'",)
    assert list(snapshot(stage.root)) == ["pkg", "pkg/cache"]


@pytest.mark.rules("A5.75")
@pytest.mark.parametrize("swapped", ["src", "src/a.py"])
async def test_a_link_that_was_put_in_the_way_leads_nowhere(
    stage: Stage, tmp_path: Path, swapped: str
) -> None:
    plant(stage.root)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_bytes(b"a = 2\n")
    await stage.turn("trn_1").apply((Put(path="src/a.py", data=b"a = 2\n"),))
    (stage.root / swapped).rename(stage.root / "away")
    target = outside if swapped == "src" else outside / "a.py"
    (stage.root / swapped).symlink_to(target)
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"], skip_conflicts=True)
    assert [conflict.path for conflict in outcome.conflicts] == ["src/a.py"]
    assert (outside / "a.py").read_bytes() == b"a = 2\n"
    assert list(outside.iterdir()) == [outside / "a.py"]


@pytest.mark.rules("A5.72")
async def test_a_file_takes_the_place_of_a_folder_and_gives_it_back(stage: Stage) -> None:
    plant(stage.root)
    before = snapshot(stage.root)
    turn = stage.turn("trn_1")
    await turn.apply((Remove(path="src"), Put(path="src", data=b"a file now")))
    await turn.apply((Remove(path="link"), Put(path="link/in/it", data=b"a folder now")))
    stage.checkpoints.revert(SESSION, ["trn_1"])
    assert snapshot(stage.root) == before


@pytest.mark.rules("A5.72")
async def test_what_is_larger_than_any_piece_goes_and_comes_back_whole(stage: Stage) -> None:
    (stage.root / "large").write_bytes(os.urandom(1000) * 5000)
    (stage.root / "name\udcff").write_bytes(b"no UTF-8 in its name")
    before = snapshot(stage.root)
    turn = stage.turn("trn_1")
    await turn.apply((Remove(path="large"), Remove(path="name\udcff")))
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"])
    assert snapshot(stage.root) == before
    assert outcome.files == ("large", "name�")


@pytest.mark.rules("A5.74")
async def test_commands_are_listed_with_the_kept_files_that_they_changed(stage: Stage) -> None:
    plant(stage.root)
    turn = stage.turn("trn_1")
    await turn.apply((Put(path="src/a.py", data=b"a=2\n"), Put(path="b.py", data=b"b=1\n")))

    async def started(process: Process) -> None:
        del process

    script = "open('b.py', 'w').write('b = 1'); open('junk', 'w')"
    argv = (sys.executable, "-c", script)
    await turn.run(argv, timeout_s=30, on_start=started, on_output=lambda text: None)
    [kept] = stage.checkpoints.turns(SESSION)
    assert kept.files == 2
    assert kept.unkept[0].startswith("what the command did: ")
    assert "open(" in kept.unkept[0]
    assert kept.unkept[0].endswith(" (it changed b.py)")
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"], skip_conflicts=True)
    assert outcome.files == ("src/a.py",)
    assert outcome.unkept == kept.unkept
    [conflict] = outcome.conflicts
    assert conflict.path == "b.py"
    assert conflict.what.startswith("it was changed since, by the command: ")
    assert (stage.root / "b.py").read_text() == "b = 1"


@pytest.mark.rules("A5.74")
async def test_a_command_for_a_shell_is_told_without_the_shell(stage: Stage) -> None:
    turn = stage.turn("trn_1")

    async def started(process: Process) -> None:
        del process

    for argv in (("sh", "-c", "echo a; echo b"), ("sh", "-c", "echo $0", "x")):
        await turn.run(argv, timeout_s=30, on_start=started, on_output=lambda text: None)
    [kept] = stage.checkpoints.turns(SESSION)
    assert kept.unkept == (
        "what the command did: echo a; echo b",
        "what the command did: sh -c 'echo $0' x",
    )


@pytest.mark.rules("A5.74")
async def test_a_turn_that_only_ran_a_command_is_listed(stage: Stage) -> None:
    keeper = stage.keeper("trn_1")
    assert keeper.ended(keeper.ran("make")) == ()
    [kept] = stage.checkpoints.turns(SESSION)
    assert (kept.turn, kept.files, kept.unkept) == ("trn_1", 0, ("what the command did: make",))
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"])
    assert (outcome.files, outcome.unkept) == ((), ("what the command did: make",))


async def test_a_turn_is_told_as_changes_with_diffs_page_by_page(stage: Stage) -> None:
    plant(stage.root)
    turn = stage.turn("trn_1")
    await turn.apply((Put(path="src/a.py", data=b"a = 2\n"),))
    await turn.apply((Put(path="src/a.py", data=b"a = 3\n", mode=0o755), MakeDir(path="new")))
    await turn.apply((Put(path="gone", data=b"x"), Remove(path="src/data.bin")))
    await turn.apply((Remove(path="gone"),))
    changes, count = stage.checkpoints.diff(SESSION, "trn_1", 0, 10)
    assert count == 3
    assert [(change.path, change.kind) for change in changes] == [
        ("new/", "created"),
        ("src/a.py", "changed"),
        ("src/data.bin", "deleted"),
    ]
    text = changes[1].diff or ""
    assert text.startswith("old mode 644\nnew mode 755\n--- a/src/a.py\n+++ b/src/a.py\n")
    assert text.endswith("-a = 1\n+a = 3\n")
    assert changes[2].diff is None
    page, count = stage.checkpoints.diff(SESSION, "trn_1", 2, 1)
    assert ([change.path for change in page], count) == (["src/data.bin"], 3)
    stage.checkpoints.revert(SESSION, ["trn_1"])
    assert stage.checkpoints.diff(SESSION, "trn_1", 0, 10)[0] == changes


async def test_a_fork_goes_back_to_before_the_turns_that_it_has(stage: Stage) -> None:
    plant(stage.root)
    before = snapshot(stage.root)
    await stage.turn("trn_1").apply((Put(path="src/a.py", data=b"a = 2\n"),))
    await stage.turn("trn_2").apply((Put(path="b.py", data=b"b"),))
    stage.checkpoints.copy(SESSION, "ses_2", ["trn_1"])
    assert [kept.turn for kept in stage.checkpoints.turns("ses_2")] == ["trn_1"]
    stage.checkpoints.forget(SESSION)
    assert stage.checkpoints.revert("ses_2", ["trn_1"]).files == ("src/a.py",)
    assert snapshot(stage.root) == {**before, "b.py": snapshot(stage.root)["b.py"]}


async def test_a_deleted_conversation_leaves_nothing(stage: Stage) -> None:
    (stage.root / "large").write_bytes(os.urandom(2_000_000))
    await stage.turn("trn_1").apply((Remove(path="large"),))
    stage.checkpoints.forget(SESSION)
    assert stage.checkpoints.turns(SESSION) == []
    assert sum(path.stat().st_size for path in stage.data.iterdir()) < 300_000
    assert stage.checkpoints.revert(SESSION, ["trn_1"]).files == ()


async def test_the_conversation_that_rests_longest_makes_room_and_a_revert_says_so(
    stage: Stage,
) -> None:
    for number in range(6):
        (stage.root / f"f{number}").write_bytes(os.urandom(300_000))
    for number in range(6):
        turn = stage.turn(f"trn_{number}", f"ses_{number // 3}")
        await turn.apply((Remove(path=f"f{number}"),))
    assert stage.checkpoints.trim(10 * 2**20) == 0
    assert stage.checkpoints.trim(1_300_000) == 2
    assert [kept.turn for kept in stage.checkpoints.turns("ses_0")] == ["trn_2"]
    assert len(stage.checkpoints.turns("ses_1")) == 3
    outcome = stage.checkpoints.revert("ses_0", ["trn_0", "trn_1", "trn_2"])
    assert outcome.files == ("f2",)
    assert outcome.unkept == ("what an earlier turn did was removed to make room",)
    assert stage.checkpoints.trim(0) > 0
    assert [kept.turn for kept in stage.checkpoints.turns("ses_1")] == ["trn_5"]


async def test_many_edits_of_one_file_keep_two_versions(stage: Stage) -> None:
    (stage.root / "a").write_bytes(os.urandom(100_000))
    before = snapshot(stage.root)
    turn = stage.turn("trn_1")
    for _ in range(30):
        await turn.apply((Put(path="a", data=os.urandom(100_000)),))
    stage.reopen()
    assert stage.checkpoints.trim(600_000) == 0  # neither needed nor possible
    stage.checkpoints.revert(SESSION, ["trn_1"])
    assert snapshot(stage.root) == before


async def test_damaged_bytes_are_told_and_never_written(stage: Stage) -> None:
    plant(stage.root)
    await stage.turn("trn_1").apply((Put(path="src/a.py", data=b"x"), Remove(path="run.sh")))
    with stage.checkpoints.vault.write() as kept:
        kept.execute("UPDATE piece SET data = x'00', packed = 0 WHERE length(data) = 10")
    assert len(stage.checkpoints.damages()) == 1
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"])
    assert outcome.files == ("src/a.py",)
    assert outcome.unkept == ("run.sh: what it held before is not kept any more",)


async def test_a_revert_that_the_disk_refuses_leaves_everything_as_it_was(stage: Stage) -> None:
    plant(stage.root)
    await stage.turn("trn_1").apply((Put(path="src/a.py", data=b"x"), Put(path="z", data=b"z")))
    now = snapshot(stage.root)

    def refuse(path: str) -> None:
        if path.endswith("a.py"):
            raise PermissionError(13, "Permission denied", path)

    refusing = Checkpoints(stage.data, now_ms=lambda: 0, on_write=refuse)
    with pytest.raises(ToolError, match=r"Nothing was put back.*src/a\.py"):
        refusing.revert(SESSION, ["trn_1"])
    assert snapshot(stage.root) == now
    assert stage.reopen().revert(SESSION, ["trn_1"]).files == ("src/a.py", "z")


async def test_what_came_of_a_revert_is_known_until_it_was_told(stage: Stage) -> None:
    await stage.turn("trn_1").apply((Put(path="a", data=b"x"),))
    outcome = stage.checkpoints.revert(SESSION, ["trn_1"], rewinds=True)
    assert stage.reopen().untold(SESSION) == [outcome]
    stage.checkpoints.told(outcome)
    assert stage.checkpoints.untold(SESSION) == []

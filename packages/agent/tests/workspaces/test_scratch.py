"""Folders for temporary files: one for each root, gone when nobody uses them."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from towline_agent.errors import ToolError
from towline_agent.workspaces.scratch import drop_scratch, make_scratch

_USER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from towline_agent.workspaces.scratch import make_scratch
print(make_scratch("/elsewhere"), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    drop_scratch(own=True)


def test_a_folder_in_use_stays_and_goes_when_its_user_is_done() -> None:
    place = Path(make_scratch("/project"))
    (place / "deep").mkdir()
    (place / "deep" / "file").write_text("x")
    assert make_scratch("/project") == str(place)
    assert drop_scratch() == 0
    assert place.is_dir()
    assert drop_scratch(own=True) == 1
    assert not list(place.parent.iterdir())
    assert make_scratch("/project") == str(place)


def test_a_folder_of_another_process_stays_until_that_has_ended(temporary: Path) -> None:
    mine = Path(make_scratch("/project"))
    with subprocess.Popen(
        [sys.executable, "-c", _USER, str(temporary)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        assert theirs.is_dir()
        assert drop_scratch() == 0
        other.kill()
        other.wait(30)
    assert drop_scratch() == 1
    assert not theirs.exists()
    assert mine.is_dir()


def test_what_older_versions_left_goes_too_and_nothing_there_is_no_error(temporary: Path) -> None:
    assert drop_scratch() == 0
    ours = Path(make_scratch("/project")).parent
    (ours / "0123456789abcdef").mkdir()
    assert drop_scratch() == 1
    assert temporary.is_dir()


def test_a_folder_that_others_could_enter_is_neither_used_nor_emptied() -> None:
    ours = Path(make_scratch("/project")).parent
    (ours / "old").mkdir()
    ours.chmod(0o755)
    with pytest.raises(ToolError, match="not ours alone"):
        make_scratch("/other")
    assert drop_scratch() == 0
    assert (ours / "old").is_dir()
    ours.chmod(0o700)

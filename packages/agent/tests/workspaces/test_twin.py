"""Secret files under a plain name, by a hard link."""

import os
from pathlib import Path

import pytest

from towline_agent.permissions.secret import is_secret
from towline_agent.workspaces.twin import Twin, Twins


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "deep" / "down").mkdir(parents=True)
    (folder / "deep" / "down" / ".env").write_text("KEY=hidden")
    (folder / "plain.txt").write_text("words")
    return folder


def _twins(root: Path, **bounds: int) -> Twins:
    return Twins(str(root), is_secret, home=str(root.parent / "home"), **bounds)


@pytest.mark.rules("A5.67")
def test_a_hard_link_to_a_secret_is_found_by_its_file(root: Path) -> None:
    os.link(root / "deep" / "down" / ".env", root / "notes.txt")
    assert _twins(root).find(str(root / "notes.txt")) == Twin("deep/down/.env")


@pytest.mark.rules("A5.67")
def test_keys_of_the_home_folder_count_too(root: Path) -> None:
    keys = root.parent / "home" / ".ssh"
    keys.mkdir(parents=True)
    (keys / "config").write_text("Host x")
    os.link(keys / "config", root / "notes.txt")
    assert _twins(root).find(str(root / "notes.txt")) == Twin(str(keys / "config"))


def test_a_hard_link_between_plain_files_is_none(root: Path) -> None:
    os.link(root / "plain.txt", root / "also.txt")
    assert _twins(root).find(str(root / "also.txt")) is None


@pytest.mark.rules("A5.67")
def test_where_the_folder_holds_too_much_it_is_not_known(root: Path) -> None:
    os.link(root / "plain.txt", root / "also.txt")
    twin = _twins(root, most=2).find(str(root / "also.txt"))
    assert twin == Twin(None)
    assert twin is not None
    assert "too much" in (twin.doubt("also.txt") or "")


@pytest.mark.parametrize("name", ["plain.txt", "missing.txt", "deep"])
def test_a_file_of_one_name_a_folder_and_nothing_are_none(root: Path, name: str) -> None:
    assert _twins(root, most=1).find(str(root / name)) is None

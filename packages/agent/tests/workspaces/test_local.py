"""The fence round a folder of this machine."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from towline_agent.errors import ToolDenied, ToolError
from towline_agent.workspaces import local, walk
from towline_agent.workspaces.local import LocalWorkspace
from towline_protocol import Process


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("outside")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "file").write_text("inside")
    return root


def _open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.rules("A5.2", "A5.3")
@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("link", "../secret"),
        ("link", "{tmp}/secret"),
        ("sub/link", "../../secret"),
        ("link", "sub/../../out/secret"),
        ("link", "/etc/passwd"),
    ],
)
async def test_a_link_that_leads_outside_is_denied(root: Path, link: str, target: str) -> None:
    (root / link).symlink_to(target.format(tmp=root.parent))
    with pytest.raises(ToolDenied, match="leads outside"):
        await LocalWorkspace(root).read(link)


@pytest.mark.rules("A5.2", "A5.3")
async def test_a_linked_folder_outside_is_denied_with_all_that_is_in_it(root: Path) -> None:
    (root / "link").symlink_to("../out")
    (root / "again").symlink_to("link")
    workspace = LocalWorkspace(root)
    for path in ("link/secret", "again/secret", "again/../secret"):
        with pytest.raises(ToolDenied):
            await workspace.read(path)
    for path in ("link", "again", "link/.."):
        with pytest.raises(ToolDenied):
            await workspace.walk(path)


@pytest.mark.rules("A5.2")
async def test_links_that_stay_inside_are_followed_and_listed_as_links(root: Path) -> None:
    (root / "sub" / "link").symlink_to("../file")
    (root / "dir").symlink_to("sub")
    (root / "out").symlink_to("../out")
    workspace = LocalWorkspace(root)
    assert (await workspace.read("dir/link")).data == b"inside"
    kinds = {entry.name: entry.kind for entry in (await workspace.walk(".", deep=False)).entries}
    assert kinds == {"sub": "dir", "dir": "link", "out": "link", "file": "file"}


@pytest.mark.rules("A5.2")
async def test_the_root_may_itself_be_a_link(root: Path) -> None:
    linked = root.parent / "linked"
    linked.symlink_to(root)
    workspace = LocalWorkspace(linked)
    assert workspace.root == str(linked)
    assert (await workspace.read("file")).data == b"inside"
    assert (await workspace.read(f"{root}/file")).data == b"inside"
    with pytest.raises(ToolDenied):
        await workspace.read("../secret")


@pytest.mark.rules("A5.2")
@pytest.mark.parametrize("swapped", ["file", "sub"])
async def test_a_link_swapped_in_between_judging_and_opening_is_denied(
    root: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    (root / "sub" / "secret").write_text("inside")
    real_open = os.open

    def swap_and_open(path: Any, flags: int, **more: Any) -> int:
        fd = real_open(path, flags, **more)
        if path == str(root):
            (root / swapped).rename(root.parent / "moved")
            (root / swapped).symlink_to("../out" if swapped == "sub" else "../secret")
        return fd

    before = _open_files()
    monkeypatch.setattr(os, "open", swap_and_open)
    with pytest.raises(ToolDenied):
        await LocalWorkspace(root).read("file" if swapped == "file" else "sub/secret")
    assert _open_files() == before


@pytest.mark.rules("A5.2")
async def test_nothing_outside_is_even_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "link").symlink_to("../secret")
    opened: list[str] = []
    real_open = os.open

    def note_and_open(path: Any, flags: int, **more: Any) -> int:
        opened.append(str(path))
        return real_open(path, flags, **more)

    monkeypatch.setattr(os, "open", note_and_open)
    workspace = LocalWorkspace(root)
    for path in ("link", "../secret", "/etc/passwd"):
        with pytest.raises(ToolDenied):
            await workspace.read(path)
    await workspace.read("file")
    assert opened == [str(root), "file"]


async def test_what_is_no_ordinary_file_is_told_at_once(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        workspace = LocalWorkspace(root)
        before = _open_files()
        for path in ("pipe", "socket"):
            with pytest.raises(ToolError, match="no ordinary file"):
                await workspace.read(path)
        with pytest.raises(ToolError, match="is a folder"):
            await workspace.read("sub")
        with pytest.raises(ToolError, match="is no folder"):
            await workspace.walk("pipe")
        assert _open_files() == before


async def test_paths_that_no_file_can_have_are_told(root: Path) -> None:
    (root / "round").symlink_to("round")
    workspace = LocalWorkspace(root)
    for path in ("a\0b", "x" * 5000, "round", "file/x", "~/x"):
        with pytest.raises(ToolError):
            await workspace.read(path)
        with pytest.raises(ToolError):
            await workspace.walk(path)


async def test_a_root_that_is_gone_is_told(root: Path) -> None:
    workspace = LocalWorkspace(root / "gone")
    with pytest.raises(ToolError, match="no file or folder"):
        await workspace.walk(".")


async def test_a_file_over_the_bound_is_refused_with_a_next_step(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "READ_MAX_BYTES", 2**20)
    workspace = LocalWorkspace(root)
    (root / "whole").write_bytes(b"x" * 2**20)
    (root / "large").write_bytes(b"x" * (2**20 + 1))
    assert len((await workspace.read("whole")).data) == 2**20
    with pytest.raises(ToolError, match=r"'large' is larger than 1 MiB.*`grep`"):
        await workspace.read("large")


async def test_a_walk_over_the_bound_says_that_it_is_cut(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "WALK_MAX", 2)
    workspace = LocalWorkspace(root)
    assert not (await workspace.walk(".")).truncated
    (root / "third").touch()
    cut = await workspace.walk(".")
    assert cut.truncated
    assert [entry.name for entry in cut.entries] == ["file", "sub"]


async def test_a_name_that_is_no_text_can_still_be_told(root: Path) -> None:
    (root / "sub" / os.fsdecode(b"caf\xe9")).touch()
    (entry,) = (await LocalWorkspace(root).walk("sub")).entries
    assert entry.name == "caf\ufffd"


@pytest.mark.rules("A4.25")
async def test_nothing_blocks_the_loop(root: Path) -> None:
    async def start(process: Process) -> None: ...

    workspace = LocalWorkspace(root)
    watch = BlockBuster()
    watch.activate()
    try:
        await workspace.read("file")
        await workspace.walk(".")
        result = await workspace.run(
            ("echo", "a"), timeout_s=30, on_start=start, on_output=lambda text: None
        )
    finally:
        watch.deactivate()
    assert result.output == "a\n"


@pytest.mark.rules("A5.8")
async def test_a_hidden_folder_counts_as_outside_by_every_way_in(root: Path) -> None:
    (root / "data").mkdir()
    (root / "data" / "store").write_text("keys")
    (root / "link").symlink_to("data")
    workspace = LocalWorkspace(root, hidden=(root / "data",))
    for path in ("data/store", "link/store", "sub/../data/store"):
        with pytest.raises(ToolDenied, match="leads outside"):
            await workspace.read(path)
    with pytest.raises(ToolDenied, match="leads outside"):
        await workspace.walk("data")
    assert (await workspace.read("file")).data == b"inside"

"""Paths made to get out of the root: refused, or harmless, with nothing outside read or changed."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import MakeDir, Move, Put, Remove
from towline_agent.workspaces.local import LocalWorkspace

_SECRET = b"what lies outside"
_Snapshot = dict[str, tuple[int, bytes]]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A root with all kinds of traps, and around it what must stay as it is."""
    (tmp_path / "out" / "deep").mkdir(parents=True)
    for name in ("secret", "out/secret", "out/deep/secret", "root2-secret", "ROOT-secret"):
        (tmp_path / name).write_bytes(_SECRET)
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "secret").write_bytes(_SECRET)
    root = tmp_path / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "data" / "keys").mkdir(parents=True)
    (root / "data" / "keys" / "secret").write_bytes(_SECRET)
    (root / "file").write_bytes(b"inside")
    (root / "sub" / "file").write_bytes(b"inside")
    links = {
        "to_file": "../secret",
        "to_folder": "../out",
        "to_above": "..",
        "to_slash": "/",
        "to_absolute": str(tmp_path / "secret"),
        "to_absolute_folder": str(tmp_path / "out"),
        "to_missing": "../missing",
        "to_missing_folder": "../missing/deep",
        "to_sibling": "../root2",
        "to_link": "to_folder",
        "to_link_link": "to_link",
        "to_itself": "to_itself",
        "to_other": "to_one",
        "to_one": "to_other",
        "to_null": "/dev/null",
        "to_zero": "/dev/zero",
        "to_tty": "/dev/tty",
        "to_stdin": "/dev/stdin",
        "to_fd": "/proc/self/fd/0",
        "to_mem": "/proc/self/mem",
        "to_environ": "/proc/self/environ",
        "to_proc_root": "/proc/self/root",
        "to_data": "data",
        "sub/up_out": "../../out",
        "sub/deep/far": "../../../out/deep",
        "sub/back": "../../root/../out",
        "sub/in_and_out": "../sub/../../out",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    os.mkfifo(tmp_path / "out" / "pipe")
    (root / "to_pipe").symlink_to("pipe")
    (root / "hard").hardlink_to(tmp_path / "out" / "deep" / "secret")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root)  # a socket's path may not be long
        listener.bind("socket")
        os.chdir(here)
        yield root


def _outside(root: Path) -> _Snapshot:
    """All that stands outside the root or hidden in it."""
    found: _Snapshot = {}
    for folder in (root.parent, root / "data"):
        for path in folder.rglob("*"):
            if folder == root.parent and path.is_relative_to(root):
                continue
            status = path.lstat()
            data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path)] = (status.st_mode, data)
    return found


_OUT = (
    "..",
    "../",
    "../secret",
    "../out/secret",
    "./../secret",
    "sub/../../secret",
    "sub/../../out/deep/secret",
    "sub//..//..//secret",
    "missing/../../secret",
    "missing/../../../secret",
    "file/../../secret",
    "../root/../secret",
    "../root2/secret",
    "../root2-secret",
    "../ROOT-secret",
    "../../../../../../../../../../etc/passwd",
    "sub/" + "../" * 50 + "etc/passwd",
    "/",
    "//",
    "/etc/passwd",
    "//etc/passwd",
    "/./etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd",
    "/proc/thread-self/environ",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/stdin",
    "/dev/fd/0",
    "{tmp}/secret",
    "{tmp}/root2/secret",
    "{tmp}/./root/../secret",
    "{tmp}/root2-secret",
    "{tmp}/out/../secret",
    "/proc/self/root{tmp}/secret",
    "to_file",
    "./to_file",
    "sub/../to_file",
    "to_folder/secret",
    "to_folder/deep/secret",
    "to_folder/../secret",
    "to_folder/new",
    "to_folder/new/deep",
    "to_folder/pipe",
    "to_above/secret",
    "to_above/out/secret",
    "to_above/root2/secret",
    "to_slash/etc/passwd",
    "to_slash/dev/zero",
    "to_slash{tmp}/secret",
    "to_absolute",
    "to_absolute_folder/secret",
    "to_missing",
    "to_missing/deep",
    "to_missing_folder",
    "to_missing_folder/x",
    "to_sibling/secret",
    "to_link/secret",
    "to_link_link/secret",
    "to_link_link/deep/../secret",
    "to_null",
    "to_zero",
    "to_tty",
    "to_mem",
    "to_environ",
    "to_proc_root/etc/passwd",
    "to_proc_root{tmp}/secret",
    "to_data/keys/secret",
    "to_data",
    "data",
    "data/",
    "data/keys",
    "data/keys/secret",
    "data/new",
    "./data/keys/secret",
    "sub/../data/keys/secret",
    "to_above/root/data/keys/secret",
    "{tmp}/./root/data/keys/secret",
    "sub/up_out/secret",
    "sub/up_out/new",
    "sub/deep/far/secret",
    "sub/back/secret",
    "sub/in_and_out/secret",
    "sub/up_out/../secret",
)
"""Outside, by every way: refused."""

_ODD = (
    "a\0b",
    "\0",
    "../secret\0.txt",
    "x" * 256,
    "x" * 5000,
    "x/" * 3000 + "x",
    "é" * 200,
    "\ud800",
    "sub/\udfff/x",
    "to_itself",
    "to_itself/x",
    "to_one",
    "to_other/x",
    "file/x",
    "pipe",
    "pipe/x",
    "to_pipe",
    "socket",
    "socket/x",
    "to_stdin",
    "to_fd",
)
"""What no file can be, or is none: refused."""

_HARMLESS = (
    "..secret",
    "...",
    "....",
    ".. ",
    " ..",
    "..\n",
    "..\\secret",
    "..\\..\\secret",
    "C:\\secret",
    "C:/secret",
    "~",
    "~/secret",
    "~root/secret",
    "$HOME/secret",
    "%2e%2e/secret",
    "%2e%2e%2fsecret",
    "..%2fsecret",
    "..;/secret",
    "\u2025/secret",
    "\uff0e\uff0e/secret",
    "..\u2215secret",
    "..\u2044secret",
    "\u202e..",
    ".\u200b./secret",
    "file ",
    "file.",
    " file",
    "FILE",
    "Data/secret",
    "DATA",
    "data ",
    "data.",
    "da\u0301ta",
    "dat\uff41",
    "CON",
    "nul.txt",
    "file::$DATA",
    "file:stream",
    "-rf",
    "--",
    "*",
    "sub/*",
    "`id`",
    "$(id)",
    ";rm",
    "|x",
    "new\nline",
    "tab\tname",
    "\x1b[31mred",
    "\x7f",
    "\ufeff",
    "file:///etc/passwd",
    "http://example.test/",
    "\udce9",
    "hard",
    "file/",
    "file/.",
    "sub/./file",
    "sub/deep/../file",
)
"""Odd, but only names in the root."""


def _is_link(path: Path) -> bool:
    return path.is_symlink()


async def _try_all(root: Path, path: str, workspace: LocalWorkspace) -> list[str]:
    """Everything that can be done with a path; what was done without an error."""
    done: list[str] = []
    told: list[str] = []
    uses: dict[str, Callable[[], Any]] = {
        "read": lambda: workspace.read(path),
        "walk": lambda: workspace.walk(path, ignored=True),
        "list": lambda: workspace.walk(path, deep=False),
        "move here": lambda: workspace.apply((Move(source="sub/file", target=path),)),
        "put": lambda: workspace.apply((Put(path=path, data=b"mine"),)),
        "put below": lambda: workspace.apply((Put(path=f"{path}/below", data=b"mine"),)),
        "make": lambda: workspace.apply((MakeDir(path=path),)),
        "move away": lambda: workspace.apply((Move(source=path, target="taken"),)),
        "remove": lambda: workspace.apply((Remove(path=path),)),
    }
    for name, use in uses.items():
        try:
            result = await use()
        except ToolError as error:
            told.append(error.message)
        else:
            done.append(name)
            assert _SECRET not in getattr(result, "data", b"") or path == "hard"
            for entry in getattr(result, "entries", ()):
                assert "secret" not in entry.name or path in _HARMLESS
    assert not [message for message in told if not message or _SECRET.decode() in message]
    return done


@pytest.mark.wide
@pytest.mark.rules("A5.2", "A5.3", "A5.8")
@pytest.mark.parametrize("path", _OUT)
async def test_a_path_that_leads_outside_is_refused_in_every_use(root: Path, path: str) -> None:
    workspace = LocalWorkspace(root, hidden=(root / "data",))
    before = _outside(root)
    path = path.format(tmp=root.parent)
    ends_in_link = _is_link(root / path)
    done = await _try_all(root, path, workspace)
    # a link itself lies inside: it may be moved and removed
    assert set(done) <= ({"move away", "remove"} if ends_in_link else set())
    assert _outside(root) == before


@pytest.mark.wide
@pytest.mark.rules("A5.2")
@pytest.mark.parametrize("path", _ODD)
async def test_what_no_file_can_be_is_refused_at_once(root: Path, path: str) -> None:
    workspace = LocalWorkspace(root, hidden=(root / "data",))
    before = _outside(root)
    done = await _try_all(root, path, workspace)
    assert not {"read", "walk", "list", "put", "put below", "make"} & set(done)
    assert _outside(root) == before


@pytest.mark.wide
@pytest.mark.rules("A5.1", "A5.3")
@pytest.mark.parametrize("path", _HARMLESS)
async def test_an_odd_name_is_only_a_name_in_the_root(root: Path, path: str) -> None:
    workspace = LocalWorkspace(root, hidden=(root / "data",))
    before = _outside(root)
    done = await _try_all(root, path, workspace)
    assert done
    assert _outside(root) == before


def _swap(folder: Path, target: Path) -> None:
    """Put a link in the place of what is there."""
    folder.rename(folder.with_name(f"{folder.name}-was"))
    folder.symlink_to(target)


_USES: dict[str, Callable[[LocalWorkspace], Any]] = {
    "read": lambda workspace: workspace.read("sub/deep/secret"),
    "walk": lambda workspace: workspace.walk("sub/deep"),
    "put over": lambda workspace: workspace.apply((Put(path="sub/deep/secret", data=b"mine"),)),
    "put new": lambda workspace: workspace.apply((Put(path="sub/deep/new", data=b"mine"),)),
    "put below": lambda workspace: workspace.apply((Put(path="sub/deep/a/b", data=b"mine"),)),
    "make": lambda workspace: workspace.apply((MakeDir(path="sub/deep/made"),)),
    "remove": lambda workspace: workspace.apply((Remove(path="sub/deep/secret"),)),
    "remove folder": lambda workspace: workspace.apply((Remove(path="sub/deep"),)),
    "move": lambda workspace: workspace.apply((Move(source="sub/deep/secret", target="x"),)),
    "move to": lambda workspace: workspace.apply((Move(source="file", target="sub/deep/x"),)),
    "two": lambda workspace: workspace.apply(
        (Put(path="sub/deep/new", data=b"mine"), Remove(path="sub/deep/secret"))
    ),
}


@pytest.mark.wide
@pytest.mark.rules("A5.2")
@pytest.mark.parametrize("swapped", ["sub", "sub/deep", "sub/deep/secret"])
@pytest.mark.parametrize("use", _USES)
async def test_a_link_that_is_swapped_in_at_any_moment_leads_nowhere(
    root: Path, monkeypatch: pytest.MonkeyPatch, use: str, swapped: str
) -> None:
    """Each call of the system in turn is the moment before which the link appears."""
    outside = root.parent / "out"
    (outside / "deep" / "deep").mkdir()
    (outside / "deep" / "deep" / "secret").write_bytes(_SECRET)
    before = _outside(root)
    target = {"sub": outside, "sub/deep": outside / "deep", "sub/deep/secret": outside / "secret"}
    moment = calls = 0
    while calls >= moment:
        calls = 0
        place = root / "sub"
        if place.is_symlink() or place.exists():
            for path in (place, root / "sub-was", root / "x", root / "file"):
                _clear(path)
        (place / "deep").mkdir(parents=True)
        (place / "deep" / "secret").write_bytes(b"inside")
        (root / "file").write_bytes(b"inside")
        with monkeypatch.context() as patch:
            for name in ("open", "stat", "link", "rename", "mkdir", "unlink", "scandir"):

                def swap_first(*args: Any, real: Any = getattr(os, name), **more: Any) -> Any:  # noqa: B008
                    nonlocal calls
                    calls += 1
                    if calls == moment + 1:  # noqa: B023 - called before the loop goes on
                        patch.undo()
                        if os.path.lexists(root / swapped):
                            _swap(root / swapped, target[swapped])
                    return real(*args, **more)

                patch.setattr(os, name, swap_first)
            try:
                result = await _USES[use](LocalWorkspace(root, hidden=(root / "data",)))
            except ToolError:
                result = None
        assert _SECRET not in getattr(result, "data", b"")
        assert all(entry.size < len(_SECRET) for entry in getattr(result, "entries", ()))
        assert _outside(root) == before
        moment += 1
    assert moment > 3


def _clear(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        for below in path.iterdir():
            _clear(below)
        path.rmdir()


def test_the_table_is_long_enough() -> None:
    assert len({*_OUT, *_ODD, *_HARMLESS}) >= 120

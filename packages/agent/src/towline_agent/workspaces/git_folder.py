"""What a repository of git holds, read without its say: no program that it names is started."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["Repository", "find_repository", "read_history", "read_index", "tell_start"]

_CONFIG_BYTES: Final = 1024 * 1024
_INDEX_BYTES: Final = 64 * 2**20
_HISTORY_BYTES: Final = 1024 * 1024
_GIT_S: Final = 5.0
"""Seconds for one look; a longer history is not looked through."""
_KINDS: Final = frozenset({0o040000, 0o100000, 0o120000, 0o160000})
"""What git tracks: folders of a thinned index, files, links, repositories."""
_SUBMODULES_MAX: Final = 30
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": os.devnull,
    "LC_ALL": "C",
}
"""All that our own git is told (A5.23)."""
_STARTS: Final = re.compile(
    r"core\.(fsmonitor|pager|hookspath|sshcommand|gitproxy|alternaterefscommand|worktree)|"
    r"pager\..*|diff\.external|diff\..*\.(command|textconv)|filter\..*\.(clean|smudge|process)|"
    r"merge\..*\.driver|gpg\.(.*\.)?program|log\.showsignature|include(if\..*)?\.path|"
    r"interactive\.difffilter|remote\..*\.(uploadpack|vcs)|protocol\..*|"
    r"alias\.(diff|log|status|show|grep|blame)",
    re.DOTALL,
)
"""Settings by which git starts a program when it reads, or reads settings or files elsewhere."""
_SAFE_VALUES: Final = {
    "core.fsmonitor": frozenset({"true", "false", "0", "1", "yes", "no", "on", "off", ""}),
    "log.showsignature": frozenset({"false", "0", "no", "off"}),
}
_SWITCHES: Final = frozenset({"true", "false", "0", "1", "yes", "no", "on", "off"})
_HOOKS: Final = ("post-index-change",)
"""Hooks that a command which only reads may run, as it notes what it has seen of files."""


class Repository(NamedTuple):
    """Where a repository keeps its things."""

    top: str
    """The folder that its paths begin at."""
    git: str
    """The folder of this work tree's things."""
    common: str
    """The folder of what all its work trees share."""


class IndexEntry(NamedTuple):
    """One file that git tracks."""

    path: str
    """From the top."""
    is_link: bool
    """Whether it is another repository in this one."""


def find_repository(folder: str) -> Repository | None:
    """The repository that git finds from a folder; `None` for none. Blocks."""
    here = folder
    while True:
        dot = os.path.join(here, ".git")
        if os.path.isdir(dot):
            return _opened(here, dot)
        if os.path.lexists(dot):
            return _opened(here, _read_link(here, dot))
        if _is_git_folder(here):
            return _opened(here, here)
        if here == os.path.dirname(here):
            return None
        here = os.path.dirname(here)


def tell_start(found: Repository, seen: int = 0) -> str | None:
    """A sentence on the program that a repository has git start; `None` for none. Blocks.

    Also of the repositories in it, into which git looks.
    """
    for place in (found.common, found.git):
        for name in ("config", "config.worktree"):
            told = _tell_config(found, os.path.join(place, name))
            if told is not None:
                return told
    for hook in _HOOKS:
        if os.path.lexists(os.path.join(found.common, "hooks", hook)):
            return f"git would run the hook {hook!r} of this repository."
    entries = read_index(found)
    if entries is None:
        return None
    inner = [os.path.join(found.top, entry.path) for entry in entries if entry.is_link]
    if seen + len(inner) > _SUBMODULES_MAX:
        return f"This repository holds more than {_SUBMODULES_MAX} others, which git looks into."
    for folder in inner:
        below = find_repository(folder) if os.path.lexists(os.path.join(folder, ".git")) else None
        told = None if below is None else tell_start(below, seen + len(inner))
        if told is not None:
            return told
    return None


def read_index(found: Repository) -> tuple[IndexEntry, ...] | None:
    """The files that git tracks; `None` when that can't be read. Blocks."""
    raw = _read(os.path.join(found.git, "index"), _INDEX_BYTES)
    if raw is None:
        return None
    if raw == b"":
        return ()
    try:
        names = os.listdir(found.git)
        if any(name.startswith("sharedindex.") for name in names):
            return None
        return tuple(_parse_index(raw))
    except (OSError, ValueError, IndexError):
        return None


def read_history(found: Repository, patterns: Sequence[str]) -> tuple[str, ...] | None:
    """The paths that any commit had and a pattern fits; `None` when that can't be said. Blocks.

    Args:
        found: The repository. No setting of it may start a program: see `tell_start`.
        patterns: Of names, as in a shell, whatever folder they stand in.
    """
    specs = [f":(top,icase,glob)**/{pattern}" for pattern in patterns]
    if not os.path.isdir(os.path.join(found.common, "objects")):
        return ()
    out = _run_git(
        ("-c", "core.fsmonitor=false", "-c", "protocol.allow=never", f"--git-dir={found.git}"),
        ("log", "--all", "--reflog", "-m", "--format=", "--name-only", "-z", "--no-renames"),
        ("--no-ext-diff", "--no-textconv", "--no-show-signature", "--", *specs),
        folder=found.git,
    )
    if out is None:
        return None
    names = {os.fsdecode(name.strip(b"\n")) for name in out.split(b"\0")}
    return tuple(sorted(name for name in names if name))


def _opened(top: str, git: str | None) -> Repository:
    if git is None:
        return Repository(top, top, top)
    common = _read(os.path.join(git, "commondir"), 4096)
    shared = git
    if common:
        shared = os.path.join(git, os.fsdecode(common.strip()))
    return Repository(top, os.path.realpath(git), os.path.realpath(shared))


def _read_link(here: str, dot: str) -> str | None:
    raw = _read(dot, 4096) or b""
    if not raw.startswith(b"gitdir:"):
        return None
    return os.path.join(here, os.fsdecode(raw.removeprefix(b"gitdir:").strip()))


def _is_git_folder(folder: str) -> bool:
    """Whether git takes the folder itself for a repository without a work tree."""
    names = ("HEAD", "objects", "refs")
    return all(os.path.lexists(os.path.join(folder, name)) for name in names)


def _tell_config(found: Repository, path: str) -> str | None:
    raw = _read(path, _CONFIG_BYTES)
    if raw is None:
        return "The settings of this repository can't be read, so what git starts is not known."
    listed = _list_config(raw)
    if listed is None:
        return "The settings of this repository can't be read, so what git starts is not known."
    for key, value in listed:
        if _STARTS.fullmatch(key) is not None and not _is_harmless(found, key, value):
            return f"git would heed {key!r} of this repository, which may start a program."
    return None


def _is_harmless(found: Repository, key: str, value: str) -> bool:
    if key == "core.worktree":
        there = os.path.realpath(os.path.join(found.git, value))
        return there == os.path.realpath(found.top)
    if key.startswith("pager."):
        return value.lower() in _SWITCHES
    return value.lower() in _SAFE_VALUES.get(key, ())


def _list_config(raw: bytes) -> list[tuple[str, str]] | None:
    """Keys with their values as git itself reads them; other files that it includes are not."""
    if not raw.strip():
        return []
    out = _run_git(("config", "--file", "-", "--no-includes", "--list", "-z"), data=raw)
    if out is None:
        return None
    pairs = [entry.decode("utf-8", "replace").partition("\n") for entry in out.split(b"\0")]
    return [(_lower(key), value) for key, _, value in pairs if key]


def _lower(key: str) -> str:
    first, _, rest = key.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{first.lower()}.{middle}{dot}{last.lower()}"


def _run_git(*words: Sequence[str], folder: str = "/", data: bytes = b"") -> bytes | None:
    """What a git of ours prints; `None` when it fails, or takes or says too much."""
    git = shutil.which("git")
    if git is None:
        return None
    argv = [git, *(word for part in words for word in part)]
    environment = {**_ENVIRONMENT, "PATH": os.defpath}
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the words are ours
            argv,
            input=data,
            capture_output=True,
            cwd=folder,
            env=environment,
            timeout=_GIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    too_much = len(done.stdout) > _HISTORY_BYTES
    return None if done.returncode != 0 or too_much else done.stdout


def _read(path: str, most: int) -> bytes | None:
    """A file's bytes, none for a missing one; `None` when it can't be read whole."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return b""
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            raw = file.read(most + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    return None if len(raw) > most else raw


def _parse_index(raw: bytes) -> Iterator[IndexEntry]:
    """The entries of an index of version 2, 3 or 4.

    Raises:
        ValueError: It is none.
        IndexError: It ends too early.
    """
    version, count = int.from_bytes(raw[4:8], "big"), int.from_bytes(raw[8:12], "big")
    if raw[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index of git that is known here")
    place, before = 12, b""
    for _ in range(count):
        mode = int.from_bytes(raw[place + 24 : place + 28], "big")
        flags = int.from_bytes(raw[place + 60 : place + 62], "big")
        at = place + (64 if flags & 0x4000 else 62)
        if version == 4:
            cut, at = _read_number(raw, at)
            end = raw.index(b"\0", at)
            name = before[: len(before) - cut] + raw[at:end]
            place = end + 1
        else:
            end = raw.index(b"\0", at)
            name = raw[at:end]
            place += (end - place + 8) // 8 * 8
        if name < before or mode & 0o170000 not in _KINDS:
            raise ValueError("an index of another kind")
        before = name
        yield IndexEntry(os.fsdecode(name), mode & 0o170000 == 0o160000)


def _read_number(raw: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as git packs it, and where it ends."""
    byte = raw[at]
    number = byte & 127
    while byte & 128:
        at += 1
        byte = raw[at]
        number = ((number + 1) << 7) | (byte & 127)
    return number, at + 1

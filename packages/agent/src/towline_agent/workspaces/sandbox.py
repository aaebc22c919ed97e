"""Where programs are fenced in: bubblewrap, else landlock, else nothing, and that is said (A5.21).

In a sandbox a program has no network unless it was given it, writes only in its folder and in
temporary files of its own, and cannot read towline's data nor the places of keys. What remains: it
reads all else that its user may read; with the network it reaches the services of this machine
too; and landlock, which needs no more than the kernel, neither hides other processes' names nor
closes the network but for TCP.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces import launcher
from towline_agent.workspaces.landlock import MIN_ABI, landlock_abi, landlock_words
from towline_agent.workspaces.scratch import make_scratch
from towline_protocol import UsageError

__all__ = [
    "SANDBOXES",
    "Confined",
    "Confinement",
    "Sandbox",
    "bubblewrap_argv",
    "find_secret_places",
]

SANDBOXES: Final = ("auto", "off", "required")
"""`auto`: the best there is. `off`: none. `required`: without one no program runs."""

_SECRETS: Final = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials"),
    *(".pypirc", ".npmrc", ".pgpass", ".my.cnf", ".vault-token", ".password-store"),
    *(".config/towline", ".config/gcloud", ".config/gh", ".config/git/credentials"),
    *(".config/op", ".config/sops", ".config/rclone", ".cargo/credentials.toml"),
    *(".local/share/towline", ".local/share/keyrings", "Library/Keychains"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird"),
)
"""Below a home folder: where keys, passwords and sessions of browsers lie."""
_MOST_SECRET: Final = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d")

_CAPABILITIES: Final = ("DAC_OVERRIDE", "CHOWN", "FOWNER", "FSETID", "SETUID", "SETGID", "KILL")
"""What root keeps of its powers, for files of other owners in its folder; the others go."""
_COVERED: Final = ("/tmp/", "/run/")  # noqa: S108 - places that are empty inside
_RESOLVERS: Final = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf")
_PROBE_S: Final = 5.0
"""A sandbox takes some milliseconds; one that takes seconds would not be used."""


class Sandbox(msgspec.Struct, frozen=True):
    """What this machine offers."""

    kind: str
    """`bubblewrap`, `landlock` or `none`."""
    why: str = ""
    """Why it is no better one, as a sentence for people."""
    options: tuple[str, ...] = ()
    """Of bubblewrap: the program and the options that it bears here."""


class Confined(msgspec.Struct, frozen=True):
    """How one program is run in a sandbox."""

    prefix: tuple[str, ...] = ()
    """What comes before its command line."""
    words: tuple[str, ...] = ()
    """What its launcher gives up; see `launcher`."""
    scratch: str | None = None
    """Its temporary folder, as it sees it; `None` for the usual one."""


_lock: Final = threading.Lock()
_found: list[Sandbox] = []


def _find_sandbox() -> Sandbox:
    """The best that works here; tried once in a process. Blocks."""
    with _lock:
        if not _found:
            _found.append(_probe())
        return _found[0]


def _probe() -> Sandbox:
    if sys.platform != "linux":
        return Sandbox("none", "there is none on this system")
    found = shutil.which("bwrap")
    why = "bubblewrap is not installed"
    if found is not None:
        privileged = tuple(w for name in _CAPABILITIES for w in ("--cap-add", f"CAP_{name}"))
        tries = [privileged, ()] if os.geteuid() == 0 else [()]
        for options in tries:
            failure = _try_bubblewrap((found, *options))
            if not failure:
                return Sandbox("bubblewrap", options=(found, *options))
            why = f"bubblewrap does not work here ({failure})"
    return _without_bubblewrap(why)


def _without_bubblewrap(why: str) -> Sandbox:
    abi = landlock_abi()
    if abi >= MIN_ABI:
        return Sandbox("landlock", why)
    return Sandbox("none", f"{why}, and the kernel has no landlock of use")


def _try_bubblewrap(options: Sequence[str]) -> str:
    """Why bubblewrap cannot be used so; empty when it can."""
    with tempfile.TemporaryDirectory(prefix="towline-") as folder:
        argv = bubblewrap_argv(options, root=folder, scratch=folder, hidden=(), shown=())
        try:
            done = subprocess.run(  # noqa: S603 - our own words
                [*argv, "true"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return type(error).__name__
    if done.returncode == 0:
        return ""
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return words[-1].removeprefix("bwrap: ") if words else f"exit code {done.returncode}"


def bubblewrap_argv(
    options: Sequence[str],
    *,
    root: str,
    scratch: str,
    hidden: Sequence[tuple[str, bool]],
    shown: Sequence[str],
    writable: Sequence[str] = (),
    network: bool = False,
) -> tuple[str, ...]:
    """The command line before the program's own; all paths are real ones.

    Args:
        options: `bwrap`, with what it needs here.
        root: The folder that may be written.
        scratch: The folder that stands at `/tmp` inside.
        hidden: Places that are empty inside, each with whether it is a folder.
        shown: Places below `/tmp` and `/run` that can be read all the same.
        writable: More that may be written.
        network: Whether the network stays.
    """
    mounts: dict[str, tuple[str, ...]] = {
        "/dev": ("--dev", "/dev"),
        "/proc": ("--proc", "/proc"),
        "/run": ("--tmpfs", "/run"),
        "/tmp": ("--bind", scratch, "/tmp"),  # noqa: S108 - its own one
    }
    resolvers = _RESOLVERS if network else ()
    mounts.update((place, ("--ro-bind-try", place, place)) for place in (*resolvers, *shown))
    for place, is_folder in hidden:
        if place.startswith(_COVERED) and not _is_below(place, (root, *writable, *shown)):
            continue  # nothing of the place above it is there
        mounts[place] = ("--tmpfs", place) if is_folder else ("--ro-bind", "/dev/null", place)
    mounts.update((place, ("--bind", place, place)) for place in (*writable, root))
    argv = [*options, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    if not network:
        argv.append("--unshare-net")
    argv += ["--ro-bind", "/", "/"]
    for place in sorted(mounts, key=lambda found: found.count("/") if found != "/" else 0):
        argv += mounts[place]  # what lies above comes first, or it would cover what is below
    return (*argv, "--chdir", root, "--")


def _is_below(place: str, folders: Iterable[str]) -> bool:
    return any(Path(place).is_relative_to(folder) for folder in folders)


def find_secret_places(home: Path, hidden: Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """The real places that no program may read, and whether each is a folder. Blocks."""
    named = (*(home / name for name in _SECRETS), *map(Path, _MOST_SECRET), *map(Path, hidden))
    found: dict[str, bool] = {}
    for place in named:
        try:
            real = place.resolve(strict=True)
            found[str(real)] = real.is_dir()
        except (OSError, RuntimeError):
            continue  # it is not there, or not for us
    return tuple(found.items())


class Confinement:
    """How the programs of one folder are kept in.

    Args:
        root: The folder.
        mode: One of `SANDBOXES`.
        hidden: Places that they may not read, beside those of keys.

    Raises:
        UsageError: There is no such mode.
    """

    def __init__(self, root: str, *, mode: str = "auto", hidden: Iterable[str] = ()) -> None:
        if mode not in SANDBOXES:
            raise UsageError(f"The sandbox is {mode!r}; choose one of {', '.join(SANDBOXES)}.")
        self._root = root
        self._mode = mode
        self._hidden = tuple(hidden)

    def find(self) -> Sandbox:
        """The sandbox that its programs run in. Blocks at the first time.

        Raises:
            ToolError: One is required and there is none.
        """
        if self._mode == "off":
            return Sandbox("none", "it is switched off")
        found = _find_sandbox()
        if found.kind == "none" and self._mode == "required":
            raise ToolError(
                f"No program may run here: the server's settings require a sandbox, and {found.why}"
                ". Work without programs, or ask the person to see to it."
            )
        return found

    def describe(self) -> str:
        """What a model should know of it before it plans (A4.10). Blocks at the first time."""
        try:
            found = self.find()
        except ToolError as error:
            return error.message
        if found.kind == "none":
            return "Programs run without a sandbox: they can change and reach what the person can."
        return (
            "Programs run in a sandbox: they write in this folder and in temporary files of their "
            "own alone, and reach the network only when you ask for it and it is allowed."
        )

    def tell(self, *, network: bool) -> str:
        """What a person should know before they allow a program; empty when it is fenced in.

        Raises:
            ToolError: A sandbox is required and there is none.
        """
        found = self.find()
        if found.kind == "none":
            return (
                f"No sandbox ({found.why}): it can change and read all that you can, and use the "
                "network."
            )
        words = "It may use the network." if network else ""
        if found.kind == "landlock" and not network:
            words = "A simple sandbox: of the network only TCP is closed to it."
        return words

    def prepare(self, *, network: bool, writable: Iterable[str] = ()) -> Confined:
        """How a program is run now. Blocks.

        Args:
            network: Whether it may reach the network.
            writable: Real paths outside the folder that it may write too.

        Raises:
            ToolError: A sandbox is required and there is none, or there is no place for its
                temporary files.
        """
        found = self.find()
        if found.kind == "none":
            return Confined()
        root = str(Path(self._root).resolve())
        hidden = find_secret_places(Path.home(), self._hidden)
        scratch = make_scratch(root)
        allowed = tuple(place for place in writable if Path(place).exists())
        if found.kind == "landlock":
            words = landlock_words(
                writable=(root, scratch, *allowed),
                hidden=tuple(place for place, _ in hidden),
                network=network,
            )
            return Confined(words=words, scratch=scratch)
        prefix = bubblewrap_argv(
            found.options,
            root=root,
            scratch=scratch,
            hidden=hidden,
            shown=_find_shown(),
            writable=allowed,
            network=network,
        )
        return Confined(prefix=prefix, scratch="/tmp")  # noqa: S108 - its own one

    def give_up(self, why: str) -> Sandbox:
        """The sandbox has failed: from now on the next best one is used in this process."""
        with _lock:
            kind = _found[0].kind if _found else "bubblewrap"
            why = f"{kind} does not work here ({why})"
            _found[:] = [Sandbox("none", why) if kind != "bubblewrap" else _without_bubblewrap(why)]
            return _found[0]


def _find_shown() -> tuple[str, ...]:
    """What programs need of the places that are empty inside: ours, and those on the path."""
    ours = (sys.prefix, sys.base_prefix, str(Path(launcher.__file__).parent))
    named = (*ours, *os.environ.get("PATH", "").split(os.pathsep))
    real = {str(Path(place).resolve()) for place in named if place} | {*ours}
    return tuple(sorted(p for p in real if p.startswith(_COVERED) and Path(p).exists()))

"""Find a program that can fetch a wheel from the person's package index, and run it.

The environment decides which there is: one made by `venv` or pipx has pip, one made by uv (`uv
sync`, `uv tool install`) has none but has uv on the path, and a bare Python has `ensurepip`.
"""

import asyncio
import contextlib
import errno
import importlib.util
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from towline.local.errors import SourceFailed

__all__ = ["CommandRunner", "find_uv", "installed_runner", "make_runner", "pip_runner", "uv_runner"]

RUN_TIMEOUT_S = 900.0
"""The longest one part may take: 50 MB at 60 kB/s."""

READ_TIMEOUT_S = 20
"""How long the index may be silent, given to pip and uv."""

MAX_REASON_CHARS = 300

_UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|Temporary failure in name resolution"
    r"|Connection refused|dns error|tcp connect error|Network is unreachable|timed out",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(r"://[^/\s@]+@")


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """A `PartRunner` that runs `command FOLDER REQUIREMENT`."""

    name: str
    """`pip` or `uv`, for messages."""
    command: tuple[str, ...]
    """The program and its flags; the last flag takes the folder."""
    environ: Mapping[str, str]
    """The environment it runs in; it holds the person's own index settings."""

    async def __call__(self, requirement: str, folder: Path) -> None:
        """Fetch `requirement` into `folder`.

        Raises:
            SourceFailed: The program failed; the reason is its own last word.
            OSError: It found no room in the folder.
        """
        # Its own temporary files go there too: the usual place may be small and in memory.
        env = {**self.environ, "TMPDIR": str(folder)}
        program = await _start((*self.command, str(folder), requirement), folder, env)
        try:
            async with asyncio.timeout(RUN_TIMEOUT_S):
                _, errors = await program.communicate()
        except TimeoutError as error:
            raise SourceFailed(
                f"{self.name} did not fetch {requirement} in {RUN_TIMEOUT_S:.0f} s"
            ) from error
        finally:
            if program.returncode is None:
                await _end(program)
        if program.returncode != 0:
            raise self._failure(requirement, errors.decode("utf-8", "replace"))

    def _failure(self, requirement: str, errors: str) -> SourceFailed | OSError:
        if "No space left on device" in errors or "os error 28" in errors:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if _UNREACHABLE.search(errors):
            return SourceFailed("it cannot be reached")
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        marked = [line for line in lines if line.lower().startswith("error")]
        last = (marked or lines or ["it said nothing"])[-1]
        reason = _CREDENTIALS.sub("://", last)[:MAX_REASON_CHARS]
        return SourceFailed(f"{self.name} could not fetch {requirement} ({reason})")


def installed_runner(environ: Mapping[str, str] = os.environ) -> CommandRunner | None:
    """A runner for the Python that runs now: its own pip, else uv, else `None`. Reads the disk.

    Args:
        environ: The environment to search and to run in.
    """
    if importlib.util.find_spec("pip") is not None:
        return pip_runner(Path(sys.executable), environ)
    uv = find_uv(environ)
    return uv_runner(uv, environ) if uv is not None else None


async def make_runner(scratch: Path, environ: Mapping[str, str] = os.environ) -> CommandRunner:
    """A runner on a pip out of Python's own bundle, in an environment made inside `scratch`.

    Raises:
        SourceFailed: This Python brings no pip.
    """
    made = scratch / "pip"
    maker = await _start((sys.executable, "-m", "venv", "--clear", str(made)), None, environ)
    try:
        async with asyncio.timeout(RUN_TIMEOUT_S):
            await maker.communicate()
    except TimeoutError as error:
        raise SourceFailed(f"no pip was made in {RUN_TIMEOUT_S:.0f} s to ask it with") from error
    finally:
        if maker.returncode is None:
            await _end(maker)
    if maker.returncode != 0:
        raise SourceFailed(
            "there is neither pip nor uv here to ask it with (`python -m ensurepip` or "
            "`apt-get install python3-venv` brings pip)"
        )
    return pip_runner(made / "bin" / "python", environ)


def pip_runner(python: Path, environ: Mapping[str, str]) -> CommandRunner:
    """A runner on the pip of `python`. The wheel stays packed."""
    flags = (
        *("-q", "--no-input", "--disable-pip-version-check", "--no-deps", "--no-cache-dir"),
        *("--only-binary=:all:", "--retries", "1", "--timeout", str(READ_TIMEOUT_S), "--dest"),
    )
    return CommandRunner("pip", (str(python), "-m", "pip", "download", *flags), environ)


def uv_runner(uv: Path, environ: Mapping[str, str]) -> CommandRunner:
    """A runner on `uv`. It has no download command, so the wheel comes unpacked in the folder."""
    flags = (
        *("--quiet", "--no-progress", "--no-deps", "--no-cache", "--only-binary", ":all:"),
        *("--python", sys.executable, "--target"),
    )
    environ = {"UV_HTTP_TIMEOUT": str(READ_TIMEOUT_S), **environ}
    return CommandRunner("uv", (str(uv), "pip", "install", *flags), environ)


def find_uv(environ: Mapping[str, str]) -> Path | None:
    """The uv that `uv run` names, the one beside this Python, or on the path."""
    beside = Path(sys.executable).with_name("uv")
    for candidate in (environ.get("UV"), str(beside), shutil.which("uv", path=environ.get("PATH"))):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    return None


async def _start(
    command: tuple[str, ...], folder: Path | None, environ: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """Start a program that is told nothing and says only its errors."""
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SourceFailed(f"{command[0]} cannot be started ({error.strerror})") from error


async def _end(program: asyncio.subprocess.Process) -> None:
    """Kill the program and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    await program.wait()

"""Runs a search in a child process: `rg` when there is one, else Python (A5.9)."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.search.hits import HITS_MAX, FileHits, HitReader, sort_key
from towline_agent.workspaces.threads import ThreadPool

__all__ = ["Found", "Query", "find_rg", "search_with_python", "search_with_rg"]

TIMEOUT_S: Final = 20.0
"""Seconds for one search; a regex that takes longer will not end."""

FILE_S: Final = 2.0
"""Seconds for one file without `rg`: a regex that takes longer on 16 MiB will not end soon."""

_SEARCHES: Final = ThreadPool("towline-search", 4)
"""Each waits for one child."""
_READ_BYTES: Final = 65_536
_STDERR_BYTES: Final = 8192
_ENVIRONMENT: Final = {"LC_ALL": "C"}
"""All that a search is told: no settings, no keys (A5.23)."""

_RG: Final = (
    *("--json", "--no-config", "--no-messages", "--no-ignore-messages", "--hidden", "--no-mmap"),
    *("--crlf", "--no-require-git", "--no-ignore-global", "--no-ignore-exclude"),
    *("--no-ignore-dot", "--glob=!.git"),
)
"""Links are not followed unless asked for. Of all files that say what to leave out only
`.gitignore` counts, as in a walk."""
_TOO_OLD: Final = ("unrecognized flag", "unexpected argument", "Found argument")
"""What an `rg` says that does not know one of these."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for."""

    pattern: str
    """A regex of one line, or the words themselves."""
    literal: bool = False
    """Whether the words themselves are meant."""
    ignore_case: bool = False
    """Whether upper and lower case are the same."""
    context: int = 0
    """Lines shown before and behind each hit."""
    ignored: bool = False
    """Whether files that a `.gitignore` leaves out are searched too."""
    wants: Callable[[str], bool]
    """Whether a file counts, by its path below the folder that is searched."""
    names: tuple[str, ...] = ()
    """Globs of names that all files that count have; none for any name."""
    needed: int
    """Hits that are shown, those before the page included."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    files: tuple[FileHits, ...]
    """In the order of their paths."""
    is_whole: bool = True
    """Whether these are all hits; else there are more behind them."""
    skipped: int = 0
    """Files that could not be searched."""


class _Unusable(Exception):
    """The `rg` that was found does not do what it should."""


@cache
def find_rg() -> str | None:
    """The `rg` to use: the one of the wheel, else the one on the path; `None` for neither."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if os.access(folder / "rg", os.X_OK):
            return str(folder / "rg")
    return shutil.which("rg")


async def search_with_rg(
    rg: str, query: Query, *, folder: int | None, above: bool = False, data: bytes = b""
) -> Found | None:
    """Search a folder, or the bytes of one file.

    Args:
        rg: The program.
        query: What is looked for.
        folder: The open folder; `None` to search `data`, whose path is then `<stdin>`.
        above: Whether the `.gitignore` files above the folder count.
        data: The bytes.

    Returns:
        What was found; `None` when this `rg` can't be used.

    Raises:
        ToolInputInvalid: The pattern can't be read.
        ToolError: It takes too long.
    """
    argv = [rg, *_RG, f"--context={query.context}"]
    argv += ["--fixed-strings"] * query.literal + ["--ignore-case"] * query.ignore_case
    argv += ["--no-ignore"] * query.ignored + ["--no-ignore-parent"] * (not above)
    for name in query.names:
        argv.append(f"--type-add=wanted:{name}")
    argv += ["--type=wanted"] * bool(query.names)
    last = ["--regexp", query.pattern, "--", "-" if folder is None else "./"]
    try:
        reader = await _run([*argv, *last], folder, data, HitReader(query.wants))
        if reader.is_full:  # which hits these are is chance; in order it is slower
            reader = HitReader(query.wants, max(query.needed, 1))
            reader = await _run([*argv, "--sort=path", *last], folder, data, reader)
    except _Unusable:
        return None
    return _found(reader)


async def search_with_python(
    query: Query, *, folder: int | None, files: Sequence[tuple[str, bytes | None]]
) -> Found:
    """Search files one by one.

    Args:
        query: What is looked for.
        folder: The open folder that files without bytes lie in.
        files: Path and bytes of each; `None` for those that are on the disk.

    Raises:
        ToolInputInvalid: The pattern can't be read.
        ToolError: It takes too long.
    """
    wanted = sorted((file for file in files if query.wants(file[0])), key=lambda f: sort_key(f[0]))
    order = {
        "pattern": query.pattern,
        "literal": query.literal,
        "ignore_case": query.ignore_case,
        "context": query.context,
        "file_s": FILE_S,
        "files": [
            (path, None if data is None else b64encode(data).decode()) for path, data in wanted
        ],
    }
    script = str(Path(__file__).with_name("child.py"))
    argv = [sys.executable, "-I", "-S", script]
    reader = HitReader(query.wants, max(query.needed, HITS_MAX))
    try:
        return _found(await _run(argv, folder, json.dumps(order).encode(), reader))
    except _Unusable as error:
        raise ToolError("The search could not be run; look for it with a program.") from error


def _found(reader: HitReader) -> Found:
    if reader.error:
        raise ToolInputInvalid(
            f"The pattern is no regex: {reader.error}. Set literal to look for the words as they "
            "are, or put a backslash before each sign."
        )
    if reader.slow:
        raise ToolInputInvalid(
            f"The pattern takes too long on {reader.slow!r}. Repeats within repeats, such as "
            "(a+)+, do that: write each repeat once, set literal, or leave the file out with path "
            "or glob."
        )
    files = sorted(
        (file for file in reader.files.values() if file.lines), key=lambda f: sort_key(f.path)
    )
    return Found(files=tuple(files), is_whole=not reader.is_full, skipped=reader.skipped)


async def _run(argv: list[str], folder: int | None, data: bytes, reader: HitReader) -> HitReader:
    child = _Child()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await _SEARCHES.run(lambda: child.run(argv, folder, data, reader))
    except TimeoutError as error:
        raise ToolError(
            f"The search took longer than {TIMEOUT_S:g} s; make the pattern simpler, or narrow it "
            "with path or glob."
        ) from error
    finally:
        child.end()
    return reader


class _Child:
    """One search's process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def end(self) -> None:
        """End it, also before it has begun."""
        self._is_over = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    def run(self, argv: list[str], folder: int | None, data: bytes, reader: HitReader) -> None:
        """Run it to its end, or until nothing more is wanted; blocking."""
        with tempfile.TemporaryFile() as given:
            given.write(data)
            given.seek(0)
            try:
                self._process = subprocess.Popen(  # noqa: S603 - no shell; the pattern is no option
                    argv,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=_path_of(folder),
                    env=_ENVIRONMENT,
                    start_new_session=True,
                )
            except OSError as error:
                raise _Unusable from error
        with self._process as process:
            if self._is_over:
                process.kill()
            _read(process, reader)


def _read(process: subprocess.Popen[bytes], reader: HitReader) -> None:
    out, err = process.stdout, process.stderr
    assert out is not None
    assert err is not None
    while piece := os.read(out.fileno(), _READ_BYTES):
        if not reader.feed(piece):
            process.kill()
            return
    said = err.read(_STDERR_BYTES).decode("utf-8", "replace")
    if process.wait() in (0, 1) or reader.files or process.returncode < 0:
        return
    if not said.strip() or any(sign in said for sign in _TOO_OLD):
        raise _Unusable
    reader.error = _reason(said)


def _reason(said: str) -> str:
    """What `rg` says of a regex, without the drawing of it and the advice on flags of its own."""
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    told = next((line for line in reversed(lines) if line.startswith("error:")), lines[0])
    return told.removeprefix("error:").removeprefix("rg:").strip().rstrip(".")


def _path_of(folder: int | None) -> str:
    """An open folder's path: where the system can, the very folder, wherever it is moved to."""
    if folder is None:
        return "/"
    if sys.platform == "linux":
        return f"/proc/self/fd/{folder}"
    import fcntl

    raw: bytes = fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024))
    return os.fsdecode(raw.rstrip(b"\0"))

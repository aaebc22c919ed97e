"""The symbols of a folder's files, kept for as long as the files stay as they are (A5.T3)."""

import asyncio
import fnmatch
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from towline_agent.errors import ToolError
from towline_agent.tools.code.child import run_child
from towline_agent.tools.code.languages import SUFFIXES
from towline_agent.tools.code.symbols import Symbol
from towline_agent.workspaces.base import DirEntry, Workspace

__all__ = [
    "FILES_MAX",
    "FILE_BYTES",
    "KINDS",
    "Answer",
    "Hit",
    "Survey",
    "SymbolIndex",
    "ask_worker",
    "rank",
]

FILE_BYTES: Final = 2**20
"""Bytes of a file that is looked into; longer ones are made by machines."""
FILES_MAX: Final = 20_000
"""Files of one look; a folder with more is looked at in parts."""
SYMBOLS_KEPT: Final = 400_000
"""Symbols kept for a conversation: some 60 MB."""
KINDS: Final = {
    "function": frozenset({"function", "method", "macro"}),
    "class": frozenset({"class", "struct", "enum", "interface", "trait", "type", "module"}),
    "variable": frozenset({"variable", "constant", "field"}),
}
"""What a person means by a kind."""

_BATCH_BYTES: Final = 8 * 2**20
_BATCH_FILES: Final = 500
"""A batch is what one process parses: long enough for its start not to count, and no longer."""
_BATCH_S: Final = 30.0
_READS: Final = 32
"""Files read at once."""
_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_FOLDER: Final = Path(__file__).parent
_LAUNCHER: Final = """
import sys, types
path = sys.argv[1:]
for depth in range(1, len(path) + 1):
    name = ".".join(("towline_agent", "tools", "code")[:depth])
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path[depth - 1]]
from towline_agent.tools.code.symbol_worker import serve
serve(sys.stdin.buffer, sys.stdout)
"""
"""The worker needs three modules; importing the packages above them whole would take longer than
most of what it parses."""


class Hit(NamedTuple):
    """A symbol and its file."""

    path: str
    """Relative to the root."""
    symbol: Symbol
    """What stands there."""


class Survey(NamedTuple):
    """What a look at a folder came to."""

    files: tuple[tuple[str, tuple[Symbol, ...]], ...]
    """The symbols of each file."""
    languages: tuple[tuple[str, int], ...]
    """Files by language, most first."""
    missing: tuple[tuple[str, int], ...]
    """Files by language whose grammar is not installed."""
    skipped: tuple[str, ...]
    """Files that are too long, took too long, or could not be read."""
    left: int
    """Files that were not reached in time."""
    truncated: bool
    """Whether the folder has more files than were looked at."""


Answer = tuple[Symbol, ...] | str
"""Of the worker, about one text: its symbols, `missing` for a grammar that is not installed, or
`late`."""


class _Kept(NamedTuple):
    """What is known of a file as it was."""

    mtime_ns: int
    size: int
    symbols: tuple[Symbol, ...] | None  # `None` for a file without an answer
    missing: bool = False


class SymbolIndex:
    """One conversation's."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._lock = asyncio.Lock()

    async def survey(
        self,
        workspace: Workspace,
        folder: str,
        *,
        budget_s: float,
        tell: Callable[[int, int], None] = lambda done, total: None,
    ) -> Survey:
        """All symbols below a folder, or of one file; only changed files are parsed again.

        Args:
            workspace: Where.
            folder: A folder or a file, relative to the root.
            budget_s: Seconds after which no further batch begins.
            tell: Called with the number of parsed files and of those to parse.
        """
        async with self._lock:
            entries, truncated = await _source_files(workspace, folder)
            await self._refresh(workspace, entries, budget_s, tell)
            return self._sum_up(entries, truncated)

    async def _refresh(
        self,
        workspace: Workspace,
        entries: Sequence[DirEntry],
        budget_s: float,
        tell: Callable[[int, int], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + budget_s
        stale = [entry for entry in entries if not self._is_fresh(entry)]
        for entry in stale:
            self._kept.pop(entry.name, None)
        done = 0
        for batch in _batches(entry for entry in stale if entry.size <= FILE_BYTES):
            if loop.time() > end or self._is_full():
                return
            await self._parse(workspace, batch, end)
            done += len(batch)
            tell(done, len(stale))

    def _is_fresh(self, entry: DirEntry) -> bool:
        kept = self._kept.get(entry.name)
        if kept is None or kept.missing:
            return False  # a grammar may have been installed since
        return (kept.mtime_ns, kept.size) == (entry.mtime_ns, entry.size)

    def _is_full(self) -> bool:
        return sum(len(kept.symbols or ()) for kept in self._kept.values()) > SYMBOLS_KEPT

    async def _parse(self, workspace: Workspace, batch: Sequence[DirEntry], end: float) -> None:
        texts = await _read_all(workspace, batch)
        left = [(entry, text) for entry, text in zip(batch, texts, strict=True) if text is not None]
        for entry, text in zip(batch, texts, strict=True):
            if text is None:
                self._keep(entry, None)
        loop = asyncio.get_running_loop()
        while left and loop.time() <= end:
            answers = await ask_worker([(SUFFIXES[_suffix(e.name)], text) for e, text in left])
            for (entry, _), answer in zip(left, answers, strict=False):
                self._keep(entry, answer)
            left = left[len(answers) :]
            if left:  # the process ended over the next one
                self._keep(left[0][0], None)
                left = left[1:]

    def _keep(self, entry: DirEntry, answer: Answer | None) -> None:
        found = tuple(map(_intern, answer)) if isinstance(answer, tuple) else None
        self._kept[entry.name] = _Kept(entry.mtime_ns, entry.size, found, answer == "missing")

    def _sum_up(self, entries: Sequence[DirEntry], truncated: bool) -> Survey:
        files: list[tuple[str, tuple[Symbol, ...]]] = []
        languages: Counter[str] = Counter()
        missing: Counter[str] = Counter()
        skipped: list[str] = []
        left = 0
        for entry in entries:
            language = SUFFIXES[_suffix(entry.name)]
            languages[language] += 1
            kept = self._kept.get(entry.name)
            if kept is None:
                if entry.size > FILE_BYTES:
                    skipped.append(entry.name)
                else:
                    left += 1
            elif kept.missing:
                missing[language] += 1
            elif kept.symbols is None:
                skipped.append(entry.name)
            else:
                files.append((entry.name, kept.symbols))
        return Survey(
            files=tuple(files),
            languages=tuple(languages.most_common()),
            missing=tuple(missing.most_common()),
            skipped=tuple(skipped),
            left=left,
            truncated=truncated,
        )


def rank(
    files: Iterable[tuple[str, Sequence[Symbol]]],
    pattern: str,
    kinds: frozenset[str] | None = None,
) -> list[Hit]:
    """What a pattern means among the symbols of files, the likeliest first.

    A name that is the pattern comes before one that begins with it, and that before one that only
    holds it; case counts only to tell equals apart. With `*` or `?` the pattern is for whole names;
    one of nothing else lists all, file by file.

    Args:
        files: Path and symbols of each.
        pattern: A name, a part of one, a pattern, or one of these behind a container and a dot.
        kinds: Only these; `None` for all.
    """
    words = pattern.replace("::", ".").replace("#", ".").strip(". ")
    container, _, name = words.rpartition(".")
    judge = _by_pattern(name) if "*" in name or "?" in name else _by_part(name)
    found: list[tuple[int, Hit]] = []
    for path, symbols in files:
        for symbol in symbols:
            place = judge(symbol.name)
            if place is None or (kinds is not None and symbol.kind not in kinds):
                continue
            if not container or _ends_with(symbol.container, container):
                found.append((place, Hit(path, symbol)))
    if not name.strip("*?"):  # a list of all: as it stands in the files
        return sorted((hit for _, hit in found), key=lambda hit: (hit.path, hit.symbol.line))
    found.sort(key=lambda item: (item[0], *_order(item[1])))
    return [hit for _, hit in found]


def _by_pattern(pattern: str) -> Callable[[str], int | None]:
    whole = re.compile(fnmatch.translate(pattern.replace("[", "[[]")), re.IGNORECASE)
    return lambda name: 0 if whole.match(name) else None


def _by_part(wanted: str) -> Callable[[str], int | None]:
    """How well a name fits, 0 best; `None` when it does not."""
    low_wanted = wanted.lower()

    def judge(name: str) -> int | None:
        low = name.lower()
        if low_wanted not in low:  # as most are
            return None
        if low == low_wanted:
            return 0 if name == wanted else 1
        return 2 if low.startswith(low_wanted) else 3

    return judge


def _ends_with(container: str, wanted: str) -> bool:
    return f".{container.lower()}".endswith(f".{wanted.lower()}")


def _order(hit: Hit) -> tuple[bool, int, int, str, int]:
    symbol = hit.symbol
    is_value = symbol.kind in KINDS["variable"]
    return is_value, len(symbol.name), hit.path.count("/"), hit.path, symbol.line


def _suffix(path: str) -> str:
    return path[path.rfind(".") :].lower()


async def _source_files(workspace: Workspace, folder: str) -> tuple[list[DirEntry], bool]:
    """The files of known languages, their names from the root, and whether there are more."""
    try:
        walk = await workspace.walk(folder)
    except ToolError:
        file = await workspace.read(folder)  # it says what is wrong when it is no file either
        if _suffix(folder) not in SUFFIXES:
            raise ToolError(
                f"{folder!r} is in no language whose symbols are known; use search_text."
            ) from None
        size, time = len(file.data), file.mtime_ns
        return [DirEntry(name=folder, kind="file", size=size, mtime_ns=time)], False
    above = "" if folder == "." else f"{folder}/"
    found = [
        msgspec.structs.replace(entry, name=above + entry.name) if above else entry
        for entry in walk.entries
        if entry.kind == "file" and _suffix(entry.name) in SUFFIXES
    ]
    return found[:FILES_MAX], walk.truncated or len(found) > FILES_MAX


def _batches(entries: Iterable[DirEntry]) -> Iterable[list[DirEntry]]:
    batch: list[DirEntry] = []
    size = 0
    for entry in entries:
        if batch and (size + entry.size > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch


async def _read_all(workspace: Workspace, entries: Sequence[DirEntry]) -> list[bytes | None]:
    texts: list[bytes | None] = []
    for at in range(0, len(entries), _READS):
        some = entries[at : at + _READS]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_read(workspace, entry.name)) for entry in some]
        texts += [task.result() for task in tasks]
    return texts


async def _read(workspace: Workspace, path: str) -> bytes | None:
    try:
        raw = (await workspace.read(path)).data
    except ToolError:  # gone meanwhile, or not ours to read
        return None
    if len(raw) > FILE_BYTES:
        return None
    return raw.decode("utf-16", "replace").encode() if raw.startswith(_MARKS) else raw


async def ask_worker(texts: Sequence[tuple[str, bytes]]) -> list[Answer]:
    """The answers of one process; fewer than asked for when one of the texts was its end.

    Args:
        texts: The language of each, and its bytes.

    Raises:
        ToolError: There can be no such process.
    """
    stdin = b"".join(b"%s %d\n%s" % (name.encode(), len(text), text) for name, text in texts)
    folders = [str(_FOLDER), *(str(folder) for folder in _FOLDER.parents[:2])][::-1]
    argv = (sys.executable, "-P", "-c", _LAUNCHER, *folders)
    try:
        end = await run_child(argv, stdin=stdin, timeout_s=_BATCH_S)
    except OSError as error:
        raise ToolError(f"No process can be started to parse files: {error.strerror}.") from error
    if not end.output and "Error" in end.error:
        raise ToolError("The process that parses files can't run; use search_text instead.")
    whole = [line for line in end.output.splitlines(keepends=True) if line.endswith(b"\n")]
    return [msgspec.json.decode(line, type=Answer) for line in whole]


def _intern(symbol: Symbol) -> Symbol:
    """With the same few words as many thousand others."""
    return symbol._replace(kind=sys.intern(symbol.kind), container=sys.intern(symbol.container))

"""A workspace in memory, for tests: no disk, no processes, the same sentences."""

import copy
import errno
import posixpath
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, Self

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import (
    ABSENT,
    DirEntry,
    Edit,
    FileData,
    MakeDir,
    Move,
    ProgramResult,
    Put,
    Remove,
    Walk,
)
from towline_agent.workspaces.fence import is_below
from towline_agent.workspaces.ignore import IGNORE_FILE, Ignore
from towline_agent.workspaces.ledger import Ledger, Side
from towline_agent.workspaces.paths import (
    changed_since,
    denied_outside,
    failed_edit,
    failed_path,
    failed_program,
    moved_into_itself,
    stands_already,
    whole_root,
)
from towline_protocol import FileChange, Process

__all__ = ["NEW_MODE", "MemoryProgram", "MemoryWorkspace"]

MemoryProgram = ProgramResult | Callable[[tuple[str, ...]], Awaitable[ProgramResult]]
"""How a program of a `MemoryWorkspace` ends: always the same, or by a function of its command."""

NEW_MODE: Final = 0o644
"""The permission bits of a file that nobody gave others."""


class MemoryWorkspace:
    """Files as a mapping, programs as functions.

    ```python
    made = ProgramResult(exit_code=0, output="ok")
    workspace = MemoryWorkspace({"src/a.py": "print(1)"}, {"make": made})
    ```

    Args:
        files: Contents by path relative to `root`; folders are there as far as files need them.
            An absolute path outside can be reached once it is granted.
        programs: What can be run, by name.
        root: The folder's name.
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        programs: Mapping[str, MemoryProgram] | None = None,
        *,
        root: str = "/memory",
    ) -> None:
        self.root = root
        """The folder, as the model is told it."""
        self.files: dict[str, bytes] = {}
        """The files as they are now."""
        self.folders: set[str] = set()
        """Folders that were made; those above files are there anyhow."""
        self.modes: dict[str, int] = {}
        """The permission bits of files that have others than new ones."""
        self.times: dict[str, int] = {}
        """When files were changed: a number that grows with each edit."""
        self.programs = dict(programs or {})
        """What can be run."""
        self.ran: list[tuple[str, ...]] = []
        """Each command whose program began, in order."""
        self.inputs: list[bytes] = []
        """What each of them was given to read."""
        self._granted: frozenset[str] = frozenset()
        for path, data in (files or {}).items():
            place = self._anchor(path)
            self.files[place] = data.encode() if isinstance(data, str) else data

    async def read(self, path: str) -> FileData:
        """A file."""
        place = self._place(path)
        if place not in self.files:
            raise self._missing(path, errno.EISDIR)
        mode = self.modes.get(place, NEW_MODE)
        return FileData(data=self.files[place], mode=mode, mtime_ns=self.times.get(place, 0))

    async def walk(self, path: str, *, deep: bool = True, ignored: bool = False) -> Walk:
        """What a folder holds."""
        place = self._place(path)
        tree = _Tree(self)
        if tree.kind(place) != "dir":
            raise self._missing(path, errno.ENOTDIR)
        ignore = None if ignored else tree.ignore_above(place)
        found = tree.list_below(place, ignore, deep=deep)
        skip = 0 if place == "." else len(place) + 1
        entries = [
            DirEntry(
                name=name[skip:],
                kind=tree.kind(name) or "",
                size=len(tree.files.get(name, b"")),
                mtime_ns=self.times.get(name, 0),
            )
            for name in found
        ]
        return Walk(tuple(sorted(entries, key=lambda entry: entry.name)))

    async def apply(self, edits: tuple[Edit, ...]) -> tuple[FileChange, ...]:
        """Change files: all of it or none."""
        tree = _Tree(self)
        ledger = Ledger()
        judged = [(edit, self._places(edit)) for edit in edits]
        for edit, (place, *more) in judged:
            match edit:
                case Put():
                    _put(tree, ledger, place, edit)
                case MakeDir():
                    _make_dir(tree, ledger, place, edit)
                case Remove():
                    _remove(tree, ledger, place, edit)
                case Move():
                    _move(tree, ledger, (place, more[0]), edit)
        tree.keep_in(self)
        return ledger.changes()

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        timeout_s: float,
        on_start: Callable[[Process], Awaitable[None]],
        on_output: Callable[[str], None],
        stdin: bytes = b"",
        network: bool = False,
    ) -> ProgramResult:
        """Run one of `programs`; `timeout_s` is left to its function."""
        name = argv[0] if argv else ""
        if name not in self.programs:
            raise failed_program(name, errno.ENOENT, "")
        number = 1000 + len(self.ran)
        await on_start(Process(pid=number, group=number, started="memory"))
        self.ran.append(argv)
        self.inputs.append(stdin)
        program = self.programs[name]
        result = program if isinstance(program, ProgramResult) else await program(argv)
        if result.output:
            on_output(result.output)
        return result

    def grant(self, paths: frozenset[str]) -> Self:
        """The same place, with these paths outside reachable too."""
        granted = copy.copy(self)
        granted._granted = self._granted | paths
        return granted

    def _anchor(self, path: str) -> str:
        place = posixpath.normpath(posixpath.join(self.root, path))
        if not is_below(place, self.root):
            return place
        return place[len(self.root.rstrip("/")) + 1 :] or "."

    def _place(self, path: str) -> str:
        place = self._anchor(path)
        if place.startswith("/") and not any(is_below(place, grant) for grant in self._granted):
            raise denied_outside(path, self.root)
        return place

    def _places(self, edit: Edit) -> tuple[str, ...]:
        match edit:
            case Put() | MakeDir():
                return (self._place(edit.path),)
            case Remove():
                return (self._part(edit.path),)
            case Move():
                return (self._part(edit.source), self._part(edit.target))

    def _part(self, path: str) -> str:
        place = self._place(path)
        if place == ".":
            raise whole_root(path)
        return place

    def _missing(self, path: str, other: int) -> ToolError:
        place, tree = self._place(path), _Tree(self)
        if any(above in tree.files for above in _above(place)):
            other = errno.ENOTDIR
        elif tree.kind(place) is None:
            other = errno.ENOENT
        return failed_path(path, OSError(other, ""))


class _Tree:
    """A workspace's files while edits change them."""

    def __init__(self, kept: MemoryWorkspace) -> None:
        self.files = dict(kept.files)
        self.modes = dict(kept.modes)
        self.folders = {".", *kept.folders}
        self.changed: set[str] = set()
        for name in kept.files:
            self.folders.update(_above(name))

    def keep_in(self, kept: MemoryWorkspace) -> None:
        now = max(kept.times.values(), default=0) + 1
        kept.files.clear()
        kept.files.update(self.files)
        kept.modes.clear()
        kept.modes.update(self.modes)
        kept.folders.clear()
        kept.folders.update(self.folders)
        kept.times.update(dict.fromkeys(self.changed, now))

    def kind(self, place: str) -> str | None:
        if place in self.files:
            return "file"
        return "dir" if place in self.folders else None

    def side(self, place: str) -> Side | None:
        if place in self.files:
            return Side.of(self.files[place], self.modes.get(place, NEW_MODE))
        return Side() if place in self.folders else None

    def below(self, place: str) -> Iterator[str]:
        """All names in a folder."""
        for name in (*self.files, *self.folders):
            inside = name != "." and not name.startswith("/")
            if inside if place == "." else name.startswith(f"{place}/"):
                yield name

    def list_below(self, place: str, ignore: Ignore | None, *, deep: bool) -> Iterator[str]:
        """The names in a folder, without what is left out."""
        if ignore is not None:
            ignore = self._ignore_in(place, ignore)
        above = "" if place == "." else f"{place}/"
        for path in list(self.below(place)):
            name = path.removeprefix(above)
            if "/" in name or (deep and name == ".git"):
                continue
            is_dir = path in self.folders
            if ignore is not None and ignore.leaves_out(path, name, is_dir=is_dir):
                continue
            yield path
            if deep and is_dir:
                yield from self.list_below(path, ignore, deep=True)

    def ignore_above(self, place: str) -> Ignore:
        """What the files above a folder leave out in it; nothing when it is left out itself."""
        exclude = self.files.get(".git/info/exclude", b"")
        ignore = Ignore().within("", exclude.decode("utf-8-sig", "replace"))
        parts = () if place == "." else tuple(place.split("/"))
        if place.startswith("/"):
            return Ignore()
        for depth, name in enumerate(parts):
            ignore = self._ignore_in("/".join(parts[:depth]) or ".", ignore)
            if ignore.leaves_out("/".join(parts[: depth + 1]), name, is_dir=True):
                return Ignore()
        return ignore

    def _ignore_in(self, folder: str, ignore: Ignore) -> Ignore:
        above = "" if folder == "." else folder
        text = self.files.get(posixpath.join(above, IGNORE_FILE), b"")
        return ignore.within(above, text.decode("utf-8-sig", "replace"))

    def make_above(self, place: str, path: str) -> None:
        for folder in _above(place):
            if folder in self.files:
                raise failed_edit(path, OSError(errno.ENOTDIR, ""))
            self.folders.add(folder)


def _above(place: str) -> Iterator[str]:
    while "/" in place.lstrip("/"):
        place = posixpath.dirname(place)
        yield place


def _put(tree: _Tree, ledger: Ledger, place: str, edit: Put) -> None:
    before = tree.side(place)
    if edit.path.endswith("/") or tree.kind(place) == "dir":
        raise failed_edit(edit.path, OSError(errno.EISDIR, ""))
    if before is not None and not (before.mode or 0) & 0o222:
        raise failed_edit(edit.path, OSError(errno.EACCES, ""))
    _check_hash(edit.path, before, edit.expect)
    tree.make_above(place, edit.path)
    mode = edit.mode if edit.mode is not None else before.mode if before else NEW_MODE
    after = Side.of(edit.data, (mode or 0) & 0o777)
    if before != after:
        tree.files[place] = edit.data
        tree.modes[place] = after.mode or 0
        tree.changed.add(place)
        ledger.put(place, before, after)


def _make_dir(tree: _Tree, ledger: Ledger, place: str, edit: MakeDir) -> None:
    kind = tree.kind(place)
    if kind == "file":
        raise stands_already(edit.path)
    if kind is None:
        tree.make_above(place, edit.path)
        tree.folders.add(place)
        ledger.put(place, None, Side())


def _remove(tree: _Tree, ledger: Ledger, place: str, edit: Remove) -> None:
    side = _check_there(tree, place, edit.path, edit.expect)
    for name in (place, *tree.below(place)):
        tree.files.pop(name, None)
        tree.modes.pop(name, None)
        tree.folders.discard(name)
        tree.changed.add(name)
    ledger.remove(place, side)


def _move(tree: _Tree, ledger: Ledger, places: tuple[str, str], edit: Move) -> None:
    source, target = places
    side = _check_there(tree, source, edit.source, edit.expect)
    if target.startswith(f"{source}/"):
        raise moved_into_itself(edit.source, edit.target)
    if tree.kind(target) is not None:
        raise stands_already(edit.target)
    tree.make_above(target, edit.source)
    for name in (source, *tree.below(source)):
        there = target + name[len(source) :]
        if name in tree.files:
            tree.files[there] = tree.files.pop(name)
            tree.changed.add(there)
        if name in tree.modes:
            tree.modes[there] = tree.modes.pop(name)
        if name in tree.folders:
            tree.folders.discard(name)
            tree.folders.add(there)
    ledger.move(source, target, side)


def _check_there(tree: _Tree, place: str, path: str, expect: str | None) -> Side:
    side = tree.side(place)
    if side is None:
        raise failed_edit(path, OSError(errno.ENOENT, ""))
    _check_hash(path, side, expect)
    return side


def _check_hash(path: str, side: Side | None, expect: str | None) -> None:
    if expect == ABSENT:
        if side is not None:
            raise stands_already(path)
    elif expect is not None and (side is None or side.hash != expect):
        raise changed_since(path)

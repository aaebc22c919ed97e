"""Edits of files on disk: all of them or none (A5.6, A5.12)."""

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import ABSENT, Edit, Keeper, MakeDir, Move, Put, Remove
from towline_agent.workspaces.fence import FILE_FLAGS, FOLDER_FLAGS, Fence, Place, is_below
from towline_agent.workspaces.ledger import Ledger, Side
from towline_agent.workspaces.paths import (
    changed_since,
    failed_edit,
    moved_into_itself,
    stands_already,
    too_big,
    whole_root,
)
from towline_protocol import FileChange

__all__ = ["EDIT_MAX_BYTES", "apply_edits"]

EDIT_MAX_BYTES: Final = 16 * 2**20
"""Bytes of one file that are changed here; larger ones are no text that a model writes."""

_CHUNK: Final = 2**20


class _Stand(NamedTuple):
    """What stands at a place."""

    kind: str
    """`file`, `dir`, `link` or `other`."""
    side: Side
    found: os.stat_result


def apply_edits(fence: Fence, keeper: Keeper | None, edits: tuple[Edit, ...]) -> list[FileChange]:
    """Do as `Workspace.apply` says; blocking."""
    work = _Work(fence, keeper)
    work.check(edits)
    try:
        for edit in edits:
            work.do(edit)
        work.tell()
    except BaseException:
        work.undo()
        raise
    work.clean()
    return list(work.ledger.changes())


class _Work:
    """One batch of edits from its check to its end."""

    def __init__(self, fence: Fence, keeper: Keeper | None) -> None:
        self.ledger = Ledger()
        self._fence = fence
        self._keeper = keeper
        self._named: dict[str, None] = {}
        self._undo: list[Callable[[], None]] = []
        self._kept: list[str] = []
        """Real paths of what was put aside, to be removed at the end."""

    def check(self, edits: tuple[Edit, ...]) -> None:
        """Look at every edit before the first one changes anything.

        One that builds on another of the batch is judged by its path alone here, and looked at
        when its turn comes.
        """
        touched: list[str] = []
        seen: list[str] = []
        for edit in edits:
            own = [place.real for place in self._places(edit)]
            if not any(is_below(a, b) or is_below(b, a) for a in own for b in seen):
                touched += self._look(edit)
            seen += own
        self._keep(touched)

    def do(self, edit: Edit) -> None:
        """Do the next edit."""
        self._keep(self._look(edit))
        match edit:
            case Put():
                self._put(edit)
            case MakeDir():
                self._make_dir(edit)
            case Remove():
                self._remove(edit)
            case Move():
                self._move(edit)

    def tell(self) -> None:
        """Tell the keeper that all is done."""
        if self._keeper is not None and self._named:
            self._keeper.after(tuple(self._named))

    def undo(self) -> None:
        """Make everything as it was."""
        failed: list[str] = []
        while self._undo:
            try:
                self._undo.pop()()
            except (OSError, ToolError) as error:
                failed.append(str(error))
        if failed:
            raise ToolError(
                "The edit failed and could not be undone wholly; look at the files before you go "
                f"on: {'; '.join(failed)}"
            )

    def clean(self) -> None:
        """Remove what was put aside."""
        for real in self._kept:
            place = self._fence.judge(real, follow=False)
            with suppress(OSError), self._fence.enter(place) as (above, name):
                found = os.stat(name, dir_fd=above, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    shutil.rmtree(name, dir_fd=above)
                else:
                    os.unlink(name, dir_fd=above)

    # What an edit is about

    def _places(self, edit: Edit) -> tuple[Place, ...]:
        match edit:
            case Put() | MakeDir():
                return (self._fence.judge(edit.path),)
            case Remove():
                return (self._own(edit.path),)
            case Move():
                return (self._own(edit.source), self._own(edit.target))

    def _own(self, path: str) -> Place:
        """A place whose link, if it is one, is meant itself."""
        place = self._fence.judge(path, follow=False)
        if not place.parts:
            raise whole_root(path)
        return place

    def _look(self, edit: Edit) -> list[str]:
        """Check an edit against the disk; the real paths of all that it touches."""
        first, *more = self._places(edit)
        stand = self._stand(first)
        match edit:
            case Put():
                self._check_file(first, stand)
                _check_hash(first, stand, edit.expect)
            case MakeDir():
                if stand is not None and stand.kind != "dir":
                    raise stands_already(edit.path)
                if stand is not None:
                    return []
            case Remove():
                self._check_there(first, stand)
                _check_hash(first, stand, edit.expect)
                return self._tree(first, stand)
            case Move():
                self._check_there(first, stand)
                _check_hash(first, stand, edit.expect)
                return self._look_target(first, stand, more[0])
        return [*self._missing(first), first.real]

    def _look_target(self, source: Place, stand: _Stand | None, target: Place) -> list[str]:
        if is_below(target.real, source.real) and target.real != source.real:
            raise moved_into_itself(source.path, target.path)
        if self._stand(target) is not None:
            raise stands_already(target.path)
        tree = self._tree(source, stand)
        there = [target.real + real[len(source.real) :] for real in tree]
        return [*tree, *self._missing(target), *there]

    def _stand(self, place: Place) -> _Stand | None:
        try:
            with self._fence.enter(place) as (above, name):
                return _stand_at(above, name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise failed_edit(place.path, error) from error

    def _missing(self, place: Place) -> list[str]:
        """The real paths of the folders that have to be made above a place."""
        missing: list[str] = []
        real = os.path.dirname(place.real)
        while is_below(real, place.base) and not os.path.lexists(real):
            missing.append(real)
            real = os.path.dirname(real)
        return missing[::-1]

    def _tree(self, place: Place, stand: _Stand | None) -> list[str]:
        """The real paths of a place and of all in it."""
        found = [place.real]
        if stand is None or stand.kind != "dir":
            return found
        for real in found:
            if not os.path.isdir(real) or os.path.islink(real):
                continue
            within = self._fence.judge(real, follow=False)
            fd = self._fence.open(within, FOLDER_FLAGS)
            try:
                found += [os.path.join(real, name) for name in sorted(os.listdir(fd))]
            finally:
                os.close(fd)
        return [real for real in found if real not in self._kept]

    def _check_file(self, place: Place, stand: _Stand | None) -> None:
        if not place.parts or (stand is not None and stand.kind == "dir"):
            raise failed_edit(place.path, OSError(errno.EISDIR, ""))
        if stand is None:
            return
        if stand.kind != "file":
            raise failed_edit(place.path, OSError(errno.ENXIO, ""))
        if not stand.found.st_mode & 0o222:
            raise failed_edit(place.path, OSError(errno.EACCES, ""))
        if stand.side.data is None:
            raise too_big(place.path, EDIT_MAX_BYTES)

    def _check_there(self, place: Place, stand: _Stand | None) -> None:
        if stand is None:
            raise failed_edit(place.path, OSError(errno.ENOENT, ""))
        if stand.kind == "other":
            raise failed_edit(place.path, OSError(errno.ENXIO, ""))

    def _keep(self, reals: Iterable[str]) -> None:
        """Have the keeper keep what it was not told of yet, before it changes."""
        new = [shown for shown in map(self._fence.show, reals) if shown not in self._named]
        if self._keeper is not None and new:
            self._keeper.before(tuple(dict.fromkeys(new)))
        self._named.update(dict.fromkeys(new))

    # Each kind of edit

    def _put(self, edit: Put) -> None:
        place = self._fence.judge(edit.path)
        if len(edit.data) > EDIT_MAX_BYTES:
            raise too_big(edit.path, EDIT_MAX_BYTES)
        try:
            with self._fence.enter(place, self._make) as (above, name):
                stand = _stand_at(above, name)
                self._check_file(place, stand)
                _check_hash(place, stand, edit.expect)
                self._write(place, edit, stand, above, name)
        except OSError as error:
            raise failed_edit(edit.path, error) from error

    def _write(self, place: Place, edit: Put, stand: _Stand | None, above: int, name: str) -> None:
        mode = edit.mode if stand is None or edit.mode is not None else stand.side.mode
        if stand is not None and stand.side == Side.of(edit.data, mode or 0):
            return
        temporary = _write_beside(above, edit.data, mode)
        try:
            if stand is None:
                os.link(temporary, name, src_dir_fd=above, dst_dir_fd=above, follow_symlinks=False)
                self._undo.append(lambda: self._drop(place))
                os.unlink(temporary, dir_fd=above)
            else:
                kept = self._put_aside(place, above, name)
                os.rename(temporary, name, src_dir_fd=above, dst_dir_fd=above)
                self._undo.append(lambda: self._put_back(place, kept))
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=above)
            raise
        _sync(above)
        written = os.stat(name, dir_fd=above, follow_symlinks=False)
        after = Side.of(edit.data, stat.S_IMODE(written.st_mode))
        self.ledger.put(place.shown, stand.side if stand else None, after)

    def _put_aside(self, place: Place, above: int, name: str) -> str:
        """Give what stands there a second name, under which it outlives what comes."""
        kept = _new_name()
        os.link(name, kept, src_dir_fd=above, dst_dir_fd=above, follow_symlinks=False)
        self._kept.append(os.path.join(os.path.dirname(place.real), kept))
        return kept

    def _put_back(self, place: Place, kept: str) -> None:
        with self._fence.enter(place) as (above, name):
            os.rename(kept, name, src_dir_fd=above, dst_dir_fd=above)

    def _drop(self, place: Place) -> None:
        with self._fence.enter(place) as (above, name):
            os.unlink(name, dir_fd=above)

    def _make(self, above: int, name: str, real: str) -> None:
        self._keep((real,))
        os.mkdir(name, dir_fd=above)

        def undo() -> None:
            with self._fence.enter(self._fence.judge(real, follow=False)) as (folder, own):
                os.rmdir(own, dir_fd=folder)

        self._undo.append(undo)

    def _make_dir(self, edit: MakeDir) -> None:
        place = self._fence.judge(edit.path)
        if not place.parts or self._stand(place) is not None:
            return
        try:
            with self._fence.enter(place, self._make) as (above, name):
                self._make(above, name, place.real)
        except OSError as error:
            raise failed_edit(edit.path, error) from error
        self.ledger.put(place.shown, None, Side())

    def _remove(self, edit: Remove) -> None:
        place = self._own(edit.path)
        kept = _new_name()
        try:
            with self._fence.enter(place) as (above, name):
                stand = _stand_at(above, name)
                self._check_there(place, stand)
                _check_hash(place, stand, edit.expect)
                os.rename(name, kept, src_dir_fd=above, dst_dir_fd=above)
                self._undo.append(lambda: self._put_back(place, kept))
                self._kept.append(os.path.join(os.path.dirname(place.real), kept))
                _sync(above)
        except OSError as error:
            raise failed_edit(edit.path, error) from error
        self.ledger.remove(place.shown, stand.side if stand else Side())

    def _move(self, edit: Move) -> None:
        source, target = self._own(edit.source), self._own(edit.target)
        try:
            with self._fence.enter(source) as (from_fd, old):
                stand = _stand_at(from_fd, old)
                self._check_there(source, stand)
                _check_hash(source, stand, edit.expect)
                with self._fence.enter(target, self._make) as (to_fd, new):
                    if _stand_at(to_fd, new) is not None:
                        raise stands_already(edit.target)
                    os.rename(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd)
                    self._undo.append(lambda: self._move_back(source, target))
                    _sync(to_fd)
                _sync(from_fd)
        except OSError as error:
            raise failed_edit(edit.source, error) from error
        self._kept = [_rebased(real, source.real, target.real) for real in self._kept]
        self.ledger.move(source.shown, target.shown, stand.side if stand else Side())

    def _move_back(self, source: Place, target: Place) -> None:
        with (
            self._fence.enter(target) as (to_fd, new),
            self._fence.enter(source) as (from_fd, old),
        ):
            os.rename(new, old, src_dir_fd=to_fd, dst_dir_fd=from_fd)
        self._kept = [_rebased(real, target.real, source.real) for real in self._kept]


def _stand_at(above: int, name: str) -> _Stand | None:
    try:
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return _Stand("dir", Side(), found)
    if stat.S_ISLNK(found.st_mode):
        return _Stand("link", Side(), found)
    if not stat.S_ISREG(found.st_mode):
        return _Stand("other", Side(), found)
    fd = os.open(name, FILE_FLAGS, dir_fd=above)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return _Stand("other", Side(), found)
        return _Stand("file", _read_side(fd, found), found)
    finally:
        os.close(fd)


def _read_side(fd: int, found: os.stat_result) -> Side:
    mode = stat.S_IMODE(found.st_mode)
    digest = hashlib.sha256()
    pieces: list[bytes] | None = []
    total = 0
    while piece := os.read(fd, _CHUNK):
        digest.update(piece)
        total += len(piece)
        if total > EDIT_MAX_BYTES:
            pieces = None
        if pieces is not None:
            pieces.append(piece)
    data = None if pieces is None else b"".join(pieces)
    return Side(data=data, hash=digest.hexdigest(), mode=mode)


def _check_hash(place: Place, stand: _Stand | None, expect: str | None) -> None:
    if expect is None:
        return
    if expect == ABSENT:
        if stand is not None:
            raise stands_already(place.path)
        return
    if stand is None or (stand.kind == "file" and stand.side.hash != expect):
        raise changed_since(place.path)


def _write_beside(above: int, data: bytes, mode: int | None) -> str:
    """Write a new file in a folder, safe on the disk; its name."""
    name = _new_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o666, dir_fd=above)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if mode is not None:
            os.fchmod(fd, mode & 0o777)
        os.fsync(fd)
    except BaseException:
        os.unlink(name, dir_fd=above)
        raise
    finally:
        os.close(fd)
    return name


def _new_name() -> str:
    return f".towline-{secrets.token_hex(8)}"


def _sync(above: int) -> None:
    """Make a folder's names safe on the disk, where the system can."""
    with suppress(OSError):
        fd = os.open(".", FOLDER_FLAGS, dir_fd=above)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _rebased(real: str, source: str, target: str) -> str:
    return target + real[len(source) :] if is_below(real, source) else real

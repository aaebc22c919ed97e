"""Edits of files on disk: all of them or none (A5.6, A5.12)."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import (
    ABSENT,
    Deed,
    Edit,
    Intent,
    Keeper,
    MakeDir,
    Move,
    Put,
    Remove,
    hash_bytes,
)
from towline_agent.workspaces.disk import (
    Names,
    give_second_name,
    move_to_free,
    respells,
    sync_folder,
    write_beside,
)
from towline_agent.workspaces.fence import Fence, Place, is_below
from towline_agent.workspaces.ledger import Ledger, Side
from towline_agent.workspaces.paths import (
    changed_since,
    denied_outside,
    failed_edit,
    failed_undo,
    moved_into_itself,
    stands_already,
    too_big,
    too_big_to_write,
    too_many,
    whole_root,
)
from towline_agent.workspaces.stand import Stand, file_identity, list_tree, stand_at
from towline_protocol import FileChange

__all__ = ["EDITS_MAX", "EDIT_MAX_BYTES", "apply_edits"]

EDIT_MAX_BYTES: Final = 16 * 2**20
"""Bytes of one file that is written here; larger ones are no text that a model writes."""
EDITS_MAX: Final = 2000
"""Edits of one batch: the files of a wide rename; what they replace is held until the end."""


def apply_edits(
    fence: Fence, keeper: Keeper | None, edits: tuple[Edit, ...]
) -> tuple[FileChange, ...]:
    """Do as `Workspace.apply` says; blocking.

    What an edit replaces or removes is put aside under a name of its own beside, so that undoing is
    only renaming: it needs no room on the disk, and what comes back is the same file. Another name
    of a replaced file (a hard link) keeps the old content.

    What the end of the process cuts is made whole by the keeper, which was told all of it first
    (`TurnKeeper.mend`). Without a keeper there is nobody to do so: then a file is the old one or
    the new one, but some of the batch may be done and some not, and what stands aside stays there.

    Raises:
        ToolDenied: A path leads outside.
        ToolError: What `Workspace.apply` names.
    """
    if len(edits) > EDITS_MAX:
        raise too_many(len(edits), EDITS_MAX)
    batch = _Batch(fence, keeper)
    try:
        batch.check(edits)
        for number, edit in enumerate(edits):
            batch.do(number, edit)
        batch.tell()
    except BaseException as error:
        batch.undo(error)
        raise
    batch.clean()
    return batch.ledger.changes()


class _Batch:
    """Edits from their check to their end."""

    def __init__(self, fence: Fence, keeper: Keeper | None) -> None:
        self.ledger = Ledger()
        self._fence = fence
        self._keeper = keeper
        self._names = Names()
        self._named: dict[str, None] = {}
        self._deeds: dict[int, Deed] = {}
        """What the keeper was told of each edit."""
        self._untold: dict[int, Deed] = {}
        """What it has to be told with the first path that changes."""
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self._aside: list[str] = []
        """Real paths of what was put aside, to be removed at the end."""

    def check(self, edits: tuple[Edit, ...]) -> None:
        """Look at every edit before the first one changes anything.

        One that builds on another of the batch is judged by its path alone here, and looked at
        when its turn comes.
        """
        touched: list[str] = []
        seen: set[str] = set()
        above_seen: set[str] = set()
        for edit in edits:
            own = {place.real for place in self._places(edit)}
            ways = {real for each in own for real in _self_and_above(each)}
            if own.isdisjoint(above_seen) and ways.isdisjoint(seen):
                touched += self._look(edit)
            seen |= own
            above_seen |= ways
        self._keep(touched, self._new_deeds(enumerate(edits)))

    def do(self, number: int, edit: Edit) -> None:
        """Do the next edit."""
        self._keep(self._look(edit), self._new_deeds([(number, edit)]))
        place, *more = self._places(edit)
        try:
            match edit:
                case Put():
                    self._put(edit, place)
                case MakeDir():
                    self._make_dir(place)
                case Remove():
                    self._remove(edit, place)
                case Move():
                    self._move(edit, place, more[0])
        except OSError as error:
            raise failed_edit(place.path, error) from error

    def tell(self) -> None:
        """Tell the keeper that all is done."""
        if self._keeper is not None and self._named:
            self._keeper.after(tuple(self._named))

    def undo(self, cause: BaseException) -> None:
        """Make everything as it was, the last step first.

        Raises:
            ToolError: Something could not be made so; it says what.
        """
        failed: list[str] = []
        while self._undo:
            shown, step = self._undo.pop()
            try:
                step()
            except (OSError, ToolError):
                failed.append(shown)
        if failed:
            self._settle(whole=False)
            raise failed_undo(failed) from cause
        self.clean()

    def clean(self) -> None:
        """Remove what was put aside; what can't be removed any more is left where it is."""
        for real in self._aside:
            with suppress(OSError, ToolError):
                place = self._fence.judge(real, follow=False)
                with self._fence.enter(place) as (above, name):
                    found = os.stat(name, dir_fd=above, follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        shutil.rmtree(name, dir_fd=above)
                    else:
                        os.unlink(name, dir_fd=above)
        self._settle(whole=True)

    def _settle(self, *, whole: bool) -> None:
        if self._keeper is not None and self._named:  # else it has told of no batch
            with suppress(ToolError):  # it is as it is; the next start sees to what is noted of it
                self._keeper.settled(whole=whole)

    # What an edit is about

    def _places(self, edit: Edit) -> tuple[Place, ...]:
        match edit:
            case Put() | MakeDir():
                return (self._fence.judge(edit.path),)
            case Remove():
                return (self._part(edit.path),)
            case Move():
                return (self._part(edit.source), self._part(edit.target))

    def _part(self, path: str) -> Place:
        """A place below the root; a link at its end is meant itself."""
        place = self._fence.judge(path, follow=False)
        if not place.parts:
            raise whole_root(path)
        return place

    def _look(self, edit: Edit) -> list[str]:
        """Check an edit against the disk; the real paths of all that it touches."""
        place, *more = self._places(edit)
        try:
            match edit:
                case Put():
                    stand = self._stand(place, read=edit.expect is not None)
                    _check_put(edit, place, stand)
                    return [*self._missing(place), place.real]
                case MakeDir():
                    stand = self._stand(place, read=False)
                    if stand is not None and stand.kind != "dir":
                        raise stands_already(edit.path)
                    return [] if stand is not None else [*self._missing(place), place.real]
                case Remove():
                    stand = self._there(place, edit.expect)
                    return self._tree(place, stand, removed=True)
                case Move():
                    stand = self._there(place, edit.expect)
                    return self._look_target(place, stand, more[0])
        except OSError as error:
            raise failed_edit(place.path, error) from error

    def _look_target(self, source: Place, stand: Stand, target: Place) -> list[str]:
        if target.real.startswith(f"{source.real}/"):
            raise moved_into_itself(source.path, target.path)
        if self._stand(target, read=False) is not None:
            with self._fence.enter(target) as (above, name):
                if not respells(above, name, stand.found):
                    raise stands_already(target.path)
        tree = self._tree(source, stand, removed=False)
        there = [target.real + real[len(source.real) :] for real in tree]
        return [*tree, *self._missing(target), *there]

    def _stand(self, place: Place, *, read: bool) -> Stand | None:
        try:
            with self._fence.enter(place) as (above, name):
                return stand_at(above, name, place.path, read=read)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _there(self, place: Place, expect: str | None) -> Stand:
        """What stands at a place that is to be moved or removed."""
        stand = self._stand(place, read=True)
        if stand is None:
            raise failed_edit(place.path, OSError(errno.ENOENT, ""))
        if stand.kind == "other":
            raise failed_edit(place.path, OSError(errno.ENXIO, ""))
        if expect is not None and stand.kind == "link":
            stand_read = self._stand(self._fence.judge(place.path), read=True)
            _check_hash(place, stand_read, expect)
        else:
            _check_hash(place, stand, expect)
        return stand

    def _missing(self, place: Place) -> list[str]:
        """The real paths of the folders that have to be made above a place."""
        missing: list[str] = []
        real = os.path.dirname(place.real)
        while real != place.base and not os.path.lexists(real):
            missing.append(real)
            real = os.path.dirname(real)
        return missing[::-1]

    def _tree(self, place: Place, stand: Stand, *, removed: bool) -> list[str]:
        """The real paths of a place and of all in it."""
        if stand.kind != "dir":
            return [place.real]
        if self._fence.is_hidden(stand.found):
            raise denied_outside(place.path, self._fence.root)
        return [
            real
            for real in list_tree(self._fence, place, removed=removed)
            if not any(is_below(real, aside) for aside in self._aside)
        ]

    def _keep(self, reals: Iterable[str], deeds: tuple[Deed, ...] = ()) -> None:
        """Have the keeper keep what it was not told of yet, before it changes."""
        if self._keeper is None:
            return
        self._untold.update((deed.number, deed) for deed in deeds)
        shown = dict.fromkeys(map(self._fence.show, reals))
        new = tuple(path for path in shown if path not in self._named)
        if new or (self._untold and self._named):  # without a path nothing changes
            told = tuple(self._untold.values())
            self._keeper.before(new, Intent(prefix=self._names.prefix, deeds=told))
            self._named.update(dict.fromkeys(new))
            self._deeds.update(self._untold)
            self._untold.clear()

    def _new_deeds(self, edits: Iterable[tuple[int, Edit]]) -> tuple[Deed, ...]:
        """What edits do, where the keeper does not know it so.

        One that builds on another of the batch may turn out to be about another place.
        """
        if self._keeper is None:
            return ()
        deeds = (self._foretell(number, edit) for number, edit in edits)
        return tuple(deed for deed in deeds if self._deeds.get(deed.number) != deed)

    def _foretell(self, number: int, edit: Edit) -> Deed:
        """What an edit does; to make a folder that is there is to change nothing."""
        places = self._places(edit)
        deed = _deed(number, edit, places)
        if deed.kind == "dir" and deed.path not in self._named:
            with suppress(OSError):  # which its own turn tells of, if it is still so then
                stand = self._stand(places[0], read=False)
                if stand is not None and stand.kind == "dir":
                    return msgspec.structs.replace(deed, kind="there")
        return deed

    # Each kind of edit

    def _put(self, edit: Put, place: Place) -> None:
        with self._fence.enter(place, self._make) as (above, name):
            stand = stand_at(above, name, place.path)
            _check_put(edit, place, stand)
            if stand is not None and not os.access(name, os.W_OK, dir_fd=above):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            mode = stand.side.mode if stand is not None and edit.mode is None else edit.mode
            after = Side.of(edit.data, (mode or 0) & 0o777)
            if stand is not None and stand.side.is_same(after):
                return
            temporary = self._names.new()
            write_beside(above, temporary, edit.data, mode, stand.found if stand else None)
            try:
                self._place_file(place, above, temporary, stand)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=above)
                raise
            sync_folder(above)
            if mode is None:
                made = os.stat(name, dir_fd=above, follow_symlinks=False)
                after = Side.of(edit.data, stat.S_IMODE(made.st_mode))
        self.ledger.put(place.shown, stand.side if stand else None, after)

    def _place_file(self, place: Place, above: int, temporary: str, stand: Stand | None) -> None:
        name = place.parts[-1]
        if stand is None:
            move_to_free(above, temporary, above, name)
            self._undo.append((place.shown, lambda: self._drop(place)))
            return
        kept = self._names.new()
        give_second_name(above, name, kept)
        self._aside.append(os.path.join(os.path.dirname(place.real), kept))
        was = os.stat(name, dir_fd=above, follow_symlinks=False)
        if file_identity(was) != file_identity(stand.found):
            raise changed_since(place.path)
        os.rename(temporary, name, src_dir_fd=above, dst_dir_fd=above)
        self._undo.append((place.shown, lambda: self._put_back(place, kept)))

    def _make_dir(self, place: Place) -> None:
        if not place.parts or self._stand(place, read=False) is not None:
            return
        with self._fence.enter(place, self._make) as (above, name):
            self._make(above, name, place.real)
        self.ledger.put(place.shown, None, Side())

    def _make(self, above: int, name: str, real: str) -> None:
        self._keep((real,))
        os.mkdir(name, dir_fd=above)
        place = self._fence.judge(real, follow=False)
        self._undo.append((place.shown, lambda: self._drop_dir(place)))

    def _remove(self, edit: Remove, place: Place) -> None:
        stand = self._there(place, edit.expect)
        kept = self._names.new()
        with self._fence.enter(place) as (above, name):
            os.rename(name, kept, src_dir_fd=above, dst_dir_fd=above)
            self._undo.append((place.shown, lambda: self._put_back(place, kept)))
            self._aside.append(os.path.join(os.path.dirname(place.real), kept))
            self._check_same(place, above, kept, stand)
            sync_folder(above)
        self.ledger.remove(place.shown, stand.side)

    def _move(self, edit: Move, source: Place, target: Place) -> None:
        stand = self._there(source, edit.expect)
        with (
            self._fence.enter(source) as (old_above, old),
            self._fence.enter(target, self._make) as (new_above, new),
        ):
            try:
                move_to_free(old_above, old, new_above, new)
            except (FileExistsError, NotADirectoryError) as error:
                raise stands_already(edit.target) from error
            self._undo.append((source.shown, lambda: self._move_back(source, target)))
            self._check_same(source, new_above, new, stand)
            sync_folder(new_above)
            sync_folder(old_above)
        self._aside = [_rebased(real, source.real, target.real) for real in self._aside]
        self.ledger.move(source.shown, target.shown, stand.side)

    @staticmethod
    def _check_same(place: Place, above: int, name: str, stand: Stand) -> None:
        """See that what was renamed is what was looked at."""
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
        is_same = (found.st_dev, found.st_ino) == (stand.found.st_dev, stand.found.st_ino)
        if not is_same or (stand.kind == "file" and found.st_mtime_ns != stand.found.st_mtime_ns):
            raise changed_since(place.path)

    # Undoing each

    def _put_back(self, place: Place, kept: str) -> None:
        with self._fence.enter(place) as (above, name):
            os.rename(kept, name, src_dir_fd=above, dst_dir_fd=above)

    def _drop(self, place: Place) -> None:
        with self._fence.enter(place) as (above, name):
            os.unlink(name, dir_fd=above)

    def _drop_dir(self, place: Place) -> None:
        with self._fence.enter(place) as (above, name):
            os.rmdir(name, dir_fd=above)

    def _move_back(self, source: Place, target: Place) -> None:
        with (
            self._fence.enter(target) as (new_above, new),
            self._fence.enter(source) as (old_above, old),
        ):
            move_to_free(new_above, new, old_above, old)
        self._aside = [_rebased(real, target.real, source.real) for real in self._aside]


def _deed(number: int, edit: Edit, places: Sequence[Place]) -> Deed:
    path, *more = (place.shown for place in places)
    match edit:
        case Put(mode=mode, expect=expect):
            hashed = hash_bytes(edit.data)
            return Deed(number=number, kind="put", path=path, hash=hashed, mode=mode, expect=expect)
        case MakeDir():
            return Deed(number=number, kind="dir", path=path)
        case Remove(expect=expect):
            return Deed(number=number, kind="remove", path=path, expect=expect)
        case Move(expect=expect):
            return Deed(number=number, kind="move", path=path, target=more[0], expect=expect)


def _check_put(edit: Put, place: Place, stand: Stand | None) -> None:
    """Whether a file may be written over what stands at its place."""
    if len(edit.data) > EDIT_MAX_BYTES:
        raise too_big_to_write(edit.path, EDIT_MAX_BYTES)
    if not place.parts or edit.path.endswith("/") or (stand is not None and stand.kind == "dir"):
        raise failed_edit(place.path, OSError(errno.EISDIR, ""))
    if stand is not None:
        if stand.kind != "file":
            raise failed_edit(place.path, OSError(errno.ENXIO, ""))
        if not stand.found.st_mode & 0o222:  # for which the system would not ask
            raise failed_edit(place.path, OSError(errno.EACCES, ""))
        if stand.found.st_size > EDIT_MAX_BYTES:
            raise too_big(place.path, EDIT_MAX_BYTES)
    _check_hash(place, stand, edit.expect)


def _check_hash(place: Place, stand: Stand | None, expect: str | None) -> None:
    if expect == ABSENT:
        if stand is not None:
            raise stands_already(place.path)
    elif expect is not None and (stand is None or stand.side.hash != expect):
        raise changed_since(place.path)


def _self_and_above(real: str) -> Iterator[str]:
    while True:
        yield real
        above = os.path.dirname(real)
        if above == real:
            return
        real = above


def _rebased(real: str, source: str, target: str) -> str:
    return target + real[len(source) :] if is_below(real, source) else real

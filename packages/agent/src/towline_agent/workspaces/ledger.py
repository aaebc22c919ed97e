"""What edits came to in the end: one change for each file, whatever happened on the way."""

import msgspec

from towline_agent.workspaces.base import hash_bytes
from towline_agent.workspaces.diff import diff_bytes
from towline_protocol import FileChange

__all__ = ["Ledger", "Side"]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """A file, a link or a folder before or after."""

    data: bytes | None = None
    """A file's bytes; `None` for what is no file, or too large for a diff."""
    hash: str | None = None
    """A file's content hash; `None` for what is no file."""
    mode: int | None = None
    """A file's permission bits."""

    @classmethod
    def of(cls, data: bytes, mode: int) -> "Side":
        """A file that was read whole."""
        return cls(data=data, hash=hash_bytes(data), mode=mode)

    def is_same(self, other: "Side") -> bool:
        """Whether it is the same content with the same mode."""
        return (self.hash, self.mode) == (other.hash, other.mode)


class _Entry(msgspec.Struct, kw_only=True):
    path: str
    before: Side | None
    after: Side | None
    source: str | None = None


class Ledger:
    """Takes note of each edit in turn."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def put(self, path: str, before: Side | None, after: Side) -> None:
        """A file was written, or a folder made."""
        entry = self._live(path)
        if entry is None:
            self._entries.append(_Entry(path=path, before=before, after=after))
        else:
            entry.after = after

    def remove(self, path: str, before: Side) -> None:
        """A file, a link or a folder with all in it is gone."""
        self._entries = [
            entry for entry in self._entries if not self._is_in(entry, path) or entry.after is None
        ]
        entry = self._live(path)
        if entry is None:
            self._entries.append(_Entry(path=path, before=before, after=None))
            return
        if entry.before is None:
            self._entries.remove(entry)
        entry.path, entry.source, entry.after = entry.source or path, None, None

    def move(self, source: str, target: str, side: Side) -> None:
        """A file, a link or a folder with all in it stands elsewhere now."""
        entry = self._live(source)
        if entry is None:
            entry = _Entry(path=source, before=side, after=side)
            self._entries.append(entry)
        if entry.before is not None:
            entry.source = entry.source or source
            if entry.source == target:
                entry.source = None
        entry.path = target
        for other in self._entries:
            if self._is_in(other, source) and other.after is not None:
                other.path = target + other.path[len(source) :]

    def changes(self) -> tuple[FileChange, ...]:
        """What it all came to; what is as it was is left out."""
        return tuple(
            _change(entry)
            for entry in self._entries
            if entry.before != entry.after or entry.source is not None
        )

    def _live(self, path: str) -> _Entry | None:
        for entry in reversed(self._entries):
            if entry.path == path and entry.after is not None:
                return entry
        return None

    @staticmethod
    def _is_in(entry: _Entry, folder: str) -> bool:
        return entry.path.startswith(f"{folder}/")


def _change(entry: _Entry) -> FileChange:
    before, after = entry.before, entry.after
    kind = "created" if before is None else "deleted" if after is None else "changed"
    if entry.source is not None:
        kind = "moved"
    diff = None
    if _has_text(before) and _has_text(after) and before != after:
        diff = diff_bytes(
            before and before.data, after and after.data, entry.path, source=entry.source
        )
    modes = (before.mode, after.mode) if before and after else (None, None)
    if modes[0] == modes[1]:
        modes = (None, None)
    return FileChange(
        path=_told(entry.path),
        kind=kind,
        source=None if entry.source is None else _told(entry.source),
        before_mode=modes[0],
        after_mode=modes[1],
        before=before.hash if before else None,
        after=after.hash if after else None,
        diff=diff.text if diff else None,
        truncated=diff.truncated if diff else False,
    )


def _has_text(side: Side | None) -> bool:
    return side is None or side.data is not None


def _told(path: str) -> str:
    """A name that is no UTF-8, as it can be told."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

"""What a conversation has seen of files, so that nothing is overwritten unseen (A5.15)."""

import posixpath
from typing import Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import ABSENT, FileData, Workspace

__all__ = ["KEPT_MAX", "Seen", "SeenFile"]

KEPT_MAX: Final = 1000
"""Files remembered, those seen last; an older one is read again before it is written."""
_NAMED_MAX: Final = 20
_WATCHED_MAX: Final = 100
"""Files looked at for changes of others, those seen last: it is done before each request."""


class SeenFile(msgspec.Struct, frozen=True):
    """How a file was when the conversation saw or wrote it last."""

    hash: str
    """Its content hash."""
    mtime_ns: int
    """When it was changed last; 0 when it was written here and not looked at since."""


class Seen:
    """The files that a conversation has read or written; one object for each, in `ToolState`.

    Paths are real ones relative to the root, absolute outside.
    """

    def __init__(self) -> None:
        self._files: dict[str, SeenFile] = {}
        self._changed: tuple[str, ...] = ()

    def note(self, path: str, file: FileData) -> None:
        """Take note of a file that was read."""
        self._keep(path, SeenFile(file.hash, file.mtime_ns))

    def note_written(self, path: str, content: str) -> None:
        """Take note of a file that was written here.

        Args:
            path: Where.
            content: The hash of what was written.
        """
        self._keep(path, SeenFile(content, 0))

    def note_moved(self, source: str, target: str) -> None:
        """Take note of a file or folder that has another path now."""
        for path in [path for path in self._files if _is_in(path, source)]:
            self._files[target + path[len(source) :]] = self._files.pop(path)

    def forget(self, path: str) -> None:
        """Forget a file, or a folder with all in it."""
        for found in [found for found in self._files if _is_in(found, path)]:
            del self._files[found]

    def get(self, path: str) -> SeenFile | None:
        """How a file was when it was seen last; `None` when it never was."""
        return self._files.get(path)

    async def changed(self, workspace: Workspace) -> tuple[str, ...]:
        """The files that others have changed or removed since they were seen, by path.

        A file counts until it is read again. Only those whose time is another one are read.
        """
        watched = [path for path in self._files if not path.startswith("/")][-_WATCHED_MAX:]
        times = await _find_times(workspace, {posixpath.dirname(path) for path in watched})
        found = [path for path in watched if await self._is_changed(workspace, path, times)]
        return tuple(sorted(found))

    async def refresh(self, workspace: Workspace) -> None:
        """Look before a request for what others have changed (A4.12)."""
        self._changed = await self.changed(workspace) if self._files else ()

    def remind(self) -> tuple[str, ...]:
        """What a model should know of files that it has seen otherwise."""
        if not self._changed:
            return ()
        named = "\n".join(f"- {path}" for path in self._changed[:_NAMED_MAX])
        more = len(self._changed) - _NAMED_MAX
        rest = f"\n- and {more} more" if more > 0 else ""
        return (
            "These files were changed or removed since you saw them, and not by you; read them "
            f"again before you rely on them:\n{named}{rest}",
        )

    async def _is_changed(self, workspace: Workspace, path: str, times: dict[str, int]) -> bool:
        file = self._files[path]
        time = times.get(path)
        if time is not None and time == file.mtime_ns:
            return False
        try:
            now = await workspace.read(path)
        except ToolError:
            return file.hash != ABSENT
        if now.hash != file.hash:
            return True
        self._files[path] = SeenFile(file.hash, now.mtime_ns)  # in its place: it was not seen anew
        return False

    def _keep(self, path: str, file: SeenFile) -> None:
        self._files.pop(path, None)  # to the end: the order is that of the last look
        self._files[path] = file
        if len(self._files) > KEPT_MAX:
            del self._files[next(iter(self._files))]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


async def _find_times(workspace: Workspace, folders: set[str]) -> dict[str, int]:
    """When the files of these folders were changed last, by path."""
    times: dict[str, int] = {}
    for folder in sorted(folders):
        try:
            walk = await workspace.walk(folder or ".", deep=False, ignored=True)
        except ToolError:  # it is gone, with all that was in it
            continue
        above = f"{folder}/" if folder else ""
        times.update({f"{above}{entry.name}": entry.mtime_ns for entry in walk.entries})
    return times

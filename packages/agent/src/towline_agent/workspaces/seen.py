"""What a conversation has seen of files, so that nothing is overwritten unseen (A5.15)."""

from typing import Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces.base import ABSENT, FileData, Workspace

__all__ = ["KEPT_MAX", "Seen", "SeenFile"]

KEPT_MAX: Final = 1000
"""Files remembered, those seen last; an older one is read again before it is written."""
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

        A file counts until it is read again.
        """
        watched = list(self._files.items())[-_WATCHED_MAX:]
        found = [path for path, file in watched if await _is_changed(workspace, path, file)]
        return tuple(sorted(found))

    def _keep(self, path: str, file: SeenFile) -> None:
        self._files.pop(path, None)  # to the end: the order is that of the last look
        self._files[path] = file
        if len(self._files) > KEPT_MAX:
            del self._files[next(iter(self._files))]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


async def _is_changed(workspace: Workspace, path: str, file: SeenFile) -> bool:
    if path.startswith("/"):  # reached by a grant that this look does not have
        return False
    try:
        now = await workspace.read(path)
    except ToolError:
        return file.hash != ABSENT
    return now.mtime_ns != file.mtime_ns and now.hash != file.hash

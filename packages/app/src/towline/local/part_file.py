"""A model file that is still being fetched, and the journal that lets a broken fetch go on."""

import errno
import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from towline.local.errors import OTHER_WAYS, DiskFull, ModelFolderUnusable, ModelHashWrong

__all__ = ["BLOCK_BYTES", "PartFile", "disk_errors"]

BLOCK_BYTES = 8 << 20
"""What one disk operation handles: large enough to be cheap, short enough (20 ms) to cancel."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def disk_errors(folder: Path) -> Generator[None, None, None]:
    """Turn an `OSError` of the block into a sentence about `folder`.

    Raises:
        DiskFull: The disk or the quota is full.
        ModelFolderUnusable: The folder cannot be written for another reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(
                f"The disk of {str(folder)!r} is full. Free some space and run this again (it goes "
                "on where it stopped), or set TOWLINE_MODEL_DIR to a folder with more room."
            ) from error
        raise ModelFolderUnusable(
            f"The model folder {str(folder)!r} cannot be used ({error.strerror or error}). Set "
            f"TOWLINE_MODEL_DIR to a folder that can be written, {OTHER_WAYS}."
        ) from error


class PartFile:
    """The bytes of a model fetched so far from one source, hashed as they come.

    All methods block and belong on the disk thread. A journal beside the file says how much of it
    is known to be on the disk; what lies behind that is dropped when the file is opened again.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source
        """Which source the bytes are from; bytes of another one are not continued."""
        self.size = 0
        """Bytes in the file."""
        self.pieces = 0
        """How many whole pieces (parts of a `PartWheels`) those are."""
        self._journal = path.with_name(path.name + ".json")
        self._hashed = 0
        self._sha = hashlib.sha256()
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Open the file at the last journalled byte. Call `rehash_some` until it is false."""
        with disk_errors(self.path.parent):
            self._file = self.path.open("a+b")
            self.size, self.pieces = self._read_journal(self.path.stat().st_size)
            self._file.truncate(self.size)
            self._file.seek(0)

    def rehash_some(self) -> bool:
        """Hash the next block of what an earlier run left. False when there is no more."""
        with disk_errors(self.path.parent):
            block = self._opened().read(BLOCK_BYTES)
        self._sha.update(block)
        self._hashed += len(block)
        return self._hashed < self.size and bool(block)

    def append(self, block: bytes) -> None:
        """Add `block` at the end. It is kept over a break only after the next `commit`."""
        with disk_errors(self.path.parent):
            self._opened().write(block)
        self._sha.update(block)
        self.size += len(block)

    def commit(self, pieces: int = 0) -> None:
        """Put on the disk what was appended, and say so in the journal."""
        with disk_errors(self.path.parent):
            self._sync()
            entry = {"source": self.source, "bytes": self.size, "pieces": pieces}
            fresh = self._journal.with_name(self._journal.name + ".new")
            fresh.write_text(json.dumps(entry), encoding="utf-8")
            fresh.replace(self._journal)
        self.pieces = pieces

    def restart(self) -> None:
        """Drop all bytes and begin anew."""
        with disk_errors(self.path.parent):
            self._opened().truncate(0)
        self.size = self.pieces = self._hashed = 0
        self._sha = hashlib.sha256()
        self.commit()

    def publish(self, target: Path, sha256: str) -> None:
        """Give the whole file its name, if its hash is `sha256`; delete it if not.

        Raises:
            ModelHashWrong: The bytes are not the ones that were pinned.
        """
        found = self._sha.hexdigest()
        if found != sha256:
            self.discard()
            raise ModelHashWrong(
                f"What the {self.source} gave has the SHA-256 {found!r}, not {sha256!r}, so it was "
                f"deleted. Run this again, or {OTHER_WAYS}."
            )
        with disk_errors(self.path.parent):
            self._sync()
            self.close()
            self.path.replace(target)
            self._journal.unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete the file and its journal."""
        self.close()
        with disk_errors(self.path.parent):
            self.path.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; may be called twice. A failed last write is dropped by the journal."""
        opened, self._file = self._file, None
        if opened is not None:
            try:
                opened.close()
            except OSError:
                return

    def _opened(self) -> IO[bytes]:
        assert self._file is not None, "open() comes first"
        return self._file

    def _sync(self) -> None:
        self._opened().flush()
        os.fsync(self._opened().fileno())

    def _read_journal(self, file_bytes: int) -> tuple[int, int]:
        """Bytes and pieces to keep: none if the journal is not about this file."""
        try:
            entry: Any = json.loads(self._journal.read_text(encoding="utf-8"))
            size, pieces = int(entry["bytes"]), int(entry["pieces"])
            same = entry["source"] == self.source and 0 <= size <= file_bytes
        except (OSError, ValueError, TypeError, KeyError):
            return 0, 0
        return (size, pieces) if same else (0, 0)

"""The files of users: uploads, what prompts name, what requests to a model need (C1.10)."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable
from functools import partial
from typing import Final

from towline_protocol import Block, File, Image, PromptBlock, Text, UsageError
from towline_server.errors import (
    BodyTooLarge,
    FileNotFound,
    Rejected,
    StoreError,
    UploadsFull,
)
from towline_server.sessions.bulk import MAX_FILE, read_data
from towline_server.sessions.sniff import PDF, PICTURES, TEXT, Sniffer
from towline_server.store import attachments
from towline_server.store.attachments import PIECE_BYTES, FileRow, Waiting
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["MAX_NAME", "MAX_TOGETHER", "MAX_WAITING", "Files", "clean_name"]

MAX_NAME: Final = 255
"""Characters of a file's name: what systems take."""
MAX_TOGETHER: Final = 24 * 1024 * 1024
"""Bytes of all files in one request to a model, and so of those in one prompt: as Base 64 they are
the 32 MiB that vendors take."""
MAX_WAITING: Final = 256 * 1024 * 1024
"""Bytes that a user may have uploaded before prompts name them: those of ten prompts. They are on
the server's disk for a day, whoever forgot them."""

_MAX_PATH: Final = 1024
_RETRY_S: Final = 5.0  # other uploads of the user, which are on their way, end within seconds
_READ: Final = PICTURES | {PDF, TEXT}
_PATH_ENDS: Final = str.maketrans({"/": "_", "\\": "_"})


class Files:
    """The files of one store. Nobody sees another user's (C2.9).

    Args:
        store: Keeps them.
        now_ms: The time, in milliseconds since 1970.
        max_waiting: Bytes that a user may have uploaded before prompts name them.
    """

    def __init__(
        self, store: SqliteStore, now_ms: Callable[[], int], *, max_waiting: int = MAX_WAITING
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._max_waiting = max_waiting
        self._coming: Counter[str] = Counter()  # bytes of each user's unfinished uploads

    async def upload(self, user: str, body: AsyncIterable[bytes], *, name: str = "") -> FileRow:
        """Keep bytes as they come, a piece in memory at a time; the same bytes twice are one file.

        Args:
            user: Who owns it.
            body: The bytes. What it raises is raised, and nothing is kept.
            name: What the user calls it.

        Raises:
            UsageError: There are no bytes, or the name is too long.
            BodyTooLarge: There are more than a file may have.
            UploadsFull: Too many bytes of the user wait for prompts that name them.
            StoreError: They could not be kept.
        """
        upload = _Upload(self._store, self._now_ms, user, clean_name(name))
        find = partial(attachments.waiting, user=user, now_ms=self._now_ms())
        waiting = await self._store.query(find)
        taken = 0
        try:
            self._check(waiting, self._coming[user] + 1)
            async for data in body:
                taken += len(data)
                self._coming[user] += len(data)
                self._check(waiting, self._coming[user])
                await upload.feed(data)
            return await upload.finish(self._max_waiting, self._check)
        except BaseException:
            await upload.abort()
            raise
        finally:
            self._coming[user] -= taken
            if not self._coming[user]:
                del self._coming[user]

    def _check(self, waiting: Waiting, coming: int) -> None:
        """Refuse what would be too much beside what waits already."""
        if waiting.size + coming <= self._max_waiting:
            return
        left_s = (waiting.until_ms - self._now_ms()) / 1000
        raise UploadsFull(
            f"{waiting.size} bytes of yours wait for prompts that name them; with this upload they "
            f"would be more than the {self._max_waiting} that may. Send the prompts first, or come "
            "back when the oldest are forgotten: what no prompt names goes after a day.",
            retry_after_s=left_s if waiting.size else _RETRY_S,
            scope="limit",
            reason="upload_limit",
        )

    async def add(self, user: str, data: bytes, *, name: str = "") -> FileRow:
        """Keep whole bytes; raises as `upload` does."""
        return await self.upload(user, _once(data), name=name)

    async def find(self, user: str, file: str) -> FileRow:
        """A user's file.

        Raises:
            FileNotFound: There is none of that hash for this user.
            StoreError: It cannot be read.
        """
        found = await self._store.query(partial(attachments.find, user=user, file=file))
        if found is None:
            raise _unknown(file)
        return found

    async def piece(self, user: str, file: str, number: int) -> bytes | None:
        """A piece of a user's file, numbered from 0; `None` behind the last one.

        Raises:
            StoreError: It cannot be read.
        """
        read = partial(attachments.read_piece, user=user, file=file, number=number)
        return await self._store.query(read)

    async def take_in(self, user: str, content: tuple[PromptBlock, ...]) -> tuple[Block, ...]:
        """What a prompt says, with all bytes in files that the user owns.

        Raises:
            UsageError: A block has no bytes, or ones that cannot be read.
            Rejected: It names a file that the user does not own, or of a kind that no model reads.
            BodyTooLarge: A file is too large, or all together are.
            StoreError: It could not be kept.
        """
        taken: list[Block] = []
        size = 0
        for block in content:
            if isinstance(block, Text):
                taken.append(block)
                continue
            row = await self._take(user, block)
            size += row.size
            taken.append(_named(block, row))
        if size > MAX_TOGETHER:
            raise BodyTooLarge(
                f"The files of a prompt have at most {MAX_TOGETHER} bytes together; these have "
                f"{size}. Send fewer or smaller ones at once."
            )
        return tuple(taken)

    async def _take(self, user: str, block: Image | File) -> FileRow:
        name = block.name if isinstance(block, File) else ""
        row = await self._row(user, block, name)
        if row.media_type not in _READ:
            raise Rejected(
                f"The file {name or row.name or row.file[:12]!r} is {row.media_type!r}, which no "
                "model reads; send a PNG, JPEG, GIF or WebP picture, a PDF, or text in UTF-8.",
                reason="media_type",
            )
        if isinstance(block, Image) and row.media_type not in PICTURES:
            raise Rejected(
                f"The image {row.file[:12]!r} is {row.media_type!r}, not a picture; send it as a "
                "file block with a name.",
                reason="media_type",
            )
        return row

    async def _row(self, user: str, block: Image | File, name: str) -> FileRow:
        if (block.data is None) == (block.file is None):
            raise UsageError("An image or a file has either 'data' or 'file'; give one of them.")
        if block.data is not None:
            data = read_data(block.data)
            if data is None:
                raise UsageError("The 'data' of a block is no Base 64; encode it anew.")
            return await self.add(user, data, name=name)
        assert block.file is not None
        hold = partial(attachments.hold, user=user, file=block.file, now_ms=self._now_ms())
        held = await self._store.write(hold)
        if held is None:
            raise Rejected(_unknown(block.file).message, reason="unknown_file")
        return held


class _Upload:
    """One upload on its way in."""

    def __init__(self, store: SqliteStore, now_ms: Callable[[], int], user: str, name: str) -> None:
        self._store = store
        self._now_ms = now_ms
        self._user = user
        self._name = name
        self._hash = hashlib.sha256()
        self._sniffer = Sniffer()
        self._size = 0
        self._waiting = bytearray()
        self._place: int | None = None
        self._pieces = 0

    async def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._size += len(data)
        if self._size > MAX_FILE:
            raise BodyTooLarge(f"A file has at most {MAX_FILE} bytes; send a smaller one.")
        for start in range(0, len(data), PIECE_BYTES):  # the loop waits for no more than this
            part = data[start : start + PIECE_BYTES]
            self._hash.update(part)
            self._sniffer.feed(part)
            self._waiting += part
            if len(self._waiting) > PIECE_BYTES:
                await self._write_piece()

    async def finish(self, most: int, refuse: Callable[[Waiting, int], None]) -> FileRow:
        """Make a file of it.

        Args:
            most: Bytes that the user may have waiting, this file among them.
            refuse: Raises; given what waits beside it, and its size.
        """
        if not self._size:
            raise UsageError("The file is empty; send its bytes as the body.")
        row = FileRow(
            file=self._hash.hexdigest(),
            media_type=self._sniffer.media_type(),
            size=self._size,
            name=self._name,
        )
        last = bytes(self._waiting)
        place, number = self._place, self._pieces
        now_ms, user = self._now_ms(), self._user

        def work(connection: sqlite3.Connection) -> bool | Waiting:
            beside = attachments.waiting(connection, user, now_ms=now_ms, beside=row.file)
            if beside.size + row.size > most:  # others came to their end meanwhile
                return beside
            to = attachments.begin(connection, now_ms) if place is None else place
            kept = attachments.add_piece(connection, to, number, last)
            return kept and attachments.finish(connection, to, row, user=user, now_ms=now_ms)

        done = await self._store.write(work)
        if isinstance(done, Waiting):
            refuse(done, row.size)
        elif not done:
            raise _too_slow()
        self._place = None
        return row

    async def abort(self) -> None:
        """Leave nothing behind; what cannot be removed now is swept later."""
        if self._place is not None:
            place, self._place = self._place, None
            try:
                await self._store.write(partial(attachments.abort, place=place))
            except StoreError:
                return

    async def _write_piece(self) -> None:
        piece = bytes(self._waiting[:PIECE_BYTES])
        del self._waiting[:PIECE_BYTES]
        if self._place is None:
            self._place = await self._store.write(partial(attachments.begin, now_ms=self._now_ms()))
        add = partial(attachments.add_piece, place=self._place, number=self._pieces, data=piece)
        if not await self._store.write(add):
            raise _too_slow()
        self._pieces += 1


def clean_name(name: str) -> str:
    """A file's name without its folders and without what no screen shows.

    Raises:
        UsageError: It is too long.
    """
    if len(name) > MAX_NAME:
        raise UsageError(f"A file's name has at most {MAX_NAME} characters; this has {len(name)}.")
    return "".join(c for c in name.translate(_PATH_ENDS) if c.isprintable()).strip()


def _clean_path(path: str) -> str:
    if len(path) > _MAX_PATH:
        raise UsageError(f"A file's path has at most {_MAX_PATH} characters; this has {len(path)}.")
    return "".join(c for c in path if c.isprintable())


def _named(block: Image | File, row: FileRow) -> Block:
    """The block as it is stored: what the bytes are is told by the bytes."""
    if row.media_type in PICTURES:
        return Image(media_type=row.media_type, file=row.file)
    if isinstance(block, Image):
        return File(name=row.name or "file", media_type=row.media_type, file=row.file)
    return File(
        name=clean_name(block.name) or row.name or "file",
        media_type=row.media_type,
        file=row.file,
        path=None if block.path is None else _clean_path(block.path),
        lines=None if block.lines is None else clean_name(block.lines),
        selection=block.selection,
    )


def _unknown(file: str) -> FileNotFound:
    return FileNotFound(
        f"There is no file {file[:80]!r} of yours; upload it, or look at its session again."
    )


def _too_slow() -> UsageError:
    return UsageError("The upload took too long and was given up; send the file again.")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data

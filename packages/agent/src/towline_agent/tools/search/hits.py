"""What a search found, read as `rg --json` writes it."""

import base64
from collections.abc import Callable
from typing import Final

import msgspec

__all__ = ["HITS_MAX", "LINE_CHARS", "FileHits", "HitLine", "HitReader", "sort_key"]

HITS_MAX: Final = 1000
"""Hits that are kept to be sorted; with more the search is done again in order, up to the page."""
LINE_CHARS: Final = 300
"""Characters shown of a line, those round its first hit."""

_BEGIN: Final = b'{"type":"begin"'
_END: Final = b'{"type":"end"'
_IS_TEXT: Final = b'"binary_offset":null'
"""Messages that are understood without being read: each file has these two."""
_MESSAGE_BYTES: Final = 16 * 2**20
"""The longest line that is read; nobody looks for something in a longer one."""
_READ_BYTES: Final = 64 * 2**20
"""Bytes that are read in all."""
_LEAD_CHARS: Final = 80
"""Characters kept in front of a hit in a long line."""


class HitLine(msgspec.Struct, frozen=True, gc=False):
    """One line."""

    number: int
    """From 1."""
    text: str
    """The line without its end, cut when it is long."""
    is_hit: bool
    """Whether it matches; else it stands beside one that does."""


class FileHits(msgspec.Struct):
    """The lines of one file."""

    path: str
    """The file, below the folder that was searched."""
    lines: list[HitLine]
    """In order; the first ones when there are very many."""
    hits: int = 0
    """Lines that match, in all."""


class _Text(msgspec.Struct):
    text: str | None = None
    bytes: str | None = None

    def read(self) -> str:
        if self.text is not None:
            return self.text
        return base64.b64decode(self.bytes or "").decode("utf-8", "replace")


class _Match(msgspec.Struct):
    start: int


class _Data(msgspec.Struct):
    message: str = ""
    path: _Text | None = None
    lines: _Text | None = None
    line_number: int | None = None
    submatches: list[_Match] = []
    binary_offset: int | None = None


class _Message(msgspec.Struct):
    type: str
    data: _Data


class HitReader:
    """Takes the output of a search piece by piece.

    Args:
        wants: Whether a file counts, by its path.
        limit: Hits after which it has had enough.
    """

    def __init__(self, wants: Callable[[str], bool], limit: int = HITS_MAX) -> None:
        self.files: dict[str, FileHits] = {}
        """What was found, by path; of a binary file nothing (A5.7)."""
        self.is_full = False
        """Whether a bound was reached, so that there may be more."""
        self.skipped = 0
        """Files that could not be read, or were too large."""
        self.error = ""
        """Why the pattern can't be used."""
        self.slow = ""
        """The file that the pattern takes too long on; the search ended there."""
        self._wants = wants
        self._limit = limit
        self._file: FileHits | None = None
        self._hits = 0
        self._bytes = 0
        self._rest = b""
        self._decoder = msgspec.json.Decoder(_Message)

    def feed(self, data: bytes) -> bool:
        """Take a piece; `False` when nothing more is wanted."""
        self._bytes += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(_BEGIN):  # what follows says the same
                continue
            if line.startswith(_END) and _IS_TEXT in line:
                self._close()
            else:
                self._take(self._decoder.decode(line))
            if self.is_full:
                return False
        if len(self._rest) > _MESSAGE_BYTES or self._bytes > _READ_BYTES:
            self.is_full = True
        return not self.is_full

    def _take(self, message: _Message) -> None:
        data = message.data
        self.error = self.error or data.message
        self.skipped += message.type == "skipped"
        if message.type == "slow" and data.path is not None:
            self.slow = data.path.read()
        if message.type == "end":  # only now it is known whether the file is binary
            if self._file is not None and data.binary_offset is not None:
                self.files.pop(self._file.path, None)
                self._file = None
            self._close()
        elif data.path is not None and data.lines is not None:
            file = self._open(data.path.read().removeprefix("./"))
            file.hits += message.type == "match"
            if file.hits <= self._limit:
                file.lines.append(_read_line(message, data.lines))

    def _open(self, path: str) -> FileHits:
        """The file that the lines are of which come now."""
        if self._file is None:
            self._file = FileHits(path, [])
            if self._wants(path):
                self.files[path] = self._file
        return self._file

    def _close(self) -> None:
        """The file has no more lines."""
        if self._file is not None and self._file.path in self.files:
            self._hits += self._file.hits
            self.is_full = self._hits >= self._limit
        self._file = None


def _read_line(message: _Message, text: _Text) -> HitLine:
    data = message.data
    start = data.submatches[0].start if data.submatches else 0
    line = _cut(text.read().rstrip("\r\n"), start)
    return HitLine(data.line_number or 0, line, message.type == "match")


def _cut(line: str, start: int) -> str:
    """The part of a long line round its first hit.

    Args:
        line: The line.
        start: Where the hit begins, in bytes.
    """
    if len(line) <= LINE_CHARS:
        return line
    at = len(line.encode()[:start].decode("utf-8", "ignore"))
    begin = max(0, min(at - _LEAD_CHARS, len(line) - LINE_CHARS))
    end = begin + LINE_CHARS
    head = f"[{begin} characters] …" if begin else ""
    tail = f"… [{len(line) - end} more characters]" if end < len(line) else ""
    return f"{head}{line[begin:end]}{tail}"


def sort_key(path: str) -> tuple[bytes, ...]:
    """How paths are ordered: name by name, each by its bytes, as `rg --sort path` does."""
    return tuple(name.encode("utf-8", "surrogateescape") for name in path.split("/"))

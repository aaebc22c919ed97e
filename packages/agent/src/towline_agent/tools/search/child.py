"""Searches lines without `rg`. Runs as a program of its own, with the standard library alone.

A regex of Python's may take for ever, holds the interpreter meanwhile and cannot be stopped; so it
runs where it can be ended, and no file is looked at for longer than a limit. The order comes as one
JSON object on the input; the answer has the form of `rg --json`.
"""

import json
import os
import re
import signal
import stat
import sys
from base64 import b64decode
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final

__all__ = ["Reader", "answer", "search_bytes"]

_FILE_BYTES: Final = 16 * 2**20
"""Larger files are told and left out."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_BY_LINE: Final = re.compile(r"\(\?[=!<]|\\[AZbB]|\[\^|\\[DSW]")
"""Signs of a regex that may look at, or over, the end of a line: it must see one line alone."""
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def answer(order: Mapping[str, Any], out: BinaryIO) -> None:
    """Search what an order names, and write what is found.

    Args:
        order: `pattern`, `literal`, `ignore_case`, `context`, `file_s`: seconds that one file may
            take, and `files`: each a path and its bytes in base 64, or `null` for a file below the
            current folder.
        out: Where messages go.
    """
    source = re.escape(order["pattern"]) if order["literal"] else order["pattern"]
    flags = re.IGNORECASE if order["ignore_case"] else re.NOFLAG
    try:
        regex = re.compile(source, flags)
        whole = None if _BY_LINE.search(source) else re.compile(source, flags | re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        out.write(_line("error", {"message": str(error)}))
        return
    reader = Reader()
    for path, kept in order["files"]:
        data = reader.read(path) if kept is None else b64decode(kept)
        if data is None or len(data) > _FILE_BYTES:
            out.write(_line("skipped", {"path": {"text": path}}))
            continue
        try:
            with _limit(order["file_s"]):
                found = list(search_bytes(data, regex, whole, order["context"]))
        except _TooSlow:
            out.write(_line("slow", {"path": {"text": path}}))
            return
        for kind, message in found:
            out.write(_line(kind, {"path": {"text": path}, **message}))
    reader.close()


class _TooSlow(Exception):
    """A file has taken too long."""


@contextmanager
def _limit(seconds: float) -> Generator[None]:
    """End what takes longer: Python's regexes look out for signals."""

    def stop(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def search_bytes(
    data: bytes, regex: re.Pattern[str], whole: re.Pattern[str] | None, context: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What there is to say of one file: nothing, or a beginning, lines, and an end.

    Args:
        data: The file.
        regex: What a line must hold.
        whole: The same for the whole text at once, where that is safe: a quick look.
        context: Lines shown before and behind a hit.
    """
    text = _decode(data)
    if text is None:
        return
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if whole is not None and whole.search(text) is None:
        return
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    hits: dict[int, int] = {}
    for number, line in enumerate(lines):
        match = regex.search(line)
        if match is not None:
            hits[number] = len(line[: match.start()].encode("utf-8", "surrogatepass"))
    if not hits:
        return
    yield "begin", {}
    told = -1
    for hit in hits:
        for number in range(max(told + 1, hit - context), min(hit + context + 1, len(lines))):
            yield _tell(lines[number], number, hits.get(number))
            told = number
    yield "end", {"binary_offset": None}


def _tell(line: str, number: int, start: int | None) -> tuple[str, dict[str, Any]]:
    told: dict[str, Any] = {"lines": {"text": line}, "line_number": number + 1}
    if start is None:
        return "context", told
    return "match", {**told, "submatches": [{"start": start}]}


def _decode(data: bytes) -> str | None:
    """A file's text; `None` for one that is binary."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if b"\0" in data:
        return None
    return data.decode("utf-8", "replace")


class Reader:
    """Reads files below the current folder; no link on the way is followed."""

    def __init__(self) -> None:
        self._folder = ""
        self._fd: int | None = None

    def read(self, path: str) -> bytes | None:
        """A file's bytes; `None` when it can't be read."""
        folder, _, name = path.rpartition("/")
        try:
            if folder != self._folder:
                self._enter(folder)
            fd = os.open(name, _FLAGS, dir_fd=self._fd)
            with os.fdopen(fd, "rb", buffering=0) as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return None
                return file.read(_FILE_BYTES + 1)
        except OSError:
            return None

    def close(self) -> None:
        """Leave the last folder; the next file is sought from the current one."""
        if self._fd is not None:
            os.close(self._fd)
        self._folder, self._fd = "", None

    def _enter(self, folder: str) -> None:
        """Open a folder name by name; files come in the order of their folders."""
        self.close()
        try:
            for name in folder.split("/") if folder else ():
                below = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=self._fd)
                if self._fd is not None:
                    os.close(self._fd)
                self._fd = below
        except OSError:
            self.close()  # half the way is no place to read from
            raise
        self._folder = folder


def _line(kind: str, data: Mapping[str, Any]) -> bytes:
    text = json.dumps({"type": kind, "data": data}, separators=(",", ":"))
    return text.encode() + b"\n"


def _main() -> None:
    order = json.load(sys.stdin.buffer)
    with suppress(BrokenPipeError):  # who asked has had enough
        answer(order, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main()

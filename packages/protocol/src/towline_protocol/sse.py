"""The one reader and writer of server-sent events, used by providers, client and server.

The reader is incremental: bytes in, events out, however the network cut them. It follows the
dispatch rules of the HTML standard; only LF, CR and CRLF end a line (R01).
"""

import re
from typing import Final

import msgspec

from towline_protocol.errors import ProtocolError

__all__ = ["MAX_EVENT_BYTES", "SseDecoder", "SseEvent", "encode_comment", "encode_event"]

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
"""The largest event a reader takes: eight times the largest event of a session (C6), so that a
provider's whole answer in one event passes and a peer that never ends a line does not fill the
memory."""

_LINE_END: Final = rb"\r\n|\n|\r"
_BOM: Final = b"\xef\xbb\xbf"
_PLAIN: Final = b"data: "  # most chunks are events of such a line, and nothing else
_PLAIN_END: Final = b"\n\n"
_PLAIN_NEXT: Final = _PLAIN_END + _PLAIN


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One dispatched event."""

    data: bytes
    """The data lines joined by LF; may be empty."""
    event: str = ""
    """The event name; empty for the usual kind."""
    id: str | None = None
    """The id line of this event; `None` when it had none, so that it moves no cursor."""


class SseDecoder:
    """Feed it bytes as they come; it gives each event as soon as its blank line is read."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._parts: list[bytes] = []  # an unfinished line, in the pieces it came in
        self._open_bytes = 0  # in `_parts`
        self._data_bytes = 0  # in the block being built
        self._skip_lf = False  # the last byte was a CR: an LF that follows belongs to it
        self._first = True
        self._data: list[bytes] = []
        self._event = ""
        self._id: str | None = None
        self.retry: int | None = None
        """Milliseconds of the last retry line; `None` before one came."""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes, in order.

        Raises:
            ProtocolError: An event is larger than the bound.
        """
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if not chunk:
            return []
        if chunk.startswith(_PLAIN) and chunk.endswith(_PLAIN_END) and self._rests:
            found = chunk[len(_PLAIN) : -len(_PLAIN_END)].split(_PLAIN_NEXT)
            ends = len(_PLAIN_END) * len(found)
            if chunk.count(b"\n") == ends and b"\r" not in chunk and len(chunk) <= self._max:
                self._first = False
                return list(map(SseEvent, found))
        lines = self._split(chunk)
        return [] if lines is None else self._take(lines)

    def _take(self, lines: list[bytes]) -> list[SseEvent]:
        """The events that these lines complete."""
        events: list[SseEvent] = []
        data, room = self._data, self._max - self._open_bytes
        for line in lines:
            if line.startswith(b"data: "):  # as `_add`: most lines are such, and a call is slow
                data.append(line[6:])
                self._data_bytes += len(line) - 5
                if self._data_bytes > room:
                    raise self._too_large()
            elif line:
                self._field(line)
            else:
                if data:
                    whole = data[0] if len(data) == 1 else b"\n".join(data)
                    events.append(SseEvent(whole, self._event, self._id))
                    data.clear()
                    self._data_bytes = 0
                self._event, self._id = "", None
        return events

    def close(self) -> None:
        """Say that the stream has ended.

        An event that was not completed is dropped, as the standard says.

        Raises:
            ProtocolError: The stream ended inside a character (R03).
        """
        rest = b"".join([*self._parts, *self._data])
        try:
            rest.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("The event stream ended inside a character; ask again.") from error

    @property
    def _rests(self) -> bool:
        """Whether no event is open."""
        return not (self._parts or self._data or self._event or self._id is not None)

    def _split(self, chunk: bytes) -> list[bytes] | None:
        """The lines that are whole now; `None` while the first one is not."""
        has_cr = b"\r" in chunk
        if not has_cr and b"\n" not in chunk:
            self._parts.append(chunk)
            self._open_bytes += len(chunk)
            self._check()
            return None
        if self._parts:
            chunk = b"".join([*self._parts, chunk])
            self._parts.clear()
            self._open_bytes = 0
        lines = re.split(_LINE_END, chunk) if has_cr else chunk.split(b"\n")
        self._skip_lf = chunk.endswith(b"\r")
        rest = lines.pop()
        if self._first and lines:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        if rest:
            self._parts.append(rest)
            self._open_bytes = len(rest)
            self._check()
        return lines

    def _add(self, value: bytes) -> None:
        """Take in a line of data."""
        self._data.append(value)
        self._data_bytes += len(value) + 1
        if self._open_bytes + self._data_bytes > self._max:
            raise self._too_large()

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"event":
                self._event = value.decode(errors="replace")
            case b"data":  # without a space, or without a colon: an empty line of data
                self._add(value)
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit():
                self.retry = int(value[:9])
            case _:
                pass  # the standard: an unknown field is ignored

    def _check(self) -> None:
        if self._open_bytes + self._data_bytes > self._max:
            raise self._too_large()

    def _too_large(self) -> ProtocolError:
        return ProtocolError(
            f"An event is larger than {self._max!r} bytes; the peer does not speak this stream."
        )


def encode_event(data: bytes, *, id: int | None = None, event: str | None = None) -> bytes:  # noqa: A002 - the field's own name
    """One event, ready to send.

    Args:
        data: JSON on one line; it must hold no line end.
        id: The event's number, when it has one.
        event: The event name of a control frame.
    """
    head = b""
    if event is not None:
        head = b"event: %s\n" % event.encode()
    if id is not None:
        head += b"id: %d\n" % id
    return b"%sdata: %s\n\n" % (head, data)


def encode_comment(text: str = "") -> bytes:
    """A comment: keeps a connection warm and means nothing (C3.7)."""
    return b": %s\n\n" % text.encode()

"""JSON values out of a stream of JSON: an array that comes in pieces, or one value a line.

Gemini streams so when it is not asked for server-sent events, Ollama's own API always does. Values
are found, not read: bytes in, the bytes of each whole value out, however the network cut them.

```python
splitter = JsonSplitter()
for value in splitter.feed(body):
    take(value)
splitter.close()  # raises when the end is missing; what came before stays good
```
"""

import re
from typing import Final

from towline_protocol import MAX_EVENT_BYTES, ProtocolError

__all__ = ["JsonSplitter"]

_BETWEEN: Final = re.compile(rb"[ \t\r\n,]*")
"""What may stand between values."""
_STRUCTURE: Final = re.compile(rb'["{}\[\]]')
_STRING_STOP: Final = re.compile(rb'["\\]')
_WORD_STOP: Final = re.compile(rb'[ \t\r\n,"{}\[\]]')
_BOM: Final = b"\xef\xbb\xbf"
_QUOTE: Final = 0x22
_MAX_EMPTY: Final = 64
"""Arrays that may begin one after another without a value; real streams have one."""
_OPENING: Final = b"{["
_CLOSING: Final = b"}]"


class JsonSplitter:
    """Feed it bytes as they come; it gives the bytes of each value as soon as it is whole.

    The outermost arrays are not values but what the values come in. Values may be apart by commas,
    by line ends or by nothing. Whether a value is good JSON is for its reader to say.

    Args:
        max_value_bytes: The largest value that is taken, so that a peer that never ends one does
            not fill the memory.
    """

    def __init__(self, max_value_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_value_bytes
        self._parts: list[bytes] = []  # an unfinished value, in the pieces it came in
        self._size = 0  # in `_parts`
        self._arrays = 0  # open around the values
        self._empty = 0  # arrays opened since the last value
        self._inside = False  # a value
        self._word = False  # the value is a number, `true`, `false` or `null`
        self._depth = 0  # of objects and arrays that the value has open
        self._string = False  # inside a string of the value
        self._escaped = False  # the last byte of that was a backslash
        self._first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The values that this chunk completes, in order.

        Raises:
            ProtocolError: A value is larger than the bound, or something ends that never began.
        """
        if self._first and chunk:
            chunk = self._skip_mark(chunk)
        values: list[bytes] = []
        at = 0
        while at < len(chunk):
            if not self._inside:
                at = self._begin(chunk, at)
                if not self._inside:
                    continue
            end = self._end_of_word(chunk, at) if self._word else self._end(chunk, at)
            self._keep(chunk[at:end])
            if end is None:
                break
            values.append(self._whole())
            at = end
        return values

    def close(self) -> list[bytes]:
        """Say that the stream has ended: a number that stood at its end is whole now.

        Raises:
            ProtocolError: The stream ended inside a value or inside its array.
        """
        values = [self._whole()] if self._word else []
        if self._inside or self._arrays or self._parts:
            raise ProtocolError("The JSON stream ended in the middle; ask again.")
        return values

    def _skip_mark(self, chunk: bytes) -> bytes:
        """The chunk without a byte order mark, which may come in pieces too."""
        chunk = b"".join([*self._parts, chunk])
        self._parts.clear()
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._parts.append(chunk)
            return b""
        self._first = False
        return chunk.removeprefix(_BOM)

    def _begin(self, chunk: bytes, at: int) -> int:
        """Go on to the next value, through the arrays around it."""
        found = _BETWEEN.match(chunk, at)
        at = at if found is None else found.end()
        if at == len(chunk):
            return at
        byte = chunk[at : at + 1]
        if byte == b"[":
            self._arrays += 1
            self._empty += 1
            if self._empty > _MAX_EMPTY:
                raise ProtocolError(
                    f"A JSON stream opens more than {_MAX_EMPTY} arrays without a value; ask again."
                )
            return at + 1
        if byte == b"]" and self._arrays:
            self._arrays -= 1
            return at + 1
        if byte in _CLOSING:
            raise ProtocolError(
                f"A JSON stream holds {byte.decode()!r} where nothing is open; ask again."
            )
        self._empty = 0
        self._inside = True
        self._word = byte not in b'{"'
        return at

    def _end(self, chunk: bytes, at: int) -> int | None:
        """Where a string, an object or an array is over; `None` when not in this chunk."""
        if self._escaped:
            self._escaped = False
            at += 1
        while found := (_STRING_STOP if self._string else _STRUCTURE).search(chunk, at):
            at = found.end()
            byte = chunk[at - 1]
            if byte == _QUOTE:
                self._string = not self._string
            elif self._string:  # a backslash: what follows is no end
                if at == len(chunk):
                    self._escaped = True
                at += 1
                continue
            else:
                self._depth += 1 if byte in _OPENING else -1
            if not self._depth and not self._string:
                return at
        return None

    def _end_of_word(self, chunk: bytes, at: int) -> int | None:
        found = _WORD_STOP.search(chunk, at)
        return found and found.start()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max:
            raise ProtocolError(
                f"A value is larger than {self._max!r} bytes; the peer does not speak this stream."
            )
        self._parts.append(part)

    def _whole(self) -> bytes:
        value = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._inside = self._word = False
        return value
